"""Models on disk: safetensors and JSON, complete or not there, and no code."""

import errno
import json
import os
import pathlib
import pickle
import signal

import numpy as np
import pytest
import safetensors.torch
import torch
from torch_geometric.nn import GCNConv

from idgnn import IDGNN
from idgnn.models import saving
from tests.models.small_graphs import CONVS, IDENTITIES, edge_of, ladder, network


@pytest.fixture
def folder(tmp_path):
    """A folder with a saved model that has seen some training."""
    model = network("sage", num_layers=2, aggr="mean", normalize=False, cycle_scale="walk")
    model.train()(ladder().x, ladder().edge_index)
    model.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_whoever_may_read_one_file_may_read_all(folder):
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_what_is_loaded_is_what_was_saved(tmp_path, conv, identity):
    data = ladder()
    model = network(conv, identity, num_layers=2, cycle_length=4, normalize=False)
    model.train()(data.x, data.edge_index, **edge_of(conv, data))  # running statistics of its own
    model.save(tmp_path / "deep" / "er")
    loaded = IDGNN.load(str(tmp_path / "deep" / "er"))
    assert loaded.settings == model.settings
    assert set(loaded.state_dict()) == set(model.state_dict())
    assert model.training and not loaded.training
    ours, theirs = (one(data.x, data.edge_index, **edge_of(conv, data)) for one in (model.eval(), loaded))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_precision_is_kept(tmp_path, dtype):
    model = network("gin").to(dtype)
    model.save(tmp_path)
    loaded = IDGNN.load(tmp_path)
    for name, value in model.state_dict().items():
        assert loaded.state_dict()[name].dtype == value.dtype, name
        assert torch.equal(loaded.state_dict()[name], value), name


def test_the_files_are_safetensors_and_json_and_nothing_else(folder):
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "model.safetensors"]
    written = json.loads((folder / "model.json").read_text())
    assert written["class"] == "IDGNN"
    assert written["settings"]["aggr"] == "mean"
    weights = safetensors.torch.load_file(folder / "model.safetensors")
    assert "lin_in.weight" in weights


def test_saving_again_replaces(folder):
    model = network("gin")
    model.save(folder)
    loaded = IDGNN.load(folder)
    assert loaded.settings["conv"] == "gin"
    assert torch.equal(loaded.lin_in.weight, model.lin_in.weight)


def test_loading_runs_no_pickle(folder, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr(pickle, "load", refuse)
    monkeypatch.setattr(pickle, "Unpickler", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    assert IDGNN.load(folder).settings["conv"] == "sage"


def test_a_layer_of_the_users_own_cannot_be_saved_and_the_error_says_what_can(tmp_path):
    with pytest.raises(ValueError, match=r"conv=.*GCNConv.*code.*state_dict"):
        network(GCNConv).save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("failing", ["weights", "settings"])
def test_a_save_that_fails_leaves_what_was_there(folder, monkeypatch, failing):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*arguments, **options):
        if failing == "weights":
            pathlib.Path(arguments[1]).write_bytes(b"half of it")
        raise OSError(errno.ENOSPC, "No space left on device")

    if failing == "weights":
        monkeypatch.setattr(saving, "save_file", fail)
    else:
        monkeypatch.setattr(pathlib.Path, "write_text", fail)
    file = "model.safetensors" if failing == "weights" else "model.json"
    with pytest.raises(ValueError, match=f"{file} cannot be written: no space left"):
        network("gin").save(folder)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert IDGNN.load(folder).settings["conv"] == "sage"


def test_files_take_their_names_when_they_are_complete(tmp_path, monkeypatch):
    seen = []
    replace = os.replace

    def watch(source, target, **options):
        path = pathlib.Path(source)
        if path.suffix != ".json" and b"settings" not in path.read_bytes():
            safetensors.torch.load_file(path)  # readable as a whole before it has its name
        seen.append(pathlib.Path(target).name)
        return replace(source, target, **options)

    monkeypatch.setattr(pathlib.Path, "replace", lambda self, target: pathlib.Path(watch(self, target) or target))
    network().save(tmp_path)
    assert sorted(seen) == ["model.json", "model.safetensors"]


def change_settings(folder: pathlib.Path, changes: dict) -> None:
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def flip_a_bit(path: pathlib.Path) -> None:
    """In the last weight: the file can be read as before."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "no folder": (lambda folder: [path.unlink() for path in folder.iterdir()] and folder.rmdir(), r"no model.json"),
    "no settings": (lambda folder: (folder / "model.json").unlink(), r"no model.json in .*IDGNN.save"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), r"no model.safetensors in .*IDGNN.save"),
    "settings cut off": (lambda folder: (folder / "model.json").write_text('{"class": "IDG'), r"model.json is not"),
    "settings that are not text": (lambda folder: (folder / "model.json").write_bytes(b"\xff\xfe\x00"), r"model.json"),
    "settings that are a list": (lambda folder: (folder / "model.json").write_text("[1]"), r"model.json is not"),
    "settings of another class": (
        lambda folder: change_settings(folder, {"class": "Other", "settings": {}}),
        r"holds a Other, expected a IDGNN",
    ),
    "settings that miss one": (
        lambda folder: (folder / "model.json").write_text('{"class": "IDGNN", "settings": {"in_channels": 3}}'),
        r"model.json",
    ),
    "settings with one too many": (
        lambda folder: change_settings(folder, {"settings": IDGNN.load(folder).settings | {"shade": "red"}}),
        r"model.json.*shade",
    ),
    "weights cut off": (
        lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100]),
        r"model.safetensors",
    ),
    "weights that are none": (
        lambda folder: (folder / "model.safetensors").write_bytes(b"no tensors here"),
        r"model.safetensors",
    ),
    "weights with another bit": (lambda folder: flip_a_bit(folder / "model.safetensors"), r"damaged or replaced"),
    "weights of another model": (
        lambda folder: safetensors.torch.save_file(network("gin").state_dict(), folder / "model.safetensors"),
        r"model.safetensors",
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_files_are_refused_by_name(folder, name):
    damage, says = DAMAGE[name]
    damage(folder)
    with pytest.raises(ValueError, match=says):
        IDGNN.load(folder)


def test_numbers_of_numpy_are_numbers(tmp_path):
    IDGNN(np.int64(3), 8, 2).save(tmp_path)
    assert IDGNN.load(tmp_path).settings["in_channels"] == 3


def test_a_disk_that_is_full_is_told(tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # then it is an error, and does not end the process
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(ValueError, match=r"model.safetensors cannot be written: .*file too large"):
            network("gcn").save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, before)
    assert not list(tmp_path.iterdir())
