"""Whole tables: which cells they have, what is best, and what identities are worth."""

from dataclasses import replace

import pytest

from idgnn.experiments.tables import TABLES
from idgnn.report.gains import gains
from tests.report.made import AS_PUBLISHED, COLUMN, filled, record, records_of, runs, table2


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_complete_without_records(name):
    table = filled(name, {})
    assert {cell.status for cell in table.ours()} == {"missing"}
    assert any(line == "published" for line, _, _ in table.cells)
    recommended_alone = [row for row in table.table.rows if row.name.startswith("two-")]  # without a run, not shown
    assert not any(table.sources(row, table.table.columns) for row in recommended_alone)
    assert all(table.sources(row, table.table.columns) for row in table.table.rows if row not in recommended_alone)


def test_models_beyond_the_paper_have_no_released_and_no_published_numbers():
    table = filled("table2", {})
    row = next(row for row in table.table.rows if row.name == "walks-gcn")
    assert table.sources(row, table.table.columns) == ["text"]


def test_further_seeds_count_where_they_were_run():
    found = records_of({"gcn": (0.6, 0.7, 0.8)})
    more = [spec for spec in TABLES["table2"].specs("text", (5,)) if (spec.row, spec.column) == ("gcn", COLUMN)]
    found |= {spec.key: record(spec, 0.9) for spec in more}
    cells = filled("table2", found).cells
    assert (cells["text", "gcn", COLUMN].n, cells["text", "gcn", COLUMN].total) == (4, 4)
    assert cells["text", "gcn", COLUMN].mean == pytest.approx(0.75)
    assert cells["text", "sage", COLUMN].total == 3


def test_the_best_of_each_family_and_of_the_column_are_marked():
    table = table2(AS_PUBLISHED)
    heading = table.table.columns[0]
    for line in ("published", "text"):
        marks = {row.name: table.mark(line, row, heading) for row in table.table.rows}
        assert {row: mark for row, mark in marks.items() if mark} == {
            "gin": "family", "fast-sage": "family", "full-gcn": "column",
        }  # fmt: skip


def test_cells_that_print_alike_are_marked_alike():
    table = table2({**AS_PUBLISHED, "full-gcn": (0.98004,) * 3, "full-gin": (0.97996,) * 3, "full-sage": (0.979,) * 3})
    heading = table.table.columns[0]
    marks = {row.name: table.mark("text", row, heading) for row in table.table.rows}
    assert (marks["full-gcn"], marks["full-gin"], marks["full-sage"]) == ("column", "column", "")


def test_gains_by_hand():
    values = {**AS_PUBLISHED, "full-gcn": (0.97, 0.98, 0.99), "gin": (0.700, 0.700, 0.700)}
    theirs, text, released = gains(table2(values))[0].values()
    assert (theirs.gain, text.gain) == (pytest.approx(0.985 - 0.693), pytest.approx(0.98 - 0.7))
    assert theirs.needed == pytest.approx(0.985 - 0.693 - 0.01)  # the deviation of full-gcn, and none of gin
    assert released.gain is None


def test_models_beyond_the_paper_are_labeled_and_never_the_best():
    made, records = TABLES["table3"], {}
    for row, value in {"gcn": 0.6, "full-gcn": 0.7, "walks-gcn": 0.8, "both-gcn": 0.9}.items():
        for spec in runs(made.name)["text", row, "link-ENZYMES"]:
            records[spec.key] = record(spec, value, metric="roc_auc")
    table = filled(made.name, records)
    heading = next(each for each in made.columns if each.name == "link-ENZYMES")
    beyond = [row for row in made.rows if row.name.startswith(("walks-", "both-", "two-"))]
    assert len(beyond) == 12 and all(row.family.endswith("(beyond the paper)") for row in beyond)
    assert {table.mark("text", row, heading) for row in beyond} == {"family", ""}
    assert not any(row.family.endswith("(beyond the paper)") for row in made.rows if row not in beyond)
    assert "Beyond the paper" in made.note and "ID-GNN-Full, both directions" in made.note
    gain = next(each["text"] for each in gains(table) if each["text"].column is heading)
    assert gain.gain == pytest.approx(0.1)  # 0.7 over 0.6


def test_the_best_of_a_family_is_compared_with_the_published_best():
    made = TABLES["table5"]
    values = {"full-gcn": 0.80, "full-gin": 0.86, "gcn": 0.9}
    records = {}
    for row, value in values.items():
        for spec in runs(made.name)["text", row, "link-ENZYMES"]:
            records[spec.key] = record(spec, value, metric="roc_auc")
    cells = filled(made.name, records).cells
    best = cells["text", "best-full", "link-ENZYMES"]
    assert (best.mean, best.status, best.runs[0].spec.row) == (pytest.approx(0.86), "better", "full-gin")


def test_the_epoch_with_the_best_mean_over_the_folds():
    specs = runs("table6")["text", "gin", "class-MUTAG"]
    curves = [[[1, 0.0, 0.5], [2, 0.0, 0.9], [3, 0.0, 0.6]], [[1, 0.0, 0.9], [2, 0.0, 0.7], [3, 0.0, 0.6]]]
    records = {}
    for spec, curve in zip(specs, curves, strict=False):
        made_record = record(spec, 0.6)
        records[spec.key] = replace(made_record, result={**(made_record.result or {}), "curve": curve})
    cells = filled("table6", records).cells
    assert cells["text", "gin", "class-MUTAG"].mean == pytest.approx(0.6)
    assert cells["text", "gin", "class-MUTAG-best"].mean == pytest.approx(0.8)  # epoch 2, not 0.9 of each fold


def test_measurements_are_found_by_name():
    spec = runs("table1")["text", "layers-3", "n64-d4"][0]
    shares = {
        "sum": {"3": 0.11},
        "multiset": {"3": 0.5},
        "network": {"3": 0.4},
        "plain": {"3": 0.01},
        "num_graphs": 100,
    }
    cells = filled("table1", {spec.key: replace(record(spec, 0), result=shares)}).cells
    found = [cells["text", "layers-3", f"n64-d4-{part}"] for part in ("sum", "multiset", "network", "plain")]
    assert [(cell.mean, cell.status) for cell in found] == [
        (0.11, "within"), (0.5, "alone"), (0.4, "alone"), (0.01, "alone"),
    ]  # fmt: skip
    spec = runs("table4")["text", "gcn", "forward"][0]
    times = {"width": {"gcn": 256}, "forward": {"gcn": {"ms": 2.0, "std": 0.1, "ratio": 1.0}}}
    cells = filled("table4", {spec.key: replace(record(spec, 0), result=times)}).cells
    found = cells["text", "gcn", "forward"]
    assert (found.mean, found.status) == (2.0, "alone")  # the machine is another one, so nothing is judged
    spec = runs("memory")["text", "full-gcn", "roots-16"][0]
    taken = {"rows": {"full-gcn": 7}, "overhead": {"full-gcn": 0.1, "full-gcn-ego": 0.3}}
    cells = filled("memory", {spec.key: replace(record(spec, 0), result=taken)}).cells
    assert [cells["text", row, "roots-16"].mean for row in ("full-gcn", "full-gcn-ego")] == [0.1, 0.3]
