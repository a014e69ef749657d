"""Our published results: every run has its record, and pages and README show what the records hold."""

import re
from pathlib import Path

import pytest

from idgnn.cli.main import main
from idgnn.experiments.grid import MORE_SEEDS, PROTOCOLS, SEEDS, Choice
from idgnn.experiments.spec import RunRecord, job_as_dict
from idgnn.experiments.store import read_records
from idgnn.experiments.tables import TABLES
from idgnn.report.pages import markdown
from idgnn.report.report import Report
from tests.report.made import filled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records() -> dict[str, RunRecord]:
    return read_records(ROOT / "results" / "records.jsonl.gz").records


@pytest.fixture(scope="module")
def page(records) -> str:
    return markdown(Report(tuple(filled(name, records) for name in TABLES)))


def test_every_run_of_the_grid_has_its_record():
    contents = read_records(ROOT / "results" / "records.jsonl.gz")
    runs = {spec.key: spec for spec in Choice(protocols=PROTOCOLS, seeds=(*SEEDS, *MORE_SEEDS)).specs()}
    complete = Choice(("table1", "table2", "table3", "table4", "memory"), protocols=PROTOCOLS).specs()
    assert {spec.key for spec in complete} <= set(contents.finished) <= set(runs)
    assert not contents.failed and not contents.broken
    for key, record in contents.records.items():
        assert record.job == job_as_dict(runs[key].job) and record.job["data_version"]


def test_the_page_is_generated_from_the_records(page: str):
    ours = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert ours == page, "regenerate it: idgnn report results/records.jsonl.gz --output docs/results.md"


def test_no_record_is_left_out(tmp_path, capsys):
    main(["report", str(ROOT / "results" / "records.jsonl.gz"), "--output", str(tmp_path / "page.md")])
    assert "belong to no cell" not in capsys.readouterr().err


def test_the_readme_has_the_best_of_each_kind(page: str):
    found = re.search(r"### The best of each kind\n\n.*?\n\n(.*?)\n\n", page, re.DOTALL)
    assert found is not None and found[1].count("\n") == 1 + 20 + 6  # a rule, the columns, and their groups
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert found[1] in readme, "copy the table of that name from docs/results.md"


def versions_table(records: dict[str, RunRecord]) -> str:
    """The best of each version with the recommended settings, those of the paper and two beyond it."""
    versions = {
        "plain GNN": "GNN",
        "ID-GNN-Fast": "ID-GNN-Fast",
        "ID-GNN-Full": "ID-GNN-Full",
        "Fast with pair counts": "ID-GNN-Fast, pairs (beyond the paper)",
        "Full with two colors": "ID-GNN-Full, two colors (beyond the paper)",
    }
    lines = [f"| column | {' | '.join(versions)} |", f"| --- {'| ---: ' * len(versions)}|"]
    for table in (filled("table2", records), filled("table3", records)):
        for group, columns in table.groups():
            lines.append(f"| **{group}** |{'  |' * len(versions)}")
            for column in columns:
                best = [table.best("recommended", column, (family,)) for family in versions.values()]
                means = [f"{cell.mean:.3f}" if cell and cell.mean is not None else "" for cell in best]
                lines.append(f"| {column.title} | {' | '.join(means)} |")
    return "\n".join(lines)


def test_fast_or_full_has_the_best_of_each_version(records):
    table = versions_table(records)
    assert table.count("\n") == 1 + 20 + 6  # a rule, the columns, and their groups
    assert table in (ROOT / "docs" / "fast_or_full.md").read_text(encoding="utf-8"), f"copy this table:\n{table}"
