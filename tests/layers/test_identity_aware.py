"""`identity_aware`: exact for layers and models of all kinds, a refusal with a reason for the rest."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn.functional import relu
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GraphConv, JumpingKnowledge, MessagePassing, SAGEConv
from torch_geometric.utils import scatter, softmax

from idgnn.identity.identity_graph import UnreachedColourWarning, identity_graph
from idgnn.layers.identity_aware import IdentityAwareLayer, IdentityAwareModel, identity_aware
from idgnn.layers.wrapping.colour_map import ColourMap, source_channels

NUM_NODES = 7
EDGES = torch.tensor([[0, 1, 2, 1, 2, 3, 3, 4, 0, 0, 2, 5, 4, 1], [1, 2, 0, 0, 3, 2, 4, 3, 3, 1, 2, 0, 4, 4]])
NOBODY = torch.zeros(NUM_NODES, dtype=torch.bool)
PNA = {
    "aggregators": ["mean", "max", "std"],
    "scalers": ["identity", "amplification"],
    "deg": torch.bincount(torch.bincount(EDGES[1], minlength=NUM_NODES)),
}


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def features(channels: int = 4) -> Tensor:
    return torch.randn(NUM_NODES, channels)


def drawn(model: nn.Module, x: Tensor, *args: Any, **kwargs: Any) -> Any:
    """The identity-aware version of a model with colour maps away from the identity, so that the colour matters."""
    ours = identity_aware(model)
    assert isinstance(ours, IdentityAwareModel)
    ours(x, *args, **kwargs)  # maps of unknown width get theirs
    for weight in ours.colours.parameters():
        nn.init.normal_(weight)
    return ours


def one_copy_per_query(model: Any, pairs: Tensor, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Brute force: for each pair the whole graph once more, with one node coloured."""
    rows = []
    for node, colour in pairs.t().tolist():
        rows.append(model(x, *args, coloured=torch.arange(x.size(0)) == colour, **kwargs)[node])
    return torch.stack(rows)


def assert_exact(model: nn.Module, x: Tensor, *args: Any, steps: int, **kwargs: Any) -> None:
    """Node and pair queries equal brute force, the colour makes a difference, and without it all is as it was."""
    model.eval()
    plain = model(x, *args, **kwargs)
    ours = drawn(model, x, *args, **kwargs)
    assert ours.num_layers == steps
    every = torch.arange(x.size(0))
    found = ours(x, *args, **kwargs)
    assert (found - plain).abs().max() > 1e-3
    expected = one_copy_per_query(ours, torch.stack([every, every]), x, *args, **kwargs)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    pairs = torch.tensor([[0, 2, 4, 3, 1], [1, 0, 3, 2, 1]])
    found = ours(x, *args, queries=pairs, **kwargs)
    torch.testing.assert_close(found, one_copy_per_query(ours, pairs, x, *args, **kwargs), rtol=0, atol=1e-10)
    assert torch.equal(ours(x, *args, coloured=torch.zeros(x.size(0), dtype=torch.bool), **kwargs), plain)


# The equations, by hand


def test_gcn_colours_all_messages_also_that_of_the_loop_it_adds() -> None:
    layer, x = GCNConv(4, 3), features()
    ours = identity_aware(layer)
    for weight in ours.colour.parameters():
        nn.init.normal_(weight)
    coloured = torch.arange(NUM_NODES) == 0
    sent = torch.where(coloured[:, None], x @ (torch.eye(4) + ours.colour.delta).t() + ours.colour.bias, x)
    loops = EDGES[:, EDGES[0] != EDGES[1]].size(1)
    assert loops < EDGES.size(1)  # there are loops already, which GCN keeps once
    adjacency = torch.zeros(NUM_NODES, NUM_NODES)
    for source, target in EDGES.t().tolist():
        adjacency[target, source] += source != target
    adjacency += torch.eye(NUM_NODES)
    scale = adjacency.sum(1).rsqrt()
    expected = (scale[:, None] * adjacency * scale) @ sent @ layer.lin.weight.t() + layer.bias
    torch.testing.assert_close(ours(x, EDGES, coloured=coloured), expected, rtol=0, atol=1e-12)


def test_sage_colours_its_messages_and_not_the_state_of_the_receiver() -> None:
    layer, x = SAGEConv(4, 3), features()
    ours = identity_aware(layer)
    for weight in ours.colour.parameters():
        nn.init.normal_(weight)
    coloured = torch.arange(NUM_NODES) == 2  # node 2 has a loop: that is a message, and coloured
    sent = torch.where(coloured[:, None], x + x @ ours.colour.delta.t() + ours.colour.bias, x)
    mean = scatter(sent[EDGES[0]], EDGES[1], dim_size=NUM_NODES, reduce="mean")
    expected = mean @ layer.lin_l.weight.t() + layer.lin_l.bias + x @ layer.lin_r.weight.t()
    torch.testing.assert_close(ours(x, EDGES, coloured=coloured), expected, rtol=0, atol=1e-12)


def test_pna_colours_the_sending_half_of_its_messages() -> None:
    layer = pyg.PNAConv(4, 3, ["sum"], ["identity"], PNA["deg"])
    x = features()
    ours = identity_aware(layer)
    for weight in ours.colour.parameters():
        nn.init.normal_(weight)
    coloured = torch.arange(NUM_NODES) == 2
    sent = torch.where(coloured[:, None], ours.colour(x), x)
    message = layer.pre_nns[0](torch.cat([x[EDGES[1]], sent[EDGES[0]]], dim=-1))
    gathered = scatter(message, EDGES[1], dim_size=NUM_NODES, reduce="sum")
    expected = layer.lin(layer.post_nns[0](torch.cat([x, gathered], dim=-1)))
    torch.testing.assert_close(ours(x, EDGES, coloured=coloured), expected, rtol=0, atol=1e-12)


def test_rgat_colours_attention_on_the_sending_side() -> None:
    """The edge update of a layer without pairs: its `_j` half comes from the coloured states."""
    layer, x, edge_type = pyg.RGATConv(4, 3, num_relations=2), features(), torch.arange(EDGES.size(1)) % 2
    ours = identity_aware(layer)
    for weight in ours.colour.parameters():
        nn.init.normal_(weight)
    coloured = torch.arange(NUM_NODES) == 2
    sent = torch.where(coloured[:, None], ours.colour(x), x)
    received = torch.einsum("ef,efo->eo", x[EDGES[1]], layer.weight[edge_type])
    sending = torch.einsum("ef,efo->eo", sent[EDGES[0]], layer.weight[edge_type])
    alpha = nn.functional.leaky_relu(received @ layer.q + sending @ layer.k, 0.2)
    alpha = softmax(alpha, EDGES[1], num_nodes=NUM_NODES)
    expected = scatter(alpha * sending, EDGES[1], dim_size=NUM_NODES, reduce="sum") + layer.bias
    torch.testing.assert_close(ours(x, EDGES, edge_type, coloured=coloured), expected, rtol=0, atol=1e-12)


# Models


@pytest.mark.parametrize("jk", [None, "cat", "max", "lstm"])
@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GIN", "GAT", "PNA", "EdgeCNN"])
def test_ready_models_are_exact(name: str, jk: str | None) -> None:
    options: dict[str, Any] = PNA if name == "PNA" else {}
    model = getattr(pyg, name)(4, 8, 3, 5, jk=jk, norm="batch", dropout=0.5, **options)
    x = features()
    model.train()(x, EDGES)  # running statistics that are not the initial ones
    assert_exact(model, x, EDGES, steps=3)


@pytest.mark.parametrize(
    "norm",
    [
        pyg.BatchNorm(8),
        nn.BatchNorm1d(8),
        pyg.LayerNorm(8, mode="node"),
        nn.LayerNorm(8),
        pyg.DiffGroupNorm(8, groups=2),
        pyg.InstanceNorm(8, track_running_stats=True),
    ],
)
def test_norms_of_single_rows_are_exact(norm: nn.Module) -> None:
    assert_exact(pyg.GCN(4, 8, 2, norm=norm).double(), features(), EDGES, steps=2)


def test_edge_weights_and_attributes_are_carried() -> None:
    x, weight = features(), torch.rand(EDGES.size(1))
    assert_exact(pyg.GCN(4, 8, 2), x, EDGES, weight, steps=2)
    assert_exact(pyg.GCN(4, 8, 2), x, EDGES, edge_weight=weight, steps=2)
    assert_exact(pyg.GAT(4, 8, 2, edge_dim=3), x, EDGES, edge_attr=torch.rand(EDGES.size(1), 3), steps=2)


def test_sequential_is_exact() -> None:
    model = pyg.Sequential(
        "x, edge_index, edge_weight",
        [
            (nn.Dropout(0.5), "x -> x"),
            (GCNConv(4, 8), "x, edge_index, edge_weight -> x1"),
            nn.Tanh(),
            (GraphConv(8, 8), "x1, edge_index, edge_weight -> x2"),
            nn.Tanh(),
            (lambda x1, x2: [x1, x2], "x1, x2 -> xs"),
            (JumpingKnowledge("cat", 8, num_layers=2), "xs -> x"),
            nn.Linear(16, 3),
        ],
    )
    assert_exact(model, features(), EDGES, torch.rand(EDGES.size(1)), steps=2)


class Branches(nn.Module):
    """A branch of two rounds beside one of three that uses one layer twice, and degrees before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.first = SAGEConv(5, 8)
        self.shared = GCNConv(8, 8)
        self.side = nn.ModuleDict({"a": GraphConv(5, 8), "b": GraphConv(8, 8)})
        self.norm = nn.BatchNorm1d(8)
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        degree = torch.bincount(edge_index[1], minlength=x.size(0)).to(x)
        x = torch.cat([x, degree.view(-1, 1)], dim=-1)
        long = self.shared(self.shared(self.first(x, edge_index).tanh(), edge_index).tanh(), edge_index)
        short = self.side["b"](self.side["a"](x, edge_index).tanh(), edge_index)
        both = self.norm(long + short) / (1 + degree.view(-1, 1))
        both[degree == 0] = 0.5
        return self.head(both)


def test_branches_and_shared_layers_are_exact() -> None:
    assert_exact(Branches(), features(), EDGES, steps=3)
    assert_exact(Branches(), features(), EDGES, batch=torch.zeros(NUM_NODES, dtype=torch.long), steps=3)
    names = sorted(name for name, _ in identity_aware(Branches()).colours.named_parameters())
    layers = ("first", "shared", "side.a", "side.b")
    assert names == sorted(f"{layer}.{part}" for layer in layers for part in ("delta", "bias"))


class Recurrent(nn.Module):
    """One layer four times, with edge states that are computed anew from both ends in every round."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GINEConv(nn.Linear(4, 4))
        self.edge = nn.Linear(8, 4)
        self.cell = nn.GRUCell(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        for _ in range(4):
            edge_attr = self.edge(torch.cat([x[source], x[target]], dim=-1)).tanh()
            x = self.cell(self.conv(x, edge_index, edge_attr), x)
        return x


def test_recurrent_layers_and_edge_states_are_exact() -> None:
    assert_exact(Recurrent(), features(), EDGES, steps=4)


def test_rounds_count_also_where_a_tensor_comes_back_from_elsewhere() -> None:
    class Elsewhere(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv(4, 4), SAGEConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            x = self.first(x, edge_index).detach()
            return self.second(torch.from_dlpack(torch.utils.dlpack.to_dlpack(x)), edge_index)

    model = identity_aware(Elsewhere())
    model(features(), EDGES)
    assert model.num_layers == 2


class Attention(nn.Module):
    """Every node attends to its own states of all rounds, which stand in one tensor that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(4, 4), GCNConv(4, 4)])
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        states = x.new_zeros(x.size(0), 3, 4)
        states[:, 0] = x
        for k, conv in enumerate(self.convs):
            x = conv(x, edge_index).tanh()
            states[:, k + 1] = x
        return self.attention(states, states, states)[0].mean(1)


def test_attention_over_the_rounds_of_a_node_is_exact() -> None:
    assert_exact(Attention(), features(), EDGES, steps=2)


def test_deep_and_reversible_models_are_exact() -> None:
    class Deep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [pyg.DeepGCNLayer(pyg.GENConv(4, 4), nn.LayerNorm(4), nn.ReLU(), ckpt_grad=True) for _ in "ab"]
            self.layers = nn.ModuleList([*layers, pyg.GroupAddRev(SAGEConv(2, 2), num_groups=2)])

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x, edge_index)
            return x

    # The second half of a reversible layer hears the first.
    assert_exact(Deep(), features(), EDGES, steps=4)


def test_lazy_layers_are_exact() -> None:
    layers = [(SAGEConv(-1, 8), "x, edge_index -> x"), nn.Tanh(), (GCNConv(-1, 3), "x, edge_index -> x")]
    assert_exact(pyg.Sequential("x, edge_index", layers), features(), EDGES, steps=2)


def test_categories_in_floating_point_features() -> None:
    """What the check at the first call draws at random would not be categories, so it shuffles them instead."""

    class Categories(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.conv = nn.Embedding(3, 4), GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.embedding(x[:, 0].long()), edge_index)

    model, x = identity_aware(Categories()), (torch.arange(NUM_NODES) % 3).view(-1, 1).double()
    torch.testing.assert_close(model(x, EDGES), model.module(x, EDGES), rtol=0, atol=1e-12)


class TakesData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.GINEConv(nn.Linear(4, 4), edge_dim=2)

    def forward(self, data: Data) -> Tensor:
        assert data.x is not None and data.x.size(0) == data.num_nodes and data.y.tolist() == [1] * len(data.y)
        return self.conv(self.conv(data.x, data.edge_index, data.edge_attr), data.edge_index, data.edge_attr)


def test_a_model_may_take_a_data_object() -> None:
    data = Data(x=features(), edge_index=EDGES, edge_attr=torch.rand(EDGES.size(1), 2), y=torch.tensor([1]))
    model = identity_aware(TakesData())
    model(data)
    for weight in model.colours.parameters():
        nn.init.normal_(weight)
    expected = torch.stack([model(data, coloured=torch.arange(NUM_NODES) == v)[v] for v in range(NUM_NODES)])
    torch.testing.assert_close(model(data), expected, rtol=0, atol=1e-10)
    batch = Batch.from_data_list([data, data])
    torch.testing.assert_close(model(batch), torch.cat([expected, expected]), rtol=0, atol=1e-10)


class Mean(MessagePassing):
    """A layer as in the tutorials: no hints, `x` in its message and its update alike."""

    def __init__(self, channels: int) -> None:
        super().__init__(aggr="mean")
        self.lin = nn.Linear(2 * channels, channels)

    def forward(self, x, edge_index):
        return self.propagate(edge_index, x=x)

    def message(self, x_j, x_i):
        return torch.tanh(x_j - x_i)

    def update(self, inputs, x):
        return self.lin(torch.cat([inputs, x], dim=-1))


def test_a_layer_of_ones_own_is_exact() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList([Mean(4), Mean(4)])

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for conv in self.convs:
                x = conv(x, edge_index)
            return x

    assert_exact(Two(), features(), EDGES, steps=2)
    layer, x = identity_aware(Mean(4)), features()
    coloured = torch.arange(NUM_NODES) == 2
    layer(x, EDGES, coloured=coloured)
    for weight in layer.colour.parameters():
        nn.init.normal_(weight)
    sent = torch.where(coloured[:, None], layer.colour(x), x)
    mean = scatter(torch.tanh(sent[EDGES[0]] - x[EDGES[1]]), EDGES[1], dim_size=NUM_NODES, reduce="mean")
    expected = layer.module.lin(torch.cat([mean, x], dim=-1))
    torch.testing.assert_close(layer(x, EDGES, coloured=coloured), expected, rtol=0, atol=1e-12)


class ByRelation(MessagePassing):
    """Calls `propagate` once for each kind of edge that is there, so not the same number of times on each graph."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x: Tensor, edge_index: Tensor, edge_type: Tensor) -> Tensor:
        out = x
        for kind in edge_type.unique().tolist():
            out = out + self.propagate(edge_index[:, edge_type == kind], x=x @ self.weight[kind])
        return out


def test_the_number_of_propagate_calls_may_change_from_graph_to_graph() -> None:
    layer, x = ByRelation(), features()
    ours = identity_aware(layer)
    coloured = torch.arange(NUM_NODES) == 0
    one, three = torch.zeros(EDGES.size(1), dtype=torch.long), torch.arange(EDGES.size(1)) % 3
    for edge_type in (one, three, one):
        ours(x, EDGES, edge_type, coloured=coloured)
        for weight in ours.colour.parameters():
            nn.init.normal_(weight)
        sent = torch.where(coloured[:, None], ours.colour(x), x)[EDGES[0]]
        message = torch.einsum("ef,efo->eo", sent, layer.weight[edge_type])
        expected = x + scatter(message, EDGES[1], dim_size=NUM_NODES, reduce="sum")
        torch.testing.assert_close(ours(x, EDGES, edge_type, coloured=coloured), expected, rtol=0, atol=1e-12)


def test_order_dependent_aggregation_is_exact_on_sorted_edges() -> None:
    edges = EDGES[:, EDGES[1].argsort(stable=True)]

    class Ordered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv(4, 4, aggr="lstm"), SAGEConv(4, 4, aggr="lstm")

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.second(self.first(x, edge_index).tanh(), edge_index)

    assert_exact(Ordered(), features(), edges, steps=2)


def test_integer_features_behind_an_embedding() -> None:
    class Embedded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.conv = nn.Embedding(3, 4), GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.conv(self.embedding(x), edge_index), edge_index)

    assert_exact(Embedded(), torch.arange(NUM_NODES) % 3, EDGES, steps=2)


# Calling it


def test_queries_may_be_nodes_or_come_with_a_prebuilt_graph() -> None:
    x = features()
    model = drawn(pyg.GCN(4, 8, 3).eval(), x, EDGES)
    every = model(x, EDGES)
    torch.testing.assert_close(model(x, EDGES, queries=torch.tensor([4, 1])), every[[4, 1]], rtol=0, atol=1e-12)
    for num_layers in (3, 5):
        graph = identity_graph(Data(x=x, edge_index=EDGES), num_layers=num_layers)
        torch.testing.assert_close(model(x, EDGES, graph=graph), every, rtol=0, atol=1e-12)
    rows = model(graph.x, graph.edge_index, coloured=graph.coloured)
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
        nn.init.normal_(layer.colour.bias)
        coloured = torch.arange(NUM_NODES) == 1
        expected = layer(x, edges, coloured=coloured)
        torch.testing.assert_close(layer(x, typed, coloured=coloured), expected, rtol=0, atol=1e-12)


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
    with pytest.warns(UnreachedColourWarning, match="1 of 1"):
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
    with pytest.raises(ValueError, match="1-hop neighbourhood"):
        model(features(), EDGES)


def test_layer_without_colour_is_the_layer_bit_for_bit() -> None:
    for layer in (GCNConv(4, 8), SAGEConv(4, 8), Mean(4)):
        ours, x = identity_aware(layer), features()
        assert isinstance(ours, IdentityAwareLayer)
        assert torch.equal(ours(x, EDGES), layer(x, EDGES))
        assert torch.equal(ours(x, EDGES, coloured=NOBODY), layer(x, EDGES))


def test_equal_messages_give_back_the_plain_model() -> None:
    """Proposition 1, first half: before any training the colour changes nothing."""
    for name in ("GCN", "GAT"):
        model, x = getattr(pyg, name)(4, 8, 3).eval(), features()
        torch.testing.assert_close(identity_aware(model)(x, EDGES), model(x, EDGES), rtol=0, atol=1e-12)


def test_names_are_needed_where_nodes_and_edges_are_as_many() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GraphConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, *rest: Tensor, **named: Tensor) -> Tensor:
            return self.conv(self.conv(x, edge_index, *rest, **named), edge_index, *rest, **named)

    edges, weight = EDGES[:, :NUM_NODES], torch.rand(NUM_NODES)
    assert_exact(Weighted(), features(), edges, edge_weight=weight, steps=2)
    with pytest.raises(ValueError, match="as many nodes as edges"):
        identity_aware(Weighted())(features(), edges, weight)


# Training it


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


def test_a_rehearsal_is_not_a_training_step() -> None:
    class Normed(MessagePassing):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(4, momentum=1.0)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.propagate(edge_index, x=self.norm(x))

    layer, x = identity_aware(Normed()), features()
    layer(x, EDGES, coloured=torch.arange(NUM_NODES) == 0)
    assert int(layer.module.norm.num_batches_tracked) == 1
    torch.testing.assert_close(layer.module.norm.running_mean, x.mean(0))


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GIN", "GAT"])
def test_fine_tuning_learns_what_the_plain_model_cannot_see(name: str) -> None:
    """Triangles against a hexagon: every node looks alike to a plain GNN. The optimisers are made before any call."""
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

    a_coin = 0.69  # log 2 and a bit less
    assert min(fit(plain, steps=20)) > a_coin
    model = identity_aware(plain)
    start = [weight.clone() for weight in model.colours.parameters()]
    losses = fit(model, steps=80)
    assert losses[0] > a_coin and losses[-1] < 0.05
    moved = sum(not torch.equal(*pair) for pair in zip(start, model.colours.parameters(), strict=True))
    # In the last round a node hears itself only by a loop, which GCN and GAT add.
    assert moved == (6 if name in ("GCN", "GAT") else 4)


def test_an_optimizer_made_before_the_first_call_moves_maps_of_unknown_width() -> None:
    class Light(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = pyg.LGConv(), nn.Linear(4, 1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.head(self.conv(x, edge_index))

    model, x = identity_aware(Light()), features()
    assert model.colours.conv.channels is None
    optimizer = torch.optim.Adam(model.parameters())
    model(x, EDGES).sum().backward()
    optimizer.step()
    assert model.colours.conv.channels == 4 and model.colours.conv.delta.abs().min() > 0


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
    nn.init.normal_(layer.colour.bias)
    layer.reset_parameters()
    assert layer.colour.bias.abs().max() == 0


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
    """The check draws other weights for the colour maps, and autocast remembers weights. The model insists on single
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
        ours._num_layers, ours._verified = 1, False  # too few, which only colours can show
        with pytest.raises(ValueError, match="1-hop neighbourhood"):
            ours(x, EDGES)


# On the directed graph three rounds already go wherever four do.
@pytest.mark.parametrize(("steps", "undirected"), [(2, False), (3, False), (2, True), (3, True), (4, True)])
def test_the_check_at_the_first_call_sees_one_round_too_few(steps: int, undirected: bool) -> None:
    edges = torch.cat([EDGES, EDGES.flip(0)], dim=1) if undirected else EDGES
    model, x = identity_aware(pyg.GraphSAGE(4, 8, steps)), features()
    model(x, edges)
    model._num_layers, model._verified = steps - 1, False
    with pytest.raises(ValueError, match=f"{steps - 1}-hop neighbourhood"):
        model(x, edges)


@pytest.mark.parametrize("name", ["GCN", "GraphSAGE"])
def test_the_result_is_the_same_under_torch_compile(name: str) -> None:
    x = features()
    ours = drawn(getattr(pyg, name)(4, 8, 2).eval(), x, EDGES)
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(ours, backend="eager")(x, EDGES), ours(x, EDGES))
    layer = identity_aware(GCNConv(4, 4) if name == "GCN" else SAGEConv(4, 4))
    nn.init.normal_(layer.colour.bias)
    coloured = torch.arange(NUM_NODES) == 0
    found = torch.compile(layer, backend="eager")(x, EDGES, coloured=coloured)
    torch.testing.assert_close(found, layer(x, EDGES, coloured=coloured))
    assert (found - layer(x, EDGES)).abs().max() > 1e-3


# The width of a colour map


def test_widths_known_from_the_layer() -> None:
    known = {
        4: [GCNConv(4, 8), SAGEConv((4, 6), 8), pyg.CGConv((4, 6)), pyg.GINConv(nn.Linear(4, 8)), pyg.FAConv(4)],
        6: [pyg.GINEConv(nn.Sequential(nn.ReLU(), nn.Linear(6, 8))), pyg.EdgeConv(pyg.MLP([12, 8])), pyg.DNAConv(6)],
        10: [pyg.SignedConv(5, 8, first_aggr=False), pyg.SignedConv(10, 8, first_aggr=True)],
    }
    for width, layers in known.items():
        assert [source_channels(layer) for layer in layers] == [width] * len(layers)
    unknown = (GCNConv(-1, 8), pyg.LGConv(), Mean(4), pyg.PointNetConv(), pyg.GINConv(relu))
    assert [source_channels(layer) for layer in unknown] == [None] * len(unknown)


def test_a_colour_map_says_what_it_was_given() -> None:
    colour = ColourMap(4)
    with pytest.raises(ValueError, match="width 3"):
        colour(torch.ones(2, 3))
    with pytest.raises(ValueError, match="int64"):
        colour(torch.ones(2, 4, dtype=torch.long))
    assert repr(ColourMap(None)) == "ColourMap(None)"


def test_a_colour_map_keeps_the_dtype_of_the_states_under_autocast() -> None:
    colour = ColourMap(4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            assert colour(torch.ones(2, 4, dtype=dtype)).dtype == dtype


# Refusals


class TwoHops(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=self.propagate(edge_index, x=x))


class OwnEdges(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(torch.stack([torch.arange(x.size(0)), x.sum(-1).argsort()]), x=x)


class EdgesInForward(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=x, gate=(x[edge_index[0]] * x[edge_index[1]]).sum(-1, keepdim=True))

    def message(self, x_j: Tensor, gate: Tensor) -> Tensor:
        return gate * x_j


class NoMessages(MessagePassing):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return scatter(x[edge_index[0]], edge_index[1], dim_size=x.size(0))


class Holds(MessagePassing):
    def __init__(self) -> None:
        super().__init__()
        self.inner = GCNConv(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.inner(self.propagate(edge_index, x=x), edge_index)


class Around(nn.Module):
    """A layer, and something done to its output `h`."""

    def __init__(self, act: Any, layer: nn.Module | None = None) -> None:
        super().__init__()
        self.conv, self.act = layer or GCNConv(4, 4), act

    def forward(self, x: Tensor, edge_index: Tensor) -> Any:
        return self.act(self, self.conv(x, edge_index), edge_index)


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (GCNConv(4, 4, flow="target_to_source"), "edge_index.flip"),
        (GCNConv(4, 4, cached=True), "cached=False"),
        (GCNConv(4, 4, decomposed_layers=2), "decomposed_layers=1"),
        (Holds(), "holds another one, GCNConv"),
        (pyg.GraphNorm(4), "BatchNorm, or LayerNorm"),
        (pyg.PairNorm(), "BatchNorm, or LayerNorm"),
        (pyg.LayerNorm(4), "BatchNorm, or LayerNorm"),
        (pyg.InstanceNorm(4), "BatchNorm, or LayerNorm"),
        (pyg.MeanSubtractionNorm(), "BatchNorm, or LayerNorm"),
        (pyg.GraphSizeNorm(), "BatchNorm, or LayerNorm"),
        (nn.BatchNorm1d(4, track_running_stats=False), "BatchNorm, or LayerNorm"),
        (pyg.TopKPooling(4), "pool after"),
        (pyg.SAGPooling(4), "pool after"),
        (pyg.GraphUNet(4, 4, 4, 2), "pool after"),
        (nn.Linear(4, 4), "no PyG MessagePassing layer"),
    ],
)
def test_refused_when_it_is_given(layer: nn.Module, words: str) -> None:
    for module in (layer, nn.ModuleList([layer])):
        with pytest.raises(ValueError, match=words):
            identity_aware(module)


def test_only_modules_that_are_not_identity_aware_yet() -> None:
    with pytest.raises(ValueError, match="was given a function"):
        identity_aware(relu)  # pyright: ignore[reportArgumentType]
    for ours in (identity_aware(GCNConv(4, 4)), identity_aware(pyg.GCN(4, 4, 2))):
        with pytest.raises(ValueError, match="already"):
            identity_aware(ours)
        with pytest.raises(ValueError, match="already"):
            identity_aware(nn.Sequential(ours))


def test_what_torch_compile_was_given_is_found() -> None:
    model = pyg.GCN(4, 8, 2).eval()
    torch.testing.assert_close(identity_aware(torch.compile(model))(features(), EDGES).shape, (NUM_NODES, 8))


@pytest.mark.parametrize(
    ("layer", "words"),
    [
        (TwoHops(), "sees 2 hops at once"),
        (OwnEdges(), "other edges when the states are others"),
        (EdgesInForward(), "computes 'gate' from the states"),
        (NoMessages(), "sends no message through propagate"),
    ],
)
def test_layers_refused_at_their_first_coloured_call(layer: MessagePassing, words: str) -> None:
    ours, x = identity_aware(layer), features()
    assert torch.equal(ours(x, EDGES), layer(x, EDGES))
    with pytest.raises(ValueError, match=words):
        ours(x, EDGES, coloured=torch.arange(NUM_NODES) == 0)


POOLED = "pool after"
MIXES = "neighbourhood"
OWN = "sends messages of its own"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda _, h, e: h.mean(0), POOLED),
        (lambda _, h, e: pyg.global_add_pool(h, torch.zeros(h.size(0), dtype=torch.long)), POOLED),
        (lambda _, h, e: (h, h[e[0]]), POOLED),
        (lambda _, h, e: {"h": h}, POOLED),
        (lambda _, h, e: h - h.mean(0), MIXES),
        (lambda _, h, e: h + h.max(0).values, MIXES),
        (lambda _, h, e: (h @ h.t()).softmax(-1) @ h, MIXES),
        (lambda _, h, e: h + torch.bincount(e[0], minlength=h.size(0))[:, None], MIXES),
        (lambda _, h, e: scatter(h[e[0]], e[1], dim_size=h.size(0)), OWN),
        (lambda _, h, e: scatter(h[e[0]], e[1], dim_size=h.size(0), reduce="max"), OWN),
        (lambda _, h, e: h.index_add(0, e[1], h[e[0]]), OWN),
        (lambda _, h, e: torch.zeros(h.size(0), h.size(0)).index_put((e[1], e[0]), h.new_ones(1)) @ h, OWN),
        (lambda _, h, e: torch.sparse_coo_tensor(e.flip(0), h.new_ones(e.size(1)), (len(h), len(h))) @ h, OWN),
        (lambda _, h, e: nn.functional.dropout(h), MIXES),
        (lambda m, h, e: m.conv.propagate(e, x=h, edge_weight=h.new_ones(e.size(1))), "from outside of that layer"),
        (lambda _, h, e: torch.ones(h.shape), "no message reaches the output"),
    ],
)
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
def test_models_refused_at_their_first_call(act: Any, words: str) -> None:
    model = identity_aware(Around(act))
    for _ in range(2):  # and at every one after
        with pytest.raises(ValueError, match=words):
            model(features(), EDGES)


@pytest.mark.parametrize("seed", range(5))
def test_a_virtual_node_is_refused(seed: int) -> None:
    """Its maximum over all rows does not change when rows are merely repeated."""

    class Virtual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(2, 1)

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            x = self.conv(x, edge_index)
            return x + pyg.global_max_pool(x, batch)[batch]

    torch.manual_seed(seed)
    with pytest.raises(ValueError, match="1-hop neighbourhood"):
        identity_aware(Virtual())(torch.ones(NUM_NODES, 2), EDGES, torch.zeros(NUM_NODES, dtype=torch.long))


def test_a_layer_of_several_hops_inside_a_model_is_refused() -> None:
    with pytest.raises(ValueError, match="layer 'conv' of Around sees 2 hops"):
        identity_aware(Around(lambda _, h, e: h, TwoHops()))(features(), EDGES)


def test_a_second_set_of_edges_is_refused() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, neg_edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index) - self.conv(x, neg_edge_index)

    with pytest.raises(ValueError, match="neg_edge_index is a second set of edges"):
        identity_aware(Both())(features(), EDGES, EDGES.flip(0))


def test_bad_arguments() -> None:
    x, model = features(), identity_aware(pyg.GCN(4, 8, 2))
    graph = identity_graph(Data(x=x, edge_index=EDGES), num_layers=1)
    with pytest.raises(ValueError, match="built for 1 layers"):
        model(x, EDGES, graph=graph)
    with pytest.raises(ValueError, match="built from 7 nodes and 14 edges"):
        model(x, EDGES[:, :5], graph=graph)
    with pytest.raises(ValueError, match=r"expected what idgnn\.identity_graph returns"):
        model(x, EDGES, graph=Data(x=x, edge_index=EDGES))
    with pytest.raises(ValueError, match="sampled neighbourhood"):
        model(x, EDGES, num_sampled_nodes_per_hop=[3, 4], num_sampled_edges_per_hop=[10, 4])
    with pytest.raises(ValueError, match="more than one of queries"):
        model(x, EDGES, graph=graph, queries=torch.tensor([0]))
    with pytest.raises(ValueError, match="expected a bool tensor"):
        model(x, EDGES, coloured=torch.zeros(NUM_NODES))
    with pytest.raises(ValueError, match="one entry per row of x"):
        model(x, EDGES, coloured=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="NaN or infinite"):
        model(torch.full_like(x, torch.nan), EDGES)
    with pytest.raises(ValueError, match="names node 8"):
        model(x, EDGES + 3)
    with pytest.raises(ValueError, match="whole numbers"):
        model(x, EDGES.double())
    with pytest.raises(ValueError, match="x of type NoneType"):
        model(None, EDGES)
    with pytest.raises(ValueError, match="to_edge_index"):
        model(x, torch.eye(NUM_NODES).to_sparse_coo())
    with pytest.raises(ValueError, match="expected at least one"):
        model(x, EDGES, queries=torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match="names node 9"):
        model(x, EDGES, queries=torch.tensor([9]))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
def test_a_sparse_matrix_is_refused_by_a_layer_coloured_along_its_edges() -> None:
    adjacency = torch.eye(NUM_NODES).to_sparse_csr()
    with pytest.raises(ValueError, match="sparse matrix"):
        identity_aware(GCNConv(4, 4, normalize=False))(features(), adjacency, coloured=~NOBODY)


def test_a_model_that_cannot_be_copied_says_what_to_do() -> None:
    model = Around(lambda _, h, e: h)
    model.last = model(features(), EDGES)
    with pytest.raises(ValueError, match="load_state_dict"):
        identity_aware(model)
