from dataclasses import replace
from typing import get_args

import pytest

from idgnn.choices import TableName
from idgnn.experiments.grid import PROTOCOLS
from idgnn.experiments.paper_models import PAPER
from idgnn.experiments.peers.settings import DATASETS, PEERS, peer_settings
from idgnn.experiments.spec import PeerJob, TrainJob
from idgnn.experiments.tables import TABLES
from idgnn.experiments.tables.table5 import FIXED, PGNN
from idgnn.experiments.tables.table6 import FOLDS

SEEDS = (0, 1, 2)


def test_the_choices_of_the_command_line_are_the_tables():
    assert get_args(TableName) == tuple(TABLES)
    assert all(table.name == name for name, table in TABLES.items())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("name", TABLES)
def test_every_run_has_its_table_protocol_and_seed(name, protocol):
    specs = TABLES[name].specs(protocol, SEEDS)
    assert all(spec.table == name and spec.protocol == protocol and spec.seed in SEEDS for spec in specs)
    for spec in specs:
        job = spec.job
        assert (job.settings.seed if isinstance(job, TrainJob) else job.seed) == spec.seed
    # A cell has one run a seed, but for the folds of Table 6.
    cells = {(spec.column, spec.row, spec.seed) for spec in specs}
    assert len(specs) == len(cells) * (FOLDS if name == "table6" else 1)


@pytest.mark.parametrize("name", TABLES)
def test_only_the_given_seeds_and_protocols_are_run(name):
    table = TABLES[name]
    every = {protocol: table.specs(protocol, SEEDS) for protocol in PROTOCOLS}
    assert [protocol for protocol in PROTOCOLS if every[protocol]] == list(table.protocols)
    for protocol in PROTOCOLS:
        assert table.specs(protocol, ()) == []
        assert table.specs(protocol, (0,)) == [spec for spec in every[protocol] if spec.seed == 0]


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_run_is_shown_and_every_row_and_column_has_runs(table):
    runs = [spec for protocol in table.protocols for spec in table.specs(protocol, SEEDS)]
    names = [row.name for row in table.rows]
    assert len(set(names)) == len(names) and len({column.name for column in table.columns}) == len(table.columns)
    assert {spec.row for spec in runs} <= set(names)
    assert {spec.column for spec in runs} == {column.of_runs for column in table.columns}
    quoted = {row for rows in table.published.values() for row in rows}
    assert set(names) - {spec.row for spec in runs} <= quoted | {row.name for row in table.rows if row.best_of}
    families = {row.family for row in table.rows}
    assert all(row.best_of in families for row in table.rows if row.best_of)


@pytest.mark.parametrize("name", ["table2", "table3"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_table_has_ten_columns_of_twelve_models_and_three_seeds(name, protocol):
    paper = {model.name for model in PAPER}
    specs = [spec for spec in TABLES[name].specs(protocol, SEEDS) if spec.row in paper]
    assert len(specs) == 10 * 12 * 3
    assert len({spec.key for spec in specs}) == len(specs)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_table_5_shares_all_runs_with_table_3_except_p_gnn(protocol):
    third = {spec.key for spec in TABLES["table3"].specs(protocol, SEEDS)}
    for spec in TABLES["table5"].specs(protocol, SEEDS):
        assert (spec.key in third) == (spec.row not in (PGNN, FIXED))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_p_gnn_is_trained_as_the_gcn_beside_it_with_its_budget(protocol):
    jobs = {(spec.column, spec.row, spec.seed): spec.job for spec in TABLES["table5"].specs(protocol, SEEDS)}
    for (column, row, seed), job in jobs.items():
        if row in (PGNN, FIXED):
            ours, gcn = job.settings, jobs[column, "gcn", seed].settings
            assert replace(ours, model=gcn.model) == gcn
            assert ours.model.width is None
            assert ours.model.budget == (gcn.model.width or gcn.model.budget)


def test_every_fold_of_table_6_is_held_out_once_and_every_epoch_measured():
    specs = TABLES["table6"].specs("text", SEEDS)
    assert len(specs) == 6 * 12 * 10 + 4 * 8 * 10
    assert not TABLES["table6"].specs("text", SEEDS[1:])  # the folds take the place of seeds
    assert not TABLES["table6"].specs("released", SEEDS)  # it has no settings for this
    for name in (*DATASETS, "MUTAG", "PROTEINS"):
        column = f"class-{name}"
        runs = [spec.job.settings for spec in specs if spec.column == column and spec.row == "full-gin"]
        assert sorted(run.task.fold for run in runs) == list(range(10))
        assert all(run.task.split == "folds" and run.task.folds == 10 for run in runs)
        assert all(run.training.epochs == 300 and run.training.eval_every == 1 for run in runs)


def test_all_folds_of_a_peer_are_one_job_with_the_authors_settings():
    specs = [spec for spec in TABLES["table6"].specs("text", SEEDS) if isinstance(spec.job, PeerJob)]
    cells = {(spec.row, spec.job.settings.dataset): spec.key for spec in specs}
    rows = {peer: peer for peer in PEERS} | {"1-2-3-gnn-chosen": "1-2-3-gnn"}
    assert set(cells) == {(row, name) for row in rows for name in DATASETS} and len(set(cells.values())) == 28
    for spec in specs:
        assert spec.job.settings == peer_settings(rows[spec.row], spec.column.removeprefix("class-"))
    for row, name in cells:
        folds = [spec.job.fold for spec in specs if (spec.row, spec.job.settings.dataset) == (row, name)]
        assert folds == list(range(FOLDS))


def test_cells_that_are_measured_together_share_a_measurement():
    assert len({spec.key for spec in TABLES["table1"].specs("text", (0,))}) == 3
    assert len({spec.key for spec in TABLES["table4"].specs("text", (0,))}) == 1
    assert len({spec.key for spec in TABLES["memory"].specs("text", (0,))}) == 3
