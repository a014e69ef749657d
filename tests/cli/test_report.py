import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from idgnn.cli.main import main
from idgnn.experiments.grid import QUICK_SEEDS, Choice, quick
from idgnn.experiments.store import write_records
from tests.report.made import AS_PUBLISHED, record, records_of, runs

Said = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    write_records(tmp_path / "results" / "records.jsonl", records_of(AS_PUBLISHED).values())
    return tmp_path / "results"


def fails(said: Said, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        main(["report", *arguments])
    assert stop.value.code == 2
    return said.readouterr().err


@pytest.mark.parametrize(("name", "begins"), [("a.html", "<!doctype html>"), ("a.md", "# "), ("a.tex", "% ")])
def test_the_ending_of_the_output_says_the_format(store: Path, tmp_path: Path, capsys: Said, name: str, begins: str):
    main(["report", str(store), "--output", str(tmp_path / name), "--tables", "table2"])
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert text.startswith(begins) and "36 of 768 runs" in text
    assert f"{name}: 1 table, 36 records" in capsys.readouterr().out


def test_without_output_it_is_printed(store: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "120")
    main(["report", str(store), "--tables", "table2"])
    assert "Table 2: Graph properties" in capsys.readouterr().out
    main(["report", str(store / "records.jsonl"), "--format", "markdown", "--tables", "table2", "table3"])
    said = capsys.readouterr().out
    assert "## Table 2" in said and "## Table 3" in said and "## Table 4" not in said


def test_lines_that_are_no_records_are_named(store: Path, capsys: Said):
    with (store / "records.jsonl").open("a") as file:
        file.write('{"key": ')
    main(["report", str(store), "--format", "markdown", "--tables", "table2"])
    assert "records.jsonl:37 is not a record" in capsys.readouterr().err


def test_mistakes_are_told_in_a_sentence(store: Path, tmp_path: Path, capsys: Said):
    assert "expected the records of a store" in fails(capsys, str(tmp_path / "nowhere"))
    assert "Add --output" in fails(capsys, str(store), "--format", "html")
    assert "expected an extension of .md" in fails(capsys, str(store), "--output", "report.docx")
    assert "table9" in fails(capsys, str(store), "--tables", "table9")


def test_a_report_needs_no_torch(store: Path, tmp_path: Path):
    arguments = ["report", str(store), "--output", str(tmp_path / "report.html")]
    code = f"import sys; from idgnn.cli.main import main; main({arguments}); print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.splitlines()[-1] == "False"


def test_quick_runs_are_shown_and_compared_with_nothing(tmp_path: Path, capsys: Said):
    records = records_of(AS_PUBLISHED)
    small = {spec.key: quick(spec).key for specs in runs("table2").values() for spec in specs}
    write_records(tmp_path / "records.jsonl", [replace(each, key=small[key]) for key, each in records.items()])
    main(["report", str(tmp_path), "--quick", "--format", "markdown", "--tables", "table2"])
    said = capsys.readouterr()
    assert "## Table 2: Graph properties (quick: not comparable with published numbers)" in said.out
    assert "0.985" in said.out and "| published |" not in said.out
    assert "▲" not in said.out.split("## Table 2")[1] and "Expectations" not in said.out
    assert "36 of 408 runs finished" in said.out  # one protocol, and the three seeds that were run
    assert "released" not in said.out.split("## Summary")[0]
    assert "belong to no cell" not in said.err and "not comparable with published numbers" in said.err


def test_quick_runs_count_against_what_quick_runs(tmp_path: Path, capsys: Said):
    specs = Choice(("table2",), quick=True, seeds=QUICK_SEEDS).specs()
    write_records(tmp_path / "records.jsonl", [record(spec, 0.5) for spec in specs[:5]])
    main(["report", str(tmp_path), "--quick", "--format", "markdown"])
    assert f"5 of {len(specs)} runs finished" in capsys.readouterr().out


def test_what_was_measured_without_quick_is_not_shown_as_quick(store: Path, capsys: Said):
    with pytest.raises(SystemExit):
        main(["report", str(store), "--quick"])
    assert "holds no run of idgnn reproduce --quick" in capsys.readouterr().err


def test_records_that_are_of_no_cell_are_counted(tmp_path: Path, capsys: Said):
    other = [replace(record, key=f"other-{key}") for key, record in records_of(AS_PUBLISHED).items()]
    write_records(tmp_path / "records.jsonl", other[:2])
    main(["report", str(tmp_path), "--format", "markdown", "--tables", "table2"])
    assert "2 of 2 records belong to no cell of a table and are not shown: runs of --quick" in capsys.readouterr().err
