"""Help answers at once, because nothing heavy is imported before a verb runs."""

import io
import subprocess
import sys
import time

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
    """It stands for an option that is left out."""
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    assert "{None" not in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--lr", "x"], "--lr: 'x' was given, expected a number."),
        (["--taks", "node-clustering"], "Unrecognized options: --taks, node-clustering. Did you mean --task?"),
        (["--keep", "bets"], "--keep is 'bets', expected one of last, best. Did you mean best?"),
        (["--epochs"], "Missing value for argument '--epochs'. Expected 1 values."),
    ],
)
def test_of_the_box_that_tyro_draws_one_sentence_is_kept(arguments, sentence, encoding, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    with pytest.raises(SystemExit):
        main(["train", *arguments])
    assert capsys.readouterr().err == f"idgnn: {sentence} See idgnn train --help.\n"


@pytest.mark.parametrize("option", [["--label", "club"], ["--directed"]])
def test_an_option_of_another_verb_is_not_what_was_meant(option, capsys):
    with pytest.raises(SystemExit):
        main(["predict", "runs/mine", *option])
    said = capsys.readouterr().err
    assert option[0] in said and "Did you mean" not in said


def test_the_version_is_told(capsys):
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
