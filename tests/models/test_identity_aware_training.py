"""Identity-aware models are trained, copied, saved, compiled and moved like any other."""

from __future__ import annotations

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, MessagePassing, SAGEConv

from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.wrapping.verify import Comparisons
from tests.models.wrapped import EDGES, NUM_NODES, drawn, features, one_copy_per_query

pytestmark = pytest.mark.usefixtures("double")


def test_what_is_given_is_copied() -> None:
    model, x = pyg.GCN(4, 8, 2, norm="batch"), features()
    before = copy.deepcopy(model.state_dict())
    ours = identity_aware(model)
    assert all(torch.equal(ours.module.state_dict()[key], value) for key, value in before.items())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    ours(x, EDGES).square().sum().backward()
    optimizer.step()
    assert all(torch.equal(model.state_dict()[key], value) for key, value in before.items())
    assert not torch.equal(ours.module.convs[0].lin.weight, model.convs[0].lin.weight)


def test_the_first_call_leaves_no_trace() -> None:
    """Modes, statistics and random numbers are those of one training step and nothing else."""
    x = features()
    runs = []
    for warm in (False, True):
        torch.manual_seed(3)
        model = identity_aware(pyg.GAT(4, 8, 2, norm="batch", dropout=0.5)).train()
        state = copy.deepcopy(model.state_dict())
        if warm:
            model(x, EDGES)
            model.load_state_dict(state)
        torch.manual_seed(4)
        output = model(x, EDGES)
        assert model.training and all(child.training for child in model.modules())
        runs.append((output, model.module.norms[0].module.running_mean.clone(), torch.rand(1)))
        assert not model.module.norms[0].module.running_mean.eq(0).all()
    assert all(torch.equal(one, other) for one, other in zip(*runs, strict=True))


def _claim_rounds(model: IdentityAwareModel, num_layers: int) -> None:
    """As if another number of rounds had been detected."""
    model._traced = {settings: (num_layers, None) for settings in model._traced}
    model._comparisons = Comparisons()


def test_capturing_messages_is_not_a_training_step() -> None:
    class Normed(MessagePassing):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4, momentum=1.0)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.propagate(edge_index, x=self.norm(x))

    layer, x = identity_aware(Normed()), features()
    layer(x, EDGES, colored=torch.arange(NUM_NODES) == 0)
    assert layer._hooks.route is not None and layer._hooks.route.kind == "whole"  # its statistics are over all rows
    assert int(layer.module.norm.num_batches_tracked) == 1
    torch.testing.assert_close(layer.module.norm.running_mean, x.mean(0))


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GIN", "GAT"])
def test_fine_tuning_learns_what_the_plain_model_cannot_see(name: str) -> None:
    """Triangles against a hexagon: every node looks alike to a plain GNN. The optimizers are made before any call."""
    torch.set_default_dtype(torch.float32)
    ring, triangles = torch.arange(6), torch.tensor([1, 2, 0, 4, 5, 3])
    graphs = [
        Data(x=torch.ones(6, 2), edge_index=torch.stack([ring, other]), y=torch.full((6,), label))
        for label, other in ((0.0, (ring + 1) % 6), (1.0, triangles))
    ]
    for graph in graphs:
        graph.edge_index = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    batch = Batch.from_data_list(graphs)
    plain, head = getattr(pyg, name)(2, 16, 3), nn.Linear(16, 1)

    def fit(model: nn.Module, steps: int) -> list[float]:
        optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            output = head(model(batch.x, batch.edge_index)).squeeze(-1)
            loss = nn.functional.binary_cross_entropy_with_logits(output, batch.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    guessing = 0.69  # log 2 and a bit less
    assert min(fit(plain, steps=20)) > guessing
    model = identity_aware(plain)
    start = [weight.clone() for weight in model.colors.parameters()]
    losses = fit(model, steps=80)
    assert losses[0] > guessing and losses[-1] < 0.05
    moved = sum(not torch.equal(*pair) for pair in zip(start, model.colors.parameters(), strict=True))
    # In the last round a node receives its own message only by a loop, which GCN and GAT add.
    assert moved == (6 if name in ("GCN", "GAT") else 4)


def test_an_optimizer_made_before_the_first_call_moves_maps_of_unknown_width() -> None:
    class Light(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = pyg.LGConv(), nn.Linear(4, 1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.head(self.conv(x, edge_index))

    model, x = identity_aware(Light()), features()
    assert model.colors.conv.channels is None
    optimizer = torch.optim.Adam(model.parameters())
    model(x, EDGES).sum().backward()
    optimizer.step()
    assert model.colors.conv.channels == 4 and model.colors.conv.delta.abs().min() > 0


def test_gradients_are_those_of_brute_force() -> None:
    x, every = features(), torch.arange(NUM_NODES)
    for name in ("GCN", "GAT", "EdgeCNN"):
        model = drawn(getattr(pyg, name)(4, 8, 3, 2, act="tanh").eval(), x, EDGES)
        parameters = list(model.parameters())
        ours = torch.autograd.grad(model(x, EDGES).square().sum(), parameters)
        brute = one_copy_per_query(model, torch.stack([every, every]), x, EDGES)
        theirs = torch.autograd.grad(brute.square().sum(), parameters)
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_state_dict_round_trip_and_deepcopy() -> None:
    x = features()
    for make in (lambda: pyg.GCN(4, 8, 2), lambda: nn.Sequential(), lambda: pyg.GCN(-1, 8, 2)):
        model = make()
        if isinstance(model, nn.Sequential):
            model = pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x"), nn.Linear(4, 4)])
        ours = drawn(model, x, EDGES).eval()
        other = identity_aware(model)
        fresh = identity_aware(model)
        fresh.load_state_dict(fresh.state_dict())  # before any call, maps of unknown width included
        other.load_state_dict(ours.state_dict())
        assert torch.equal(other.eval()(x, EDGES), ours(x, EDGES))
        twin = copy.deepcopy(ours)
        assert torch.equal(twin(x, EDGES), ours(x, EDGES)) and twin.num_layers == ours.num_layers
        with torch.no_grad():
            for weight in twin.parameters():
                weight.add_(1.0)
        assert not torch.equal(twin(x, EDGES), ours(x, EDGES))
        copy.deepcopy(identity_aware(model))


def test_the_inner_model_stays_what_it_was() -> None:
    model, x = identity_aware(pyg.GAT(4, 8, 2)), features()
    model(x, EDGES)
    assert isinstance(model.module, pyg.GAT) and isinstance(model.module.convs[0], pyg.GATConv)
    assert all("forward" not in vars(layer) and "propagate" not in vars(layer) for layer in model.module.modules())
    assert set(model.module.state_dict()) == set(pyg.GAT(4, 8, 2).state_dict())


def test_reset_parameters_makes_the_messages_equal_again() -> None:
    x = features()
    model = drawn(pyg.GCN(4, 8, 2).eval(), x, EDGES)
    model.reset_parameters()
    torch.testing.assert_close(model(x, EDGES), model.module(x, EDGES), rtol=0, atol=1e-12)
    layer = identity_aware(SAGEConv(4, 4))
    nn.init.normal_(layer.color.bias)
    layer.reset_parameters()
    assert layer.color.bias.abs().max() == 0


def test_moves_to_another_dtype() -> None:
    x = features()
    for model in (pyg.GCN(4, 8, 2), pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x")])):
        assert identity_aware(model).float()(x.float(), EDGES).dtype == torch.float32


def test_half_precision_by_autocast() -> None:
    torch.set_default_dtype(torch.float32)
    for name in ("GCN", "GraphSAGE", "GAT"):
        model = getattr(pyg, name)(4, 8, 2).eval()
        ours, x = identity_aware(model), features()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found, plain = ours(x, EDGES), model(x, EDGES)
        assert found.dtype == plain.dtype
        torch.testing.assert_close(found, plain, rtol=0.05, atol=0.05)
        (found.float().sum()).backward()
        assert all(weight.grad is not None and weight.dtype == torch.float32 for weight in ours.parameters())


def test_the_check_at_the_first_call_and_autocast_do_not_disturb_each_other() -> None:
    """The check draws other weights for the color maps, and autocast remembers weights. The model insists on single
    precision, so that the check has to be made in it, too."""
    torch.set_default_dtype(torch.float32)

    class Single(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.conv(x.float(), edge_index).float(), edge_index).float()

    model, x = Single(), features()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = identity_aware(model)
        torch.testing.assert_close(ours(x, EDGES), model(x, EDGES), rtol=0.05, atol=0.05)
        _claim_rounds(ours, 1)  # too few, which only colors can show
        with pytest.raises(ValueError, match="1-hop neighborhood"):
            ours(x, EDGES)


# On the directed graph three rounds already go wherever four do.
@pytest.mark.parametrize(("steps", "undirected"), [(2, False), (3, False), (2, True), (3, True), (4, True)])
def test_the_check_at_the_first_call_sees_one_round_too_few(steps: int, undirected: bool) -> None:
    edges = torch.cat([EDGES, EDGES.flip(0)], dim=1) if undirected else EDGES
    model, x = identity_aware(pyg.GraphSAGE(4, 8, steps)), features()
    model(x, edges)
    _claim_rounds(model, steps - 1)
    with pytest.raises(ValueError, match=f"{steps - 1}-hop neighborhood"):
        model(x, edges)


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE"])
def test_the_result_is_the_same_under_torch_compile(name: str) -> None:
    x = features()
    ours = drawn(getattr(pyg, name)(4, 8, 2).eval(), x, EDGES)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(ours, backend="eager")(x, EDGES), ours(x, EDGES))
    layer = identity_aware(GCNConv(4, 4) if name == "GCN" else SAGEConv(4, 4))
    nn.init.normal_(layer.color.bias)
    colored = torch.arange(NUM_NODES) == 0
    found = torch.compile(layer, backend="eager")(x, EDGES, colored=colored)
    torch.testing.assert_close(found, layer(x, EDGES, colored=colored))
    assert (found - layer(x, EDGES)).abs().max() > 1e-3
