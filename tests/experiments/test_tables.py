from dataclasses import replace
from typing import get_args

import pytest

from idgnn.choices import TableName
from idgnn.experiments.grid import TABLES
from idgnn.experiments.paper_table import EVERY, GNNS, PAPER
from idgnn.experiments.spec import MeasureJob, TrainJob
from idgnn.experiments.trained_tables import FOLDS, PGNN

PROTOCOLS = ("text", "released")
SEEDS = (0, 1, 2)


def test_the_choices_of_the_command_line_are_the_tables():
    assert get_args(TableName) == tuple(TABLES)
    assert all(table.name == name for name, table in TABLES.items())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", TABLES)
def test_every_run_has_its_table_protocol_and_seed(name, protocol):
    specs = TABLES[name].specs(EVERY, protocol, SEEDS)
    assert all(spec.table == name and spec.protocol == protocol and spec.seed in SEEDS for spec in specs)
    for spec in specs:
        job = spec.job
        assert (job.seed if isinstance(job, MeasureJob) else job.settings.seed) == spec.seed
    # A cell has one run a seed, but for the folds of Table 6.
    cells = {(spec.column, spec.row, spec.seed) for spec in specs}
    assert len(specs) == len(cells) * (FOLDS if name == "table6" else 1)


@pytest.mark.parametrize("name", TABLES)
def test_only_the_given_seeds_and_models_are_run(name):
    table = TABLES[name]
    assert table.specs(PAPER, "text", ()) == []
    fewer = table.specs(GNNS[:1], "text", SEEDS[:1])
    every = table.specs(EVERY, "text", SEEDS)
    assert all(spec in every for spec in fewer)
    trained = [spec for spec in fewer if isinstance(spec.job, TrainJob) and spec.row != PGNN]
    assert {spec.row for spec in trained} <= {"gcn"}


@pytest.mark.parametrize("name", ["table2", "table3"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_table_has_ten_columns_of_twelve_models_and_three_seeds(name, protocol):
    specs = TABLES[name].specs(PAPER, protocol, SEEDS)
    assert len(specs) == 10 * 12 * 3
    assert len({spec.key for spec in specs}) == len(specs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_table_5_shares_all_runs_with_table_3_except_p_gnn(protocol):
    third = {spec.key for spec in TABLES["table3"].specs(PAPER, protocol, SEEDS)}
    for spec in TABLES["table5"].specs(PAPER, protocol, SEEDS):
        assert (spec.key in third) == (spec.row != PGNN)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_p_gnn_is_trained_as_the_gcn_beside_it_with_its_budget(protocol):
    jobs = {(spec.column, spec.row, spec.seed): spec.job for spec in TABLES["table5"].specs(GNNS, protocol, SEEDS)}
    for (column, row, seed), job in jobs.items():
        if row == PGNN:
            ours, gcn = job.settings, jobs[column, "gcn", seed].settings
            assert replace(ours, model=gcn.model) == gcn
            assert ours.model.width is None
            assert ours.model.budget == (gcn.model.width or gcn.model.budget)


def test_every_fold_of_table_6_is_held_out_once_and_every_epoch_measured():
    specs = TABLES["table6"].specs(PAPER, "text", SEEDS)
    assert len(specs) == 3 * 12 * 10
    assert not TABLES["table6"].specs(PAPER, "text", SEEDS[1:])  # the folds take the place of seeds
    assert not TABLES["table6"].specs(PAPER, "released", SEEDS)  # it has no settings for this
    for column in ("class-MUTAG", "class-PTC_MR", "class-PROTEINS"):
        runs = [spec.job.settings for spec in specs if spec.column == column and spec.row == "full-gin"]
        assert sorted(run.task.fold for run in runs) == list(range(10))
        assert all(run.task.split == "folds" and run.task.folds == 10 for run in runs)
        assert all(run.training.epochs == 300 and run.training.eval_every == 1 for run in runs)


def test_cells_that_are_measured_together_share_a_measurement():
    assert len({spec.key for spec in TABLES["table1"].specs(PAPER, "text", (0,))}) == 3
    assert len({spec.key for spec in TABLES["table4"].specs(PAPER, "text", (0,))}) == 1
    assert len({spec.key for spec in TABLES["memory"].specs(PAPER, "text", (0,))}) == 3
