"""The recommended settings: one recipe for all networks of a task, chosen without a look at the validation part."""

from dataclasses import fields, replace

import pytest

from idgnn.experiments import choose
from idgnn.experiments.grid import Choice
from idgnn.experiments.paper_models import GNNS
from idgnn.experiments.recommended import CANDIDATES, CHOSEN, Recipe, kind_of, recommended
from idgnn.experiments.spec import FIRST_DEFAULTS, RunRecord, TrainJob, job_as_dict, key_of, recorded_settings
from idgnn.experiments.store import Store
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions
from tests.training.small_problems import graphs_for, settings_for


@pytest.mark.parametrize("kind", [TaskSettings, ModelSettings, TrainOptions, Selection])
def test_every_option_has_the_value_that_leaves_keys_as_they_are(kind):
    """A new option without one would change the keys of all records."""
    assert {each.name for each in fields(kind)} - {"name"} == set(FIRST_DEFAULTS[kind])


def test_a_key_depends_on_the_value_of_an_option_and_not_on_its_default():
    job = TrainJob(RunSettings("ENZYMES", TaskSettings(name="node-clustering")))
    old = replace(job.settings.model, color="message", cycle_scale="log", pair_head="paper", symmetric=False)
    assert job_as_dict(TrainJob(replace(job.settings, model=old)))["model"] == {}
    assert job_as_dict(job)["model"]["cycle_scale"] == "standardized"
    assert key_of(job) != key_of(TrainJob(replace(job.settings, model=old)))
    assert recorded_settings(job_as_dict(job)) == job.settings


def test_the_tables_have_all_columns_and_the_same_recipe_for_every_network_of_a_task():
    specs = Choice(("table2", "table3"), protocols=("recommended",), seeds=(0,)).specs()
    assert len({spec.column for spec in specs}) == 20
    assert all(sum(spec.column == column for spec in specs) >= 12 for column in {spec.column for spec in specs})
    recipes: dict[str, set[object]] = {}
    for spec in specs:
        settings = spec.job.settings
        colors = settings.model.colors
        task = "two-color-links" if colors == 2 else kind_of(settings.task.name, settings.data)
        shared = replace(settings.model, conv="gcn", identity="full", colors=1)
        recipes.setdefault(task, set()).add((settings.training, shared))
        assert settings.training.reestimate_batchnorm and settings.model.cycle_scale == "standardized"
        assert settings.model.color == "message+update" and settings.task.inner == 0
    assert set(recipes) == set(CANDIDATES) and all(len(each) == 1 for each in recipes.values())


def test_chosen_recipes_are_candidates_and_others_are_refused():
    assert all(CHOSEN[kind] in CANDIDATES[kind] for kind in CANDIDATES)
    with pytest.raises(ValueError, match="no recipe for node-regression on ENZYMES"):
        recommended("node-regression", "ENZYMES")


@pytest.mark.parametrize("task", ["node-clustering", "link-prediction", "shortest-path"])
def test_an_inner_split_leaves_the_validation_part_aside(task):
    dataset, settings = Dataset("python", graphs_for(task)), settings_for(task)
    outer, inner = (make_problem(dataset, each) for each in (settings, replace(settings, inner=0.25)))
    assert set(inner.graph_ids) == {"train", "valid"} and len(inner.graph_ids["valid"]) == 3
    assert sorted(inner.graph_ids["train"] + inner.graph_ids["valid"]) == outer.graph_ids["train"]
    assert not set(inner.graph_ids["valid"]) & set(outer.graph_ids["valid"])


def test_an_inner_split_of_nodes_or_of_the_links_of_one_graph():
    graphs = graphs_for("node-regression", 1)
    settings = replace(settings_for("node-regression"), inner=0.25)
    parts = make_problem(Dataset("python", graphs), settings)
    outer = make_problem(Dataset("python", graphs), replace(settings, inner=0.0))
    inner = set(parts.train.queries.tolist()) | set(parts.held_out["valid"].queries.tolist())
    assert inner == set(outer.train.queries.tolist())
    with pytest.raises(ValueError, match="inner splits graphs"):
        make_problem(Dataset("python", graphs), replace(settings_for("link-prediction"), inner=0.25))


def test_candidates_are_compared_by_their_mean_and_unfinished_ones_come_last():
    specs = choose.specs(["link-prediction"])
    assert len({spec.key for spec in specs}) == len(specs) and all(
        spec.job.settings.task.inner == 0.2 for spec in specs
    )
    scores = {name: 0.5 + number / 10 for number, name in enumerate(CANDIDATES["link-prediction"])}
    records = {
        spec.key: RunRecord(spec.key, {}, {"metric": "roc_auc", "valid": {"roc_auc": scores[spec.row]}}, seconds=2.0)
        for spec in specs
    }
    best = list(scores)[-1]
    del records[next(spec.key for spec in specs if spec.row == best)]
    rows = [
        line.split("|")[1].replace("(chosen)", "").strip()
        for line in choose.compared("link-prediction", records).splitlines()[4:]
    ]
    assert rows == [*reversed(list(scores)[:-1]), best]


def test_candidates_are_run_and_not_run_again(tmp_path, capsys, data_dir, monkeypatch):
    tiny = Recipe(1, 32, 0.01, 0.0)
    trial = replace(choose.TRIALS["node-clustering"], datasets=("ENZYMES",), models=("gcn",))
    monkeypatch.setitem(choose.CANDIDATES, "node-clustering", {"tiny": tiny})
    monkeypatch.setitem(choose.TRIALS, "node-clustering", trial)
    (spec,) = choose.specs(["node-clustering"])
    small = replace(spec.job.settings, model=ModelSettings(conv=GNNS[0].conv, identity="none", width=4))
    spec = replace(spec, job=TrainJob(replace(small, selection=Selection(smallest=20))))
    for expected in ("0 of 1 runs have finished", "1 of 1 runs have finished"):
        choose.run_missing([spec, spec], Store(tmp_path), "cpu", 1)
        assert expected in capsys.readouterr().out
    assert set(Store(tmp_path).read().finished) == {spec.key}
