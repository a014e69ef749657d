"""What is kept of unfinished embeddings is used for the same work alone, and never if it is damaged."""

import json

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GIN

from idgnn import IDGNN, identity_aware
from idgnn.training.partial import Partial, discard, embed_partial


@pytest.fixture
def work():
    torch.manual_seed(0)
    edge_index = torch.randint(40, (2, 80))
    return IDGNN(2, 8, None, conv="gin"), Data(x=torch.randn(40, 2), edge_index=edge_index)


def stopped(work, path, memory=90_000) -> int:
    """Begins the work and stops after the second chunk; returns how much is done."""
    discard(path)
    add, calls = Partial.add, []

    def once(self, positions, values, done):
        add(self, positions, values, done)
        calls.append(done)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Partial, "add", once)
        embed_partial(*work, None, memory, False, path)
    return calls[-1]


def started_at(work, path, monkeypatch) -> int:
    """Does the rest of the work; returns where it began."""
    found = []
    began = Partial.__init__

    def noted(self, *arguments):
        began(self, *arguments)
        found.append(self.done)

    monkeypatch.setattr(Partial, "__init__", noted)
    out = embed_partial(*work, None, None, False, path)
    assert torch.allclose(out, work[0].embed(work[1]), atol=1e-6)
    return found[0]


def test_work_goes_on(work, tmp_path, monkeypatch):
    path = tmp_path / "partial"
    done = stopped(work, path)
    assert 0 < done < 40
    assert started_at(work, path, monkeypatch) == done
    assert started_at(work, path, monkeypatch) == 40  # all is there, only the last step was missing
    discard(path)
    assert not list(tmp_path.iterdir())


def test_other_weights_other_edges_other_roots(work, tmp_path, monkeypatch):
    path = tmp_path / "partial"
    model, data = work
    stopped(work, path)
    with torch.no_grad():
        model.lin_in.bias[0] += 1
    assert started_at(work, path, monkeypatch) == 0
    stopped(work, path)
    data.edge_index = data.edge_index.flip(0)
    assert started_at(work, path, monkeypatch) == 0
    stopped(work, path)
    out = embed_partial(model, data, torch.arange(39, -1, -1), None, False, path)
    assert torch.allclose(out, model.embed(data).flip(0), atol=1e-6)


def test_other_pools_of_equal_weights(work, tmp_path, monkeypatch):
    path, (_, data) = tmp_path / "partial", work
    mean, largest = (
        identity_aware(GIN(2, 4, num_layers=2).requires_grad_(False), colors=2, pool=pool) for pool in ("mean", "max")
    )
    for model in (mean, largest):  # the first call adds the weights of colored messages
        model(data.x, data.edge_index)
    largest.load_state_dict(mean.state_dict())
    stopped((mean, data), path, 300_000)
    assert started_at((largest, data), path, monkeypatch) == 0


@pytest.mark.parametrize("damage", ["", "{", "[]", "{}", json.dumps({"fingerprint": "", "shape": [40, 8], "done": 7})])
def test_a_damaged_count_is_not_used(work, tmp_path, monkeypatch, damage):
    path = tmp_path / "partial"
    stopped(work, path)
    (tmp_path / "partial.json").write_text(damage)
    assert started_at(work, path, monkeypatch) == 0


def test_numbers_that_are_gone(work, tmp_path, monkeypatch):
    path = tmp_path / "partial"
    stopped(work, path)
    path.write_bytes(path.read_bytes()[:-4])
    assert started_at(work, path, monkeypatch) == 0
    stopped(work, path)
    path.unlink()
    assert started_at(work, path, monkeypatch) == 0
