"""`idgnn train`, `predict`, `embed` and `inspect` on a folder of tables."""

import csv
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from idgnn.cli import tables
from idgnn.cli.main import main
from idgnn.training.relational_runs import TableRun, load_run, predictions
from idgnn.training.run_folder import locked
from tests.cli.small_tables import SCHEMA, TASKS, run_of, train, write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tables(tmp_path)


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_train_predict_and_embed_a_recommendation(folder, capsys):
    train(folder, "--task", "recommendation", "--epochs", "30", "--lr", "0.03")
    out = capsys.readouterr().out
    assert "Columns of text or without values are left out: remark of users." in out
    assert "most used, 5 years" in out and "past visits, 5 years" in out
    record = json.loads((run_of(folder) / "relational.json").read_text())
    assert record["metrics"]["test"]["map"] > record["heuristics"]["test"]["most used, 1 year"]["map"]

    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\nu0,2003-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    rows = rows_of(folder / "out.csv")
    assert [(row["user"], row["day"], row["rank"]) for row in rows] == [
        ("u1", "2004-01-01", "1"),
        ("u1", "2004-01-01", "2"),
        ("u0", "2003-01-01", "1"),
        ("u0", "2003-01-01", "2"),
    ]
    assert float(rows[0]["score"]) >= float(rows[1]["score"])
    main(["embed", str(run_of(folder)), *given, "--output", str(folder / "h.csv")])
    assert [len(row) for row in rows_of(folder / "h.csv")] == [2 + 8] * 2


@pytest.mark.parametrize("color", ["message", "message+update"])
def test_the_color_of_a_run_is_kept_with_it(folder, color):
    train(folder, "--task", "entity-regression", "--epochs", "1", "--color", color)
    run = load_run(run_of(folder))
    assert run.record["settings"]["color"] == run.model.settings["color"] == color
    updates = [name for name in run.model.state_dict() if name.endswith("update_colored")]
    assert len(updates) == (2 if color == "message+update" else 0)


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ((), (10, 0.003, 0.0, "best")),
        (("--epochs", "2", "--lr", "0.01", "--weight-decay", "0.0005", "--keep", "last"), (2, 0.01, 0.0005, "last")),
    ],
)
def test_tables_have_defaults_of_their_own_and_a_choice_wins(folder, given, taken):
    """Also where the choice is the default of graphs."""
    size = ("--layers", "2", "--width", "8", "--runs", str(folder / "runs"))
    main(["train", "--tables", str(folder), "--task", "entity-regression", *size, *given])
    settings = load_run(run_of(folder)).record["settings"]
    assert tuple(settings[name] for name in ("epochs", "lr", "weight_decay", "select")) == taken


def test_train_and_predict_a_number(folder, capsys):
    train(folder, "--task", "entity-regression", "--identity", "none")
    assert "median" in capsys.readouterr().out
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    [row] = rows_of(folder / "out.csv")
    assert set(row) == {"user", "day", "visits"}


def stopped(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that was stopped in its second epoch."""
    lines = tables._line

    def stop(epoch):
        if epoch["epoch"] == 1:
            raise KeyboardInterrupt
        return lines(epoch)

    monkeypatch.setattr(tables, "_line", stop)
    with pytest.raises((KeyboardInterrupt, SystemExit)):
        train(folder, "--task", "entity-regression", "--device", "cpu", "--width", "4")
    monkeypatch.setattr(tables, "_line", lines)
    return run_of(folder)


def test_a_stopped_run_is_resumed(folder, capsys, monkeypatch):
    run = stopped(folder, monkeypatch)
    assert not (run / "relational.json").exists()
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    with pytest.raises(ValueError, match="not finished"):
        load_run(run)
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["predict", str(run), "--tables", str(folder), "--queries", str(folder / "ask.csv")])
    assert "is not finished. Go on with it: idgnn train --resume" in capsys.readouterr().err
    main(["train", "--resume", str(run)])
    out = capsys.readouterr().out
    assert "epoch 3" in out and "epoch 1 " not in out
    record = json.loads((run / "relational.json").read_text())
    assert (record["settings"]["hidden_channels"], len(record["epochs"])) == (4, 3)
    assert not (run / "checkpoint.safetensors").exists()
    with pytest.raises(SystemExit):
        main(["train", "--resume", str(run)])
    assert "is finished" in capsys.readouterr().err


def test_two_at_a_time_are_refused(folder, capsys, monkeypatch):
    run = stopped(folder, monkeypatch)
    before = {path.name: path.read_bytes() for path in run.iterdir()}
    with locked(run, lambda: True), pytest.raises(SystemExit) as ended:
        main(["train", "--resume", str(run)])
    assert ended.value.code == 2 and "another process is training in" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in run.iterdir()} == before
    main(["train", "--resume", str(run)])  # and the lock is free again
    assert (run / "relational.json").exists()


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("visits.csv", "u1,i1,2000-06-01", "u1,i1,2000-06-02"),
        ("users.csv", "text of u1", "text of u2"),
        ("count_valid.csv", "u1,6", "u1,7"),
        ("schema.toml", '[items]\nkey = "id"', '[items]\nkey = "id"\ncategorical = ["id"]'),
        ("tasks.toml", 'valid = "count_valid.csv"', 'valid = "count_train.csv"'),
    ],
)
def test_changed_data_are_refused(folder, capsys, monkeypatch, file, before, after):
    run, text = stopped(folder, monkeypatch), (folder / file).read_text()
    assert before in text
    (folder / file).write_text(text.replace(before, after))
    with pytest.raises(SystemExit) as ended:
        main(["train", "--resume", str(run)])
    message = f"the data have changed since the run in {run} was started. Restore them, or start a new run."
    assert ended.value.code == 2 and message in " ".join(capsys.readouterr().err.split())
    (folder / file).write_text(text)
    main(["train", "--resume", str(run)])
    assert (run / "relational.json").exists()


def test_other_settings_are_refused(folder, monkeypatch):
    run = stopped(folder, monkeypatch)
    begun = TableRun.load(run)
    other = replace(begun, settings=replace(begun.settings, lr=0.5))
    with pytest.raises(ValueError, match=r"has other settings. Resume it with its own"):
        other.train(run, *other.read())


def test_what_is_trained_is_printed_and_names_the_folder(folder, capsys):
    train(folder, "--task", "entity-regression", "--keep", "last", "--lr", "0.01")
    lines = capsys.readouterr().out.splitlines()
    size = sum(weight.numel() for weight in load_run(run_of(folder)).model.parameters())
    said = f"{folder.name}, count: identity full, 2 layers, width 8, {size:,} parameters, 3 epochs, lr 0.01, seed 0"
    assert said in lines and lines.index(said) < next(i for i, line in enumerate(lines) if line.startswith("epoch 1"))
    name = f"{folder.name}_entity-regression_full_layers=2_width=8_epochs=3_lr=0.01_keep=last_seed0_"
    assert run_of(folder).name.startswith(name)


def test_a_run_with_the_defaults_is_named_after_none_of_them(folder, capsys):
    main(["train", "--tables", str(folder), "--task", "entity-regression", "--runs", str(folder / "runs")])
    assert "identity full, 4 layers, width 64, " in capsys.readouterr().out
    assert run_of(folder).name.startswith(f"{folder.name}_entity-regression_full_seed0_")


def test_a_date_of_tasks_may_be_one_of_toml(folder):
    """2003-01-01 without quotes is no text."""
    (folder / "tasks.toml").write_text(TASKS + "upto = { valid = 2003-01-01 }\n")
    train(folder, "--task", "entity-regression", "--epochs", "1")
    assert load_run(run_of(folder)).task.upto == {"valid": "2003-01-01"}


def test_columns_by_pytorch_frame_are_trained_saved_and_read_again(folder):
    pytest.importorskip("torch_frame")
    rows = [f"i{i},{i / 2},{'ab'[i % 2]},200{i}-01-01\n" for i in range(6)]
    (folder / "items.csv").write_text("id,price,kind,made\n" + "".join(rows))
    train(folder, "--task", "recommendation", "--columns", "frame", "--dropout", "0.1")
    run = load_run(run_of(folder))
    assert list(run.model.encoder.encoders.keys()) == ["items"]
    weights = dict(run.model.encoder.encoders["items"].named_parameters())
    assert {name.split(".")[2] for name in weights} == {"numerical", "categorical", "timestamp"}
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    found = predictions(run, folder, folder / "ask.csv")
    assert len(found["items"]) == 2 and predictions(load_run(run_of(folder)), folder, folder / "ask.csv") == found
    # A row without values is answered, too.
    (folder / "items.csv").write_text("id,price,kind,made\n" + "".join(rows[:5]) + "i5,,c,\n")
    assert all(math.isfinite(score) for score in predictions(run, folder, folder / "ask.csv")["score"])


@pytest.mark.parametrize("names", [("no", "yes"), ("low", "middle", "high")])
def test_classes_have_names(folder, names, capsys):
    with (folder / "tasks.toml").open("a") as file:
        file.write(
            TASKS.split("[count]")[1].join(["\n[level]", ""]).replace("entity-regression", "entity-classification")
        )
    for part, years in (("train", (1, 2)), ("valid", (3,))):
        rows = [f"200{y}-01-01,u{u},{names[u % len(names)]}\n" for y in years for u in range(6)]
        (folder / f"count_{part}.csv").write_text("day,user,visits\n" + "".join(rows))
    train(folder, "--task", "entity-classification")
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv")]
    main(["predict", str(run_of(folder)), *given, "--output", str(folder / "out.csv")])
    [row] = rows_of(folder / "out.csv")
    assert row["visits"] in names
    shares = {name: float(row[f"probability_{name}"]) for name in names if f"probability_{name}" in row}
    assert set(shares) == (set(names) if len(names) > 2 else {"yes"})
    if len(names) > 2:
        assert sum(shares.values()) == pytest.approx(1, abs=1e-5) and max(shares, key=shares.get) == row["visits"]


def test_names_where_numbers_are_expected_get_a_sentence(folder, capsys):
    (folder / "count_train.csv").write_text("day,user,visits\n2001-01-01,u1,yes\n")
    with pytest.raises(SystemExit):
        train(folder, "--task", "entity-regression")
    error = " ".join(capsys.readouterr().err.split())
    assert "column 'visits' is 'yes', expected a number. Classes by name are for entity-classification" in error


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("", "there are no queries to answer"),
        ("u1,2031-01-01\n", "asks about 2031-01-01, more than a year in the future of the data"),
        ("u1,1999-01-01\n", "nothing was known before"),
    ],
)
def test_queries_that_cannot_be_answered_are_refused(folder, capsys, rows, message):
    train(folder, "--task", "entity-regression", "--epochs", "1")
    (folder / "ask.csv").write_text("user,day\n" + rows)
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv"), "--output", str(folder / "out.csv")]
    with pytest.raises(SystemExit):
        main(["predict", str(run_of(folder)), *given])
    assert message in capsys.readouterr().err and not (folder / "out.csv").exists()


def test_inspect_prints_schema_reach_and_cost(folder, capsys):
    main(["inspect", "--tables", str(folder)])
    out = capsys.readouterr().out
    assert "user → users" in out
    assert "Layers that a color needs" in out
    assert "Cost of ID-GNN-Full" in out


def test_inspect_takes_tables_with_times_and_tables_without_foreign_keys(folder, capsys):
    (folder / "users.csv").write_text("id,since\nu0,2000-01-01\n" + "".join(f"u{i},2001-01-01\n" for i in range(1, 6)))
    (folder / "extra.csv").write_text("name,size\n")
    schema = SCHEMA.replace('[users]\nkey = "id"', '[users]\nkey = "id"\ntime = "since"')
    (folder / "schema.toml").write_text(schema + '[extra]\nkey = "name"\n')
    main(["inspect", "--tables", str(folder)])
    out = capsys.readouterr().out
    costs = out[out.index("Cost of ID-GNN-Full") :]
    assert "users" in costs and "items" in costs and "visits" not in costs
    assert "No foreign key starts or ends at table 'extra'" in out


def test_an_empty_part_gets_a_sentence(folder, capsys):
    (folder / "valid.csv").write_text("day,user,items\n")
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation")
    assert "the part 'valid' has no queries" in capsys.readouterr().err
    (folder / "valid.csv").write_text("day,user,items\n2003-01-01,u1,[]\n")
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation")
    assert "no query of the part 'valid' has a relevant item" in capsys.readouterr().err


def test_tables_without_any_use_of_an_item(folder, capsys):
    (folder / "visits.csv").write_text("user,item,day\n")
    train(folder, "--task", "recommendation", "--epochs", "1")
    assert "past visits, all years" in capsys.readouterr().out


@pytest.mark.parametrize("identity", ["full", "fast", "none"])
def test_entities_and_items_with_times_keep_their_numbers(folder, identity, capsys):
    """The first user and the first item come last: others keep their answers, an item is ranked once it is there."""
    since = ["2003-06-01", *["1999-01-01"] * 5]
    for name, letter in (("users", "u"), ("items", "i")):
        rows = [f"{letter}{i},{time}\n" for i, time in enumerate(since)]
        (folder / f"{name}.csv").write_text("id,since\n" + "".join(rows))
    timed = SCHEMA.replace('key = "id"', 'key = "id"\ntime = "since"')
    (folder / "schema.toml").write_text(timed)
    for path in folder.glob("*.csv"):
        if path.name not in ("users.csv", "items.csv"):  # nothing happens to the two before they are there
            lines = [line for line in path.read_text().splitlines() if "u0" not in line]
            path.write_text("\n".join(line for line in lines if "visits" not in path.name or "i0" not in line) + "\n")
    train(folder, "--task", "recommendation", "--identity", identity, "--window-years", "2")
    run = load_run(run_of(folder))
    (folder / "ask.csv").write_text("user,day\nu3,2003-01-01\nu3,2004-01-01\nu1,2003-01-01\n")
    with_all = predictions(replace(run, task=replace(run.task, k=9)), folder, folder / "ask.csv")
    listed = {(user, day): [] for user, day in zip(with_all["user"], with_all["day"], strict=True)}
    for user, day, item, score in zip(*(with_all[name] for name in ("user", "day", "items", "score")), strict=True):
        listed[user, day].append((item, score))
    assert [len(found) for found in listed.values()] == [5, 6, 5]
    assert "i0" not in {item for item, _ in listed["u3", "2003-01-01"]}

    for name in ("users", "items"):  # the same tables without the two that come later
        lines = (folder / f"{name}.csv").read_text().splitlines()
        (folder / f"{name}.csv").write_text("\n".join([lines[0], *lines[2:]]) + "\n")
    (folder / "ask.csv").write_text("user,day\nu3,2003-01-01\n")
    alone = predictions(replace(run, task=replace(run.task, k=9)), folder, folder / "ask.csv")
    scores = dict(zip(alone["items"], alone["score"], strict=True))
    assert scores == pytest.approx(dict(listed["u3", "2003-01-01"]), abs=1e-5)


def test_a_query_before_its_entity_is_a_bad_row(folder, capsys):
    rows = "".join(f"u{i},200{i}-02-03\n" for i in range(6))
    (folder / "users.csv").write_text("id,since\n" + rows)
    (folder / "schema.toml").write_text(SCHEMA.replace('[users]\nkey = "id"', '[users]\nkey = "id"\ntime = "since"'))
    with pytest.raises(SystemExit):
        train(folder, "--task", "entity-regression")
    message = "count_train.csv:3: asks about 'u1' at 2001-01-01, but its row of table 'users' is of 2001-02-03"
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "recommendation", "--layers", "1"], "'items' is 2 message steps from 'users'"),
        (["--task", "entity-classification"], "has 0 tasks of the kind entity-classification"),
        (["--task", "recommendation", "--target", "what"], "has no task 'what'; it has next, count"),
        (["--task", "recommendation", "--target", "count"], "is of the kind entity-regression"),
        (["--task", "node-classification"], "--tables is for the tasks"),
        (["ENZYMES", "--task", "recommendation"], "beside a dataset"),
        (["--task", "recommendation", "--class-weights", "balanced"], "--class-weights has no effect with --tables"),
        (["--task", "recommendation", "--conv", "gin", "--batch-size", "4"], "--conv, --batch-size have no effect"),
        (["--task", "recommendation", "--conv", "gcn"], "--conv has no effect with --tables"),  # as by default
        (["--task", "recommendation", "--no-compile", "--features=auto"], "--compile, --features have no effect"),
        (["--task", "recommendation", "--features", "degree"], "--features has no effect with --tables, which takes"),
        (["--task", "recommendation", "--conv", "gin"], "--window-years, --columns. Leave it out."),
        (["--task", "recommendation", "--label", "y"], "beside a dataset or files of graphs"),
        (["--task", "recommendation", "--identity", "fast", "--color", "message"], "--color has no effect without"),
        (["--task", "recommendation", "--window-years", "-1"], "window_years is -1.0, expected more than 0 years"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(folder, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        train(folder, *arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_run_on_tables_wants_tables(folder, capsys):
    train(folder, "--task", "entity-regression", "--epochs", "1")
    with pytest.raises(SystemExit):
        main(["predict", str(run_of(folder)), "ENZYMES"])
    assert "Add --tables FOLDER and --queries FILE" in capsys.readouterr().err


def test_a_task_for_tables_without_tables(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--task", "recommendation"])
    assert "Add --tables FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "recommendation"', 'kind = "guess"', "of the kind 'guess', expected one of"),
        ('item_table = "items"\n', "", "item_table belongs to a recommendation"),
        ('time = "day"\ntarget = "items"', 'target = "items"', "has no time"),
        ("k = 2", "depth = 2", "has 'depth', expected some of"),
        ("k = 2", "k = 0", "k is 0, expected"),
        ("k = 2", 'upto = { tst = "2003-01-01" }', "upto names 'tst', expected some of train, valid, test"),
        ("[next]", "[next", "is not a file of tasks in TOML"),
    ],
)
def test_a_file_of_tasks_that_does_not_fit_is_refused(folder, capsys, old, new, message):
    assert old in TASKS
    (folder / "tasks.toml").write_text(TASKS.replace(old, new))
    with pytest.raises(SystemExit):
        train(folder, "--task", "recommendation")
    assert message in capsys.readouterr().err


def test_several_processes_of_torchrun_are_refused(folder, monkeypatch, capsys):
    train(folder, "--task", "recommendation", "--epochs", "1")
    given = ["--tables", str(folder), "--queries", str(folder / "ask.csv"), "--output", str(folder / "out.csv")]
    (folder / "ask.csv").write_text("user,day\nu1,2004-01-01\n")
    for name, value in {
        "RANK": 0,
        "LOCAL_RANK": 0,
        "WORLD_SIZE": 2,
        "MASTER_ADDR": "localhost",
        "MASTER_PORT": 1,
    }.items():
        monkeypatch.setenv(name, str(value))
    run = run_of(folder)
    for start in (
        lambda: train(folder, "--task", "recommendation", "--epochs", "1"),
        lambda: main(["predict", str(run), *given]),
        lambda: main(["embed", str(run), *given]),
    ):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            start()
        assert "torchrun started 2, of which each would do all of it" in capsys.readouterr().err
    assert run_of(folder) == run and not (folder / "out.csv").exists()
