from importlib.metadata import version
from pathlib import Path

import pytest

from idgnn.cli.env import OPTIONAL, REQUIRED
from idgnn.cli.main import main


def test_every_line_names_a_thing_and_its_value(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path))
    monkeypatch.delenv("IDGNN_DATA", raising=False)
    main(["env"])
    lines = capsys.readouterr().out.splitlines()
    said = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert all(said.values()) and len(said) == len(lines)
    assert said["torch"] == version("torch")
    assert not [name for name in REQUIRED if said[name] == "not installed"]
    assert {f"{name} (optional)" for name in OPTIONAL} < said.keys()
    assert (said["IDGNN_CACHE"], said["IDGNN_DATA"]) == (str(tmp_path), "not set")
    assert {"idgnn", "python", "CUDA", "cuDNN", "CPU", "cores", "memory", "system"} < said.keys()
