"""Help answers at once, because nothing heavy is imported before a verb runs."""

import contextlib
import io
import subprocess
import sys
import time
import warnings

import pytest

from idgnn.cli import main as module
from idgnn.cli.main import _VERBS, main

HEAVY = ("torch", "torch_geometric", "networkx", "numpy", "matplotlib", "torchmetrics")


def test_importing_the_command_imports_nothing_heavy():
    code = f"import sys, idgnn.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_help_takes_little_longer_than_reading_the_arguments():
    """It takes 0.2 s where importing tyro takes 0.07; one import of PyTorch would make it seconds."""
    commands = {"help": "import sys; sys.argv[1:] = ['--help']; from idgnn.cli.main import main; main()"}
    commands["tyro"] = "import tyro"
    seconds = {name: list[float]() for name in commands}
    for _ in range(5):  # taking turns, and the fastest counts: other tests run beside this one
        for name, code in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
            seconds[name].append(time.perf_counter() - start)
    assert min(seconds["help"]) < 7 * min(seconds["tyro"])


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_has_help_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    said = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"idgnn {verb}" in said


@pytest.mark.parametrize("verb", _VERBS)
def test_none_is_no_choice_in_help(verb, capsys):
    """None means that an option is left out."""
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "{None" not in capsys.readouterr().out


def test_help_names_the_depths_that_are_chosen(capsys, monkeypatch):
    """Of graphs as in `automatic`, of tables as a run on tables takes it."""
    from idgnn.training.automatic import _DEPTHS
    from idgnn.training.relational import RelationalSettings

    monkeypatch.setenv("COLUMNS", "80")  # in one column
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    said = " ".join(word for word in capsys.readouterr().out.split() if word.strip("│|"))
    *most, last = map(str, _DEPTHS["pair"])
    [nodes] = {*_DEPTHS["node"], *_DEPTHS["graph"]}
    depths = f"unless given {nodes}, for pairs of nodes the deepest of {', '.join(most)} and {last} that a timed step"
    assert f"{depths} allows, and {RelationalSettings.num_layers} with --tables." in said


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["train", "--lr", "x"], "Error parsing --lr: 'x' was given, expected a number."),
        (["train", "--epochs", "1.5"], "Error parsing --epochs: '1.5' was given, expected a whole number."),
        (["train", "--width", "1.5"], "Error parsing --width: '1.5' was given, expected a whole number."),
        (["train", "--seeds", "0", "x"], "Error parsing --seeds: 'x' was given, expected a whole number."),
        (
            ["train", "--task", "dancing"],
            "invalid choice 'dancing' for argument '--task'. Expected one of ('node-class",
        ),
        (["train", "--keep", "bets"], "invalid choice 'bets' for argument '--keep'. Expected one of ('last', 'best')."),
        (["train", "--taks", "x"], "Unrecognized options: --taks, x"),
        (["train", "--epochs"], "Missing value for argument '--epochs'."),
        (["train", "--epochs", "0"], "epochs is 0, expected a whole number of at least 1."),
        (["train", "--split", "folds", "--test", "0.1"], "which has no test part"),
        (["predict"], "Missing from idgnn predict: RUN"),
        (["reproduce", "table9"], "invalid choice 'table9' for argument 'what'. Expected one of ('list', 'table1',"),
        (["reproduce", "table2", "--jobs", "x"], "Error parsing --jobs: 'x' was given, expected a whole number."),
    ],
)
def test_mistakes_in_arguments_are_reported_with_what_was_expected(arguments, sentence, encoding, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    said = " ".join(word for word in capsys.readouterr().err.split() if word.strip("│|"))
    assert stop.value.code == 2
    assert (sentence in said and f"idgnn {arguments[0]} --help" in said) or "idgnn --help" in said


def test_an_option_that_is_spelled_wrong_is_suggested(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--taks", "node-clustering"])
    said = capsys.readouterr().err
    assert "Perhaps you meant:" in said and "--task {" in said


@pytest.mark.parametrize("option", [["--label", "club"], ["--directed"]])
def test_an_option_of_another_verb_is_not_suggested(option, capsys):
    with pytest.raises(SystemExit):
        main(["predict", "runs/mine", *option])
    said = capsys.readouterr().err
    assert f"Unrecognized options: {option[0]}" in said and "Perhaps" not in said


def warn_and(end):
    def verb():
        warnings.warn("check your edges", UserWarning, stacklevel=2)
        warnings.warn("for programmers", FutureWarning, stacklevel=2)
        end()

    return verb


def fail():
    raise ValueError("wrong")


@pytest.mark.parametrize("end", [lambda: None, fail, sys.exit], ids=["success", "error", "exit"])
def test_warnings_are_notes_while_a_command_runs_and_as_before_afterwards(end, capsys, monkeypatch):
    monkeypatch.setattr(module, "_parse", lambda given: warn_and(end))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        show, filters = warnings.showwarning, list(warnings.filters)
        with contextlib.suppress(SystemExit):
            main(["env"])
        assert warnings.showwarning is show and warnings.filters == filters
    assert capsys.readouterr().err.splitlines()[0] == "idgnn: note: check your edges"


def test_warnings_of_other_kinds_are_shown_as_python_shows_them(capsys, monkeypatch):
    monkeypatch.setattr(module, "_parse", lambda given: lambda: warnings.warn("overflow", RuntimeWarning, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *place: print(f"{category.__name__}: {message}")
        main(["env"])
    assert capsys.readouterr() == ("RuntimeWarning: overflow\n", "")


def test_the_version_is_printed(capsys):
    main(["--version"])
    assert capsys.readouterr().out.startswith("idgnn:")


def test_without_a_verb_help_is_shown(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 0
    assert all(verb in capsys.readouterr().out for verb in ["train"])


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "a/b"), "a/b cannot be used: permission denied."),
        (OSError(28, "No space left on device"), "no space left on device."),
        (OSError("My/Store could not be written as a whole."), "My/Store could not be written as a whole."),
    ],
)
def test_what_the_system_refuses_is_one_sentence(error, sentence, capsys, monkeypatch):
    def fail(given):
        raise error

    monkeypatch.setattr(module, "_parse", fail)
    with pytest.raises(SystemExit):
        main(["env"])
    assert capsys.readouterr().err == f"idgnn: {sentence}\n"
