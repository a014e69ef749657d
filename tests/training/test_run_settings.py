"""A whole run as one value, and as JSON and back."""

import json
import math
from pathlib import Path

import pytest

from idgnn.graphs.sources import FileSource, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.seeds import generator_of, seed_of

FILES = FileSource(Path("a/edges.csv"), Path("nodes.csv"), None, "label", directed=True, ignore=("id", "name"))
RUNS = (
    RunSettings("ScaleFree", TaskSettings(name="node-clustering")),
    RunSettings(
        FILES,
        TaskSettings(name="link-prediction", valid=0.1, test=0.2, supervision=0.3),
        ModelSettings(conv="gine", layers=4, width=None, budget=100),
        TrainOptions(lr=0.1, precision="bf16", keep="best"),
        Selection(min_nodes=3, smallest=5),
        seed=7,
    ),
    RunSettings(FileSource(Path("edges.csv")), TaskSettings(name="graph-regression")),
)


@pytest.mark.parametrize("settings", RUNS)
def test_settings_survive_json(settings):
    assert RunSettings.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings


@pytest.mark.parametrize("group", ["task", "model", "training", "selection"])
def test_settings_of_another_version_are_refused(group):
    values = RUNS[0].as_dict()
    values[group]["flavor"] = "red"
    with pytest.raises(ValueError, match=r"settings \['flavor'\] that this version of idgnn does not know"):
        RunSettings.from_dict(values)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lr": "3"}, "lr is '3', expected a finite number"),
        ({"lr": math.inf}, "lr is inf, expected a finite number"),
        ({"weight_decay": None}, "weight_decay is None, expected a finite number"),
        ({"query_batch_size": 4, "fanout": 5}, r"fanout is 5, expected whole numbers of at least 1, or -1 for all"),
        ({"query_batch_size": 4, "fanout": "5"}, r"fanout is '5', expected whole numbers"),
        ({"query_batch_size": 4, "fanout": (5, True)}, r"fanout is \[5, True\], expected whole numbers"),
        ({"workers": "2"}, "workers is '2', expected a whole number of at least 0"),
    ],
)
def test_values_that_are_not_numbers_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TrainOptions(**options)


def test_every_purpose_has_a_seed_of_its_own():
    asked = [(seed, purpose, epoch) for seed in (0, 1, 10) for purpose in ("order", "queries") for epoch in (0, 1, 11)]
    seeds = [seed_of(*each) for each in asked]
    assert len(set(seeds)) == len(asked) and all(0 <= seed < 2**63 for seed in seeds)
    assert seeds == [seed_of(*each) for each in asked]
    assert generator_of(3, "order", 1).initial_seed() == seed_of(3, "order", 1)


def test_batches_of_queries_are_for_nodes_and_pairs():
    options = TrainOptions(query_batch_size=32)
    for name in ("node-clustering", "link-prediction"):
        RunSettings("python", TaskSettings(name=name), training=options)
    with pytest.raises(ValueError, match=r"query_batch_size is 32, .* but the task asks about whole graphs. Leave it"):
        RunSettings("python", TaskSettings(name="graph-clustering"), training=options)
