"""Help answers at once, because nothing heavy is imported before a verb runs."""

import subprocess
import sys
import time

import pytest

from idgnn.cli.main import _VERBS, main

HEAVY = ("torch", "torch_geometric", "networkx", "numpy", "matplotlib", "torchmetrics")


def test_importing_the_command_imports_nothing_heavy():
    code = f"import sys, idgnn.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "[]"


def test_help_takes_less_than_half_a_second():
    command = [sys.executable, "-c", "from idgnn.cli.main import main; main()", "--help"]
    seconds = []
    for _ in range(5):  # the fastest counts: other tests run beside this one
        start = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.5


@pytest.mark.parametrize("verb", _VERBS)
def test_every_verb_has_help_with_an_example(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    said = capsys.readouterr().out
    assert stop.value.code == 0
    assert f"idgnn {verb}" in said


def test_without_a_verb_help_is_shown(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 0
    assert all(verb in capsys.readouterr().out for verb in ["train"])
