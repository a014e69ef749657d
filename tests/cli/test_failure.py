"""A mistake is told in one sentence, also by several processes."""

import json
import subprocess
import sys

import pytest

from idgnn.cli.main import main

SENTENCE = "idgnn: there is no verb 'embedd'. Did you mean embed? See idgnn --help."


@pytest.mark.parametrize(("rank", "prints"), [("0", True), ("1", False)])
def test_the_first_process_prints_and_every_one_reports(rank, prints, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    monkeypatch.setattr("idgnn.cli.failure._HEAD_START", 0)
    with pytest.raises(SystemExit) as ended:
        main(["embedd"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (f"{SENTENCE}\n" if prints else "")
    assert json.loads((tmp_path / "error.json").read_text())["message"]["message"] == SENTENCE


@pytest.mark.parametrize("arguments", [["embed"], ["embed", "--help"]])
def test_help_and_mistakes_in_the_arguments_are_printed_by_the_first_process(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    printed = {}
    for rank in ("0", "1"):
        monkeypatch.setenv("RANK", rank)
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        printed[rank] = ended.value.code, "".join(capsys.readouterr())
    assert printed["0"][1] and printed["1"] == (printed["0"][0], "")


def test_processes_of_other_launchers_print_all(monkeypatch, capsys):
    """Nobody else would show what a later process has found."""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    with pytest.raises(SystemExit):
        main(["embedd"])
    assert capsys.readouterr().err == f"{SENTENCE}\n"


def test_torchrun_prints_the_sentence_once_and_ends_with_it():
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run([*launcher, "-m", "idgnn", "embedd"], capture_output=True, text=True, check=False)
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and lines.count(SENTENCE) == 1
    assert lines[-2] == f"  traceback : {SENTENCE}"  # torchrun's summary, where it would show a traceback
