"""Wrapped models in several threads and processes, copied, pickled, saved and loaded."""

from __future__ import annotations

import copy
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import GCNConv, SAGEConv

from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.training.processes import Processes
from tests.models.wrapped import EDGES, NUM_NODES, drawn, features, one_copy_per_query
from tests.training.two_processes import in_two

pytestmark = pytest.mark.usefixtures("double")


class Recomputed(nn.Module):
    """Layers of both kinds, one of them computed again in the backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(4, 4), GCNConv(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.first(x, edge_index).tanh()
        return checkpoint(self.second, x, edge_index, use_reentrant=False)


def test_four_threads_call_one_model_at_once() -> None:
    """From the first call on, each thread with graphs and colors of its own, gradients included."""
    model = identity_aware(Recomputed())
    generator = torch.Generator().manual_seed(0)
    graphs = [
        (torch.randn(9, 4, generator=generator), torch.randint(9, (2, 20 + i), generator=generator)) for i in range(4)
    ]
    barrier, found, errors = threading.Barrier(4), {}, []

    def work(number: int) -> None:
        try:
            x, edge_index = graphs[number]
            barrier.wait()
            for repeat in range(5):
                output = model(x, edge_index, queries=torch.arange(repeat, 9))
                gradient = torch.autograd.grad(output.sin().sum(), list(model.parameters()))
                found[number, repeat] = output, gradient
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for (number, repeat), (output, gradient) in found.items():
        x, edge_index = graphs[number]
        every = torch.arange(repeat, 9)
        expected = one_copy_per_query(model, torch.stack([every, every]), x, edge_index)
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-10)
        theirs = torch.autograd.grad(expected.sin().sum(), list(model.parameters()))
        torch.testing.assert_close(gradient, theirs, rtol=1e-9, atol=1e-9)


def test_two_processes_average_the_gradients(tmp_path: Path) -> None:
    model = drawn(Recomputed(), features(), EDGES)
    graphs = [(features(), edges) for edges in (EDGES, EDGES.flip(0))]

    def gradients(processes: Processes) -> dict[str, Tensor | None]:
        torch.set_num_threads(1)  # a forked process has lost the threads of its parent
        parallel = DistributedDataParallel(model)
        parallel(*graphs[processes.rank]).sin().sum().backward()
        return {name: weight.grad for name, weight in model.named_parameters()}

    expected: list[dict[str, Tensor]] = []
    every = torch.arange(NUM_NODES)
    for x, edges in graphs:
        loss = one_copy_per_query(model, torch.stack([every, every]), x, edges).sin().sum()
        gradient = torch.autograd.grad(loss, list(model.parameters()))
        expected.append(dict(zip([n for n, _ in model.named_parameters()], gradient, strict=True)))
    for found in in_two(gradients, tmp_path):
        for name, gradient in found.items():
            torch.testing.assert_close(gradient, (expected[0][name] + expected[1][name]) / 2, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "make", [Recomputed, lambda: pyg.GAT(4, 8, 2), lambda: pyg.GroupAddRev(SAGEConv(2, 2), num_groups=2)]
)
def test_copies_and_pickles_are_models_of_their_own(make: Any) -> None:
    x, every = features(), torch.arange(NUM_NODES)
    model = drawn(make().eval(), x.requires_grad_(), EDGES)
    expected = model(x.clone(), EDGES)
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), copy.deepcopy(copy.deepcopy(model))):
        assert torch.equal(twin(x.clone(), EDGES), expected)
        with torch.no_grad():
            for weight in twin.parameters():
                weight.mul_(1.5)
        brute = torch.stack([twin(x.clone(), EDGES, colored=every == v)[v] for v in range(NUM_NODES)])
        found = twin(x.clone(), EDGES)
        torch.testing.assert_close(found, brute, rtol=0, atol=1e-10)
        assert not torch.allclose(found, expected)
        gradient = torch.autograd.grad(found.sin().sum(), list(twin.parameters()))
        theirs = torch.autograd.grad(brute.sin().sum(), list(twin.parameters()))
        torch.testing.assert_close(gradient, theirs, rtol=1e-9, atol=1e-9)
    assert torch.equal(model(x.clone(), EDGES), expected)


def test_a_hook_of_the_user_is_kept_and_one_added_to_a_pickled_model_replaces_none_of_ours() -> None:
    calls: list[str] = []
    model = drawn(Recomputed(), features(), EDGES).eval()
    twin = pickle.loads(pickle.dumps(model))
    twin.module.first.register_forward_pre_hook(lambda *_: calls.append("theirs"))
    x = features()
    torch.testing.assert_close(twin(x, EDGES), model(x, EDGES))
    assert calls


def test_a_part_of_a_wrapped_model_can_be_wrapped_again() -> None:
    x = features()
    model = drawn(Recomputed(), x, EDGES).eval()
    again = identity_aware(model.module)
    torch.testing.assert_close(again(x, EDGES), model.module(x, EDGES), rtol=0, atol=1e-12)  # maps of its own
    layer = identity_aware(model.module.first)
    assert len(layer.module._forward_pre_hooks) == 1


def test_a_model_that_keeps_its_last_output_is_traced_all_the_same() -> None:
    class Keeps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, depth: int = 2) -> Tensor:
            for _ in range(depth):
                x = self.conv(x, edge_index).tanh()
            self.last = x
            return x

    torch.set_default_dtype(torch.float32)
    model, x = identity_aware(Keeps()), features()
    model(x, EDGES).sum().backward()
    model(x, EDGES, depth=3)  # now a copy is impossible
    assert model.num_layers == 3 and model.training
    assert all(weight.dtype == torch.float32 for weight in model.parameters())


@pytest.mark.parametrize(
    "make", [Recomputed, lambda: pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x")])]
)
def test_saves_and_loads_weights(make: Any, tmp_path: Path) -> None:
    x, path = features(), tmp_path / "folder" / "model.safetensors"
    model = drawn(make(), x, EDGES).eval()
    model.save(path)
    loaded = identity_aware(make()).load(path)
    assert isinstance(loaded, IdentityAwareModel) and not loaded.training
    assert torch.equal(loaded(x, EDGES), model(x, EDGES))
    assert sorted(file.name for file in path.parent.iterdir()) == ["model.safetensors"]


def test_what_cannot_be_saved_or_loaded_says_so(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="Call the model once"):
        identity_aware(pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x")])).save(path)
    with pytest.raises(ValueError, match="there is no file"):
        identity_aware(pyg.GCN(4, 8, 2)).load(path)
    identity_aware(pyg.GCN(4, 8, 2)).save(path)
    with pytest.raises(ValueError, match="does not hold the weights of this model"):
        identity_aware(pyg.GCN(4, 8, 3)).load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="does not hold the weights of this model"):
        identity_aware(pyg.GCN(4, 8, 2)).load(path)
    layer = identity_aware(SAGEConv(4, 4))
    layer.save(path)
    assert identity_aware(SAGEConv(4, 4)).load(path).state_dict().keys() == layer.state_dict().keys()
