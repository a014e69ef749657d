"""Gradients are right where layers are computed again in the backward pass."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_model import IdentityAwareModel
from tests.models.wrapped import EDGES, NUM_NODES, features

pytestmark = pytest.mark.usefixtures("double")


class Checkpointed(nn.Module):
    """Three layers, each computed again in the backward pass, or not."""

    def __init__(self, make: Any, reentrant: bool | None) -> None:
        super().__init__()
        self.convs = nn.ModuleList([make(4, 4), make(4, 4), make(4, 4)])
        self.norm = nn.BatchNorm1d(4)
        self.reentrant = reentrant

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            if self.reentrant is None:
                x = conv(x, edge_index)
            else:
                x = checkpoint(conv, x, edge_index, use_reentrant=self.reentrant)
            x = self.norm(x.tanh())
        return x


class Blocks(nn.Module):
    """Deep layers with checkpoints of their own, and a reversible one."""

    def __init__(self, recompute: bool) -> None:
        super().__init__()
        deep = [pyg.DeepGCNLayer(pyg.GENConv(4, 4), nn.LayerNorm(4), nn.ReLU(), ckpt_grad=recompute) for _ in "ab"]
        self.lin = nn.Linear(4, 4)
        self.layers = nn.ModuleList([*deep, pyg.GroupAddRev(SAGEConv(2, 2), num_groups=2, disable=not recompute)])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = self.lin(x)  # a reentrant checkpoint needs an input with gradients
        for layer in self.layers:
            x = layer(x, edge_index)
        return x


class Dropping(nn.Module):
    """Makes edges of its own: before the checkpoint, or inside of it."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.convs, self.where = nn.ModuleList([SAGEConv(4, 4), SAGEConv(4, 4)]), where

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        def inside(x: Tensor, edge_index: Tensor) -> Tensor:
            return self.convs[1](x, edge_index[:, edge_index[0] != edge_index[1]]).tanh()

        x = self.convs[0](x, edge_index).tanh()
        if self.where == "inside":
            return checkpoint(inside, x, edge_index, use_reentrant=False)
        edges = edge_index[:, edge_index[0] != edge_index[1]]
        if self.where == "before":
            return checkpoint(self.convs[1], x, edges, use_reentrant=False).tanh()
        return self.convs[1](x, edges).tanh()


def wrapped(model: nn.Module, seed: int = 0) -> IdentityAwareModel:
    """With color maps away from the identity, the same ones for each seed, in training mode."""
    ours = identity_aware(model)
    ours(features().requires_grad_(), EDGES)  # without gradients a reentrant checkpoint warns
    torch.manual_seed(seed)
    for weight in ours.colors.parameters():
        nn.init.normal_(weight)
    return ours.train()


def weighted(output: Tensor) -> Tensor:
    """A loss that normalized outputs do not make constant."""
    return (output * torch.linspace(-1, 2, output.numel()).view_as(output)).sin().sum()


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor | None]:
    for weight in model.parameters():
        weight.grad = None
    loss.backward()
    return {name: weight.grad for name, weight in model.named_parameters()}


def assert_same_gradients(ours: IdentityAwareModel, plain: IdentityAwareModel, **given: Any) -> None:
    plain.load_state_dict(ours.state_dict())
    x = features()
    expected = gradients(plain, weighted(plain(x, EDGES, **given)))
    found = gradients(ours, weighted(ours(x.requires_grad_(), EDGES, **given)))
    for name, gradient in expected.items():
        assert gradient is not None and found[name] is not None, name
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-9)
    assert any(gradient is not None and gradient.abs().max() > 1e-3 for n, gradient in found.items() if "colors" in n)


@pytest.mark.parametrize("make", [GCNConv, SAGEConv, GATConv])
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints(make: Any, reentrant: bool) -> None:
    model = Checkpointed(make, reentrant)
    plain = copy.deepcopy(model)
    plain.reentrant = None
    pairs = torch.tensor([[0, 2, 4, 3], [1, 0, 3, 2]])
    assert_same_gradients(wrapped(model), wrapped(plain))
    assert_same_gradients(wrapped(model), wrapped(plain), queries=pairs)
    assert_same_gradients(wrapped(model), wrapped(plain), colored=torch.arange(NUM_NODES) < 2)


def test_deep_and_reversible_layers() -> None:
    model = Blocks(recompute=True)
    plain = Blocks(recompute=False)
    plain.load_state_dict(model.state_dict())
    assert_same_gradients(wrapped(model), wrapped(plain))


@pytest.mark.parametrize("reentrant", [True, False])
def test_several_graphs_and_colors_before_one_backward_pass(reentrant: bool) -> None:
    """The same edges with other colors, another graph, and the plain model are all recomputed as they were."""
    model = Checkpointed(GCNConv, reentrant)
    plain = copy.deepcopy(model)
    plain.reentrant = None
    ours, theirs = wrapped(model).eval(), wrapped(plain).eval()
    theirs.load_state_dict(ours.state_dict())
    x = features().requires_grad_()

    def loss(net: IdentityAwareModel) -> Tensor:
        outputs = [net(x, EDGES, colored=torch.arange(NUM_NODES) == v) for v in range(3)]
        outputs += [net(x, EDGES), net(x, EDGES.flip(0)), net.module(x, EDGES)]
        return sum((out.square().sum() * (i + 1) for i, out in enumerate(outputs)), torch.zeros(()))

    expected, found = gradients(theirs, loss(theirs)), gradients(ours, loss(ours))
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-9)


def test_gradients_are_those_of_brute_force() -> None:
    x = features().requires_grad_()
    ours = wrapped(Checkpointed(SAGEConv, True)).eval()
    ours.module.reentrant = None
    brute = torch.stack([ours(x, EDGES, colored=torch.arange(NUM_NODES) == v)[v] for v in range(NUM_NODES)])
    expected = gradients(ours, brute.square().sum())
    ours.module.reentrant = True
    found = gradients(ours, ours(x, EDGES).square().sum())
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-9, atol=1e-9)


def test_edges_that_the_model_makes() -> None:
    model = Dropping("before")
    plain = copy.deepcopy(model)
    plain.where = "no checkpoint"
    assert_same_gradients(wrapped(model), wrapped(plain))
    inside = wrapped(Dropping("inside"))
    loss = inside(features(), EDGES).sum()
    with pytest.raises(ValueError, match=r"computed again in the backward pass .* Compute them before"):
        loss.backward()
    inside.module(features(), EDGES[:, :3]).sum()  # and the plain model is as it was


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")  # of dynamo itself
@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_under_torch_compile(reentrant: bool) -> None:
    """The wrapped model is compiled, or the training step around it. Reentrant checkpoints inside of a compiled step
    are refused: there the hooks of PyG are left out in the backward pass."""
    model = Checkpointed(GCNConv, reentrant)
    plain = copy.deepcopy(model)
    plain.reentrant = None
    ours, theirs = wrapped(model), wrapped(plain)
    theirs.load_state_dict(ours.state_dict())
    x = features().requires_grad_()
    expected = gradients(theirs, weighted(theirs(x, EDGES)))
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="eager")
    found = gradients(ours, weighted(compiled(x, EDGES)))

    def step() -> dict[str, Tensor | None]:
        return gradients(ours, weighted(ours(x, EDGES)))

    for result in (found, found if reentrant else torch.compile(step, backend="eager")()):
        for name, gradient in expected.items():
            torch.testing.assert_close(result[name], gradient, rtol=1e-9, atol=1e-9)


def test_an_error_leaves_no_trace() -> None:
    """Neither of the layer that failed nor of its colors."""
    ours, x = wrapped(Checkpointed(SAGEConv, False)).eval(), features()
    expected = ours(x, EDGES)
    with pytest.raises(ValueError, match="one entry per row of x"):
        ours(x, EDGES, colored=torch.ones(3, dtype=torch.bool))
    assert not ours._calls.frames and not ours._calls.colored
    assert torch.equal(ours(x, EDGES), expected)


def test_what_belongs_to_a_call_is_freed_with_its_edges() -> None:
    ours, x = wrapped(Checkpointed(SAGEConv, False)).eval(), features()
    for _ in range(50):
        ours(x, EDGES.clone())
        ours(x, EDGES, colored=torch.arange(NUM_NODES) == 1)
    assert len(ours._calls._given._entries) < 20
