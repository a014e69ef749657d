from dataclasses import replace

import pytest

from idgnn.experiments import table1, table2, table3, table4, table5, table6, table_memory
from idgnn.experiments.models import EVERY, GNNS, PAPER
from idgnn.experiments.spec import MeasureJob, TrainJob

TABLES = {table.NAME: table for table in (table1, table2, table3, table4, table5, table6, table_memory)}
PROTOCOLS = ("text", "released")
SEEDS = (0, 1, 2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", TABLES)
def test_every_run_says_where_it_stands(name, protocol):
    specs = TABLES[name].specs(EVERY, protocol, SEEDS)
    assert all(spec.table == name and spec.protocol == protocol and spec.seed in SEEDS for spec in specs)
    for spec in specs:
        job = spec.job
        assert (job.seed if isinstance(job, MeasureJob) else job.settings.seed) == spec.seed
    # A cell has one run a seed, but for the folds of Table 6.
    cells = {(spec.column, spec.row, spec.seed) for spec in specs}
    assert len(specs) == len(cells) * (table6.FOLDS if name == "table6" else 1)


@pytest.mark.parametrize("name", TABLES)
def test_the_seeds_and_models_that_are_asked_for_are_run_and_no_others(name):
    table = TABLES[name]
    assert table.specs(PAPER, "text", ()) == []
    fewer = table.specs(GNNS[:1], "text", SEEDS[:1])
    every = table.specs(EVERY, "text", SEEDS)
    assert all(spec in every for spec in fewer)
    trained = [spec for spec in fewer if isinstance(spec.job, TrainJob) and spec.row != table5.PGNN]
    assert {spec.row for spec in trained} <= {"gcn"}


@pytest.mark.parametrize("name", ["table2", "table3"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_table_has_ten_columns_of_twelve_models_and_three_seeds(name, protocol):
    specs = TABLES[name].specs(PAPER, protocol, SEEDS)
    assert len(specs) == 10 * 12 * 3
    assert len({spec.key for spec in specs}) == len(specs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_table_5_trains_nothing_that_table_3_trains_but_p_gnn(protocol):
    third = {spec.key for spec in table3.specs(PAPER, protocol, SEEDS)}
    for spec in table5.specs(PAPER, protocol, SEEDS):
        assert (spec.key in third) == (spec.row != table5.PGNN)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_p_gnn_is_trained_as_the_gcn_beside_it_with_its_budget(protocol):
    jobs = {(spec.column, spec.row, spec.seed): spec.job for spec in table5.specs(GNNS, protocol, SEEDS)}
    for (column, row, seed), job in jobs.items():
        if row == table5.PGNN:
            ours, gcn = job.settings, jobs[column, "gcn", seed].settings
            assert replace(ours, model=gcn.model) == gcn
            assert ours.model.width is None
            assert ours.model.budget == (gcn.model.width or gcn.model.budget)


def test_every_fold_of_table_6_is_held_out_once_and_every_epoch_measured():
    specs = table6.specs(PAPER, "text", SEEDS)
    assert len(specs) == 3 * 12 * 10
    assert not table6.specs(PAPER, "text", SEEDS[1:])  # the folds take the place of seeds
    assert not table6.specs(PAPER, "released", SEEDS)  # it has no settings for this
    for column in ("class-MUTAG", "class-PTC_MR", "class-PROTEINS"):
        runs = [spec.job.settings for spec in specs if spec.column == column and spec.row == "full-gin"]
        assert sorted(run.task.fold for run in runs) == list(range(10))
        assert all(run.task.split == "folds" and run.task.folds == 10 for run in runs)
        assert all(run.training.epochs == 300 and run.training.eval_every == 1 for run in runs)


def test_cells_that_are_measured_together_share_a_measurement():
    assert len({spec.key for spec in table1.specs(PAPER, "text", (0,))}) == 3
    assert len({spec.key for spec in table4.specs(PAPER, "text", (0,))}) == 1
    assert len({spec.key for spec in table_memory.specs(PAPER, "text", (0,))}) == 3
