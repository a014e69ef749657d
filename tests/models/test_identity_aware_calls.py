"""How an identity-aware layer or model is called, and what it says when it is called wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv
from torch_geometric.utils import dropout_edge, remove_self_loops

from idgnn.identity.identity_graph import UnreachedColorWarning, identity_graph
from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_layer import IdentityAwareLayer
from tests.models.wrapped import EDGES, NOT_COLORED, NUM_NODES, Mean, drawn, features, one_copy_per_query

pytestmark = pytest.mark.usefixtures("double")


def test_queries_may_be_nodes_or_come_with_a_prebuilt_graph() -> None:
    x = features()
    model = drawn(pyg.GCN(4, 8, 3).eval(), x, EDGES)
    every = model(x, EDGES)
    torch.testing.assert_close(model(x, EDGES, queries=torch.tensor([4, 1])), every[[4, 1]], rtol=0, atol=1e-12)
    for num_layers in (3, 5):
        graph = identity_graph(Data(x=x, edge_index=EDGES), num_layers=num_layers)
        torch.testing.assert_close(model(x, EDGES, graph=graph), every, rtol=0, atol=1e-12)
    rows = model(graph.x, graph.edge_index, colored=graph.colored)
    torch.testing.assert_close(rows[graph.query_row], every, rtol=0, atol=1e-12)


def test_an_edge_index_of_pyg_is_taken() -> None:
    x, edges = features(), EDGES[:, EDGES[1].argsort(stable=True)]
    model = drawn(pyg.GCN(4, 8, 2).eval(), x, edges)
    typed = EdgeIndex(edges, sort_order="col", sparse_size=(NUM_NODES, NUM_NODES))
    torch.testing.assert_close(model(x, typed), model(x, edges), rtol=0, atol=1e-12)

    class Fused(GCNConv):
        SUPPORTS_FUSED_EDGE_INDEX = True  # would leave out the messages, were it given its edges as they are

    for plain in (GCNConv(4, 4), Fused(4, 4, normalize=False), SAGEConv(4, 4)):
        layer = identity_aware(plain)
        nn.init.normal_(layer.color.bias)
        colored = torch.arange(NUM_NODES) == 1
        expected = layer(x, edges, colored=colored)
        torch.testing.assert_close(layer(x, typed, colored=colored), expected, rtol=0, atol=1e-12)


def test_a_first_call_in_inference_mode_leaves_weights_that_train() -> None:
    model, x = identity_aware(pyg.Sequential("x, edge_index", [(pyg.LGConv(), "x, edge_index -> x")])), features()
    with torch.inference_mode():
        model(x, EDGES)
    model(x, EDGES).sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())


def test_saves_and_loads_whole(tmp_path: Path) -> None:
    x = features()
    model = drawn(pyg.GCN(4, 8, 2).eval(), x, EDGES)
    torch.save(model, tmp_path / "model.pt")
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    assert torch.equal(loaded(x, EDGES), model(x, EDGES))


def test_an_unreached_query_warns_and_is_answered_by_the_plain_model() -> None:
    x = features()
    model = drawn(pyg.GCN(4, 8, 2).eval(), x, EDGES)
    with pytest.warns(UnreachedColorWarning, match="1 of 1"):
        found = model(x, EDGES, queries=torch.tensor([[5], [0]]))
    torch.testing.assert_close(found[0], model.module(x, EDGES)[5], rtol=0, atol=1e-12)


def test_graphs_without_edges_and_the_check_after_them() -> None:
    class Mixes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index).softmax(dim=0)

    nothing = torch.empty(2, 0, dtype=torch.long)
    assert identity_aware(pyg.GCN(4, 8, 2))(features(), nothing).shape == (NUM_NODES, 8)
    assert identity_aware(pyg.GCN(4, 8, 2))(torch.randn(1, 4), nothing).shape == (1, 8)
    model = identity_aware(Mixes())
    model(features(), nothing)
    with pytest.raises(ValueError, match="1-hop neighborhood"):
        model(features(), EDGES)


def test_layer_without_color_is_the_layer_bit_for_bit() -> None:
    for layer in (GCNConv(4, 8), SAGEConv(4, 8), Mean(4)):
        ours, x = identity_aware(layer), features()
        assert isinstance(ours, IdentityAwareLayer)
        assert torch.equal(ours(x, EDGES), layer(x, EDGES))
        assert torch.equal(ours(x, EDGES, colored=NOT_COLORED), layer(x, EDGES))


def test_equal_messages_give_back_the_plain_model() -> None:
    """Proposition 1, first half: before any training the color changes nothing."""
    for name in ("GCN", "GAT"):
        model, x = getattr(pyg, name)(4, 8, 3).eval(), features()
        torch.testing.assert_close(identity_aware(model)(x, EDGES), model(x, EDGES), rtol=0, atol=1e-12)


class Deep(nn.Module):
    """As many rounds as it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor, depth: int = 2) -> Tensor:
        for _ in range(depth):
            x = self.conv(x, edge_index).tanh()
        return x


def test_a_number_of_rounds_that_is_an_argument_is_detected_again() -> None:
    model, x = drawn(Deep(), features(), EDGES), features()
    assert model.num_layers == 2
    found = model(x, EDGES, depth=4)
    assert model.num_layers == 4
    every = torch.arange(NUM_NODES)
    expected = one_copy_per_query(model, torch.stack([every, every]), x, EDGES, depth=4)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


class Filtered(nn.Module):
    """A chain of layers on edges that it chooses itself."""

    def __init__(self, conv: type[nn.Module], chosen: Callable[[Tensor, Tensor | None], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.chosen = conv(4, 4), conv(4, 3), chosen

    def forward(self, x: Tensor, edge_index: Tensor, keep: Tensor | None = None) -> Tensor:
        edges = self.chosen(edge_index, keep)
        return self.second(self.first(x, edges).tanh(), edges)


CHOICES: dict[str, Callable[[Tensor, Tensor | None], Tensor]] = {
    "without loops": lambda edges, keep: remove_self_loops(edges)[0],
    "by an argument": lambda edges, keep: edges if keep is None else edges[:, keep > 0],
    "in another order": lambda edges, keep: edges.flip(1),
}


@pytest.mark.parametrize("colors", [1, 2])
@pytest.mark.parametrize("conv", [SAGEConv, GATConv, GraphConv])
@pytest.mark.parametrize("name", CHOICES)
def test_edges_may_be_chosen_in_the_forward_though_none_were_left_out_at_first(name, conv, colors) -> None:
    x, unlooped = features(), EDGES[:, EDGES[0] != EDGES[1]]
    every, keep = torch.ones(unlooped.size(1)), torch.arange(EDGES.size(1)) % 3
    argument = name == "by an argument"
    model = identity_aware(Filtered(conv, CHOICES[name]).eval(), per_edge=["keep"], colors=colors)
    model(x, unlooped, *([every] if argument else []))
    for weight in model.colors.parameters():
        nn.init.normal_(weight)
    given = [keep] if argument else []
    edges = CHOICES[name](EDGES, keep)
    plain = identity_aware(Filtered(conv, lambda edges, keep: edges).eval(), colors=colors)  # on the chosen edges
    plain(x, edges)
    plain.load_state_dict(model.state_dict())
    nodes = torch.arange(NUM_NODES)
    queries = torch.stack([nodes, nodes] if colors == 1 else [nodes, nodes.roll(2), nodes.roll(1)])
    found = model(x, EDGES, *given, queries=queries)
    expected = []
    for read, *ends in queries.t().tolist():
        color = torch.zeros(NUM_NODES, dtype=torch.bool if colors == 1 else torch.int8)
        for number, end in reversed(list(enumerate(ends, start=1))):
            color[end] = number
        expected.append(plain(x, edges, colored=color)[read])
    torch.testing.assert_close(found, torch.stack(expected), rtol=0, atol=1e-10)


class Dropping(nn.Module):
    """A chain of layers on some of the edges."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(4, 4), SAGEConv(4, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edges, _ = dropout_edge(edge_index, 0.5, training=self.training)
        return self.second(self.first(x, edges).tanh(), edges)


def test_edges_may_be_dropped_at_random_in_training() -> None:
    model = identity_aware(Dropping().train())
    out = model(features(), EDGES)
    assert out.shape == (NUM_NODES, 3)
    out.sum().backward()
    assert all(p.grad is not None for p in model.module.parameters())
