"""Options that have no effect, with `--tables` or without, are refused in a sentence."""

from pathlib import Path

import pytest

from idgnn.cli.main import main
from tests.cli.small_tables import SCHEMA, run_of, train, write_tables

CLUSTERING = ["ENZYMES", "--task", "graph-clustering"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path)


def test_a_window_has_no_effect_on_tables_without_times(folder, capsys):
    (folder / "schema.toml").write_text(SCHEMA.replace('time = "day"\n', ""))
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation", "--window-years", "2")
    assert "--window-years has no effect on tables without times" in capsys.readouterr().err


def test_columns_have_no_effect_on_tables_without_any(folder, capsys):
    pytest.importorskip("torch_frame")
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation", "--columns", "frame")
    assert "--columns has no effect on tables that have no columns but keys" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["train", *CLUSTERING, "--window-years", "2"],
            "--window-years has no effect without",
        ),
        (["train", *CLUSTERING, "--columns", "frame"], "--columns has no effect without"),
        (
            ["train", "ENZYMES", "--target", "x", "--tasks", "t.toml"],
            "--tasks, --target have no effect without",
        ),
        (["inspect", "ENZYMES", "--schema", "schema.toml"], "--schema has no effect without --tables FOLDER."),
        (["inspect", "ENZYMES", "--tables", "."], "--tables was given beside a dataset"),
        (["inspect", "--tables", ".", "--edges", "e.csv"], "--tables was given beside a dataset or files"),
        (["inspect", "ENZYMES", "--layers", "4"], "--graph, --node and --layers are for a picture"),
        (
            ["inspect", "ENZYMES", "--label", "y", "--directed"],
            "--label, --directed have no effect with a dataset",
        ),
        (
            ["train", *CLUSTERING, "--nodes", "n.csv"],
            "--nodes has no effect with a dataset",
        ),
        (["counts", "ENZYMES", "--missing", "zero"], "--missing has no effect with a dataset by name (ENZYMES)"),
    ],
)
def test_options_without_effect_are_refused(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_options_without_effect_on_a_run_are_refused(folder, capsys):
    train(folder, "--task", "entity-regression", "--epochs", "1")
    given = [str(run_of(folder)), "--tables", str(folder), "--queries", str(folder / "ask.csv")]
    for verb, more, message in (
        ("predict", ["ENZYMES"], "--tables was given beside a dataset or files of graphs"),
        ("embed", ["--edges", "e.csv"], "--tables was given beside a dataset or files of graphs"),
        (
            "predict",
            ["--batch-size", "3", "--memory", "1GiB"],
            "--memory, --batch-size have no effect on a run",
        ),
        ("embed", ["--pairs", "p.csv"], "--pairs has no effect on a run that was trained on tables"),
    ):
        with pytest.raises(SystemExit):
            main([verb, *given, *more])
        assert message in capsys.readouterr().err
    (folder / "graphs").mkdir()
    with pytest.raises(SystemExit):
        main(["predict", str(folder / "graphs"), "ENZYMES", "--queries", "ask.csv"])
    assert "was not trained on tables, and --queries is for those" in capsys.readouterr().err


def test_batches_of_queries_are_refused_for_whole_graphs_before_anything_is_read(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["train", "--edges", "nowhere.csv", "--task", "graph-classification", "--query-batch-size", "32"])
    said = capsys.readouterr()
    assert ended.value.code == 2 and said.out == ""
    assert "query_batch_size is 32, the nodes or pairs in a batch, but the task asks about whole graphs" in said.err
