"""`identity_aware` is exact for models of all kinds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GraphConv, JumpingKnowledge, MessagePassing, SAGEConv
from torch_geometric.utils import scatter

from idgnn.choices import Color
from idgnn.identity.identity_graph import identity_graph
from idgnn.models.identity_aware import identity_aware
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.wrapping.arguments import ModelCall
from idgnn.models.wrapping.lifting import lift
from idgnn.models.wrapping.plan import trimmed_plan, whole_plan
from tests.models.wrapped import EDGES, NUM_NODES, PNA, Mean, assert_exact, drawn, features, one_copy_per_query

pytestmark = pytest.mark.usefixtures("double")


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
    names = sorted(name for name, _ in identity_aware(Branches()).colors.named_parameters())
    layers = ("first", "shared", "side.a", "side.b")
    assert names == sorted(f"{layer}.{part}" for layer in layers for part in ("delta", "bias"))


class Recurrent(nn.Module):
    """One layer four times, with edge states that are computed again from both ends in every round."""

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
    """Every node attends to its own states of all rounds, which are in one tensor that is written in place."""

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

    # The second half of a reversible layer receives messages from the first.
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
    for weight in model.colors.parameters():
        nn.init.normal_(weight)
    expected = torch.stack([model(data, colored=torch.arange(NUM_NODES) == v)[v] for v in range(NUM_NODES)])
    torch.testing.assert_close(model(data), expected, rtol=0, atol=1e-10)
    batch = Batch.from_data_list([data, data])
    torch.testing.assert_close(model(batch), torch.cat([expected, expected]), rtol=0, atol=1e-10)


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
    colored = torch.arange(NUM_NODES) == 2
    layer(x, EDGES, colored=colored)
    for weight in layer.color.parameters():
        nn.init.normal_(weight)
    sent = torch.where(colored[:, None], layer.color(x), x)
    mean = scatter(torch.tanh(sent[EDGES[0]] - x[EDGES[1]]), EDGES[1], dim_size=NUM_NODES, reduce="mean")
    expected = layer.module.lin(torch.cat([mean, x], dim=-1))
    torch.testing.assert_close(layer(x, EDGES, colored=colored), expected, rtol=0, atol=1e-12)


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
    colored = torch.arange(NUM_NODES) == 0
    one, three = torch.zeros(EDGES.size(1), dtype=torch.long), torch.arange(EDGES.size(1)) % 3
    for edge_type in (one, three, one):
        ours(x, EDGES, edge_type, colored=colored)
        for weight in ours.color.parameters():
            nn.init.normal_(weight)
        sent = torch.where(colored[:, None], ours.color(x), x)[EDGES[0]]
        message = torch.einsum("ef,efo->eo", sent, layer.weight[edge_type])
        expected = x + scatter(message, EDGES[1], dim_size=NUM_NODES, reduce="sum")
        torch.testing.assert_close(ours(x, EDGES, edge_type, colored=colored), expected, rtol=0, atol=1e-12)


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


@pytest.mark.parametrize(("name", "options"), [("GIN", {}), ("GAT", {}), ("GAT", {"v2": True}), ("GraphSAGE", {})])
def test_a_chain_of_layers_computes_only_the_rows_that_matter(name: str, options: dict[str, Any]) -> None:
    """In the last round that is one row for each query; states that meet later are all computed in every round."""
    x, pairs = features(), torch.tensor([[0, 3, 3], [2, 2, 4]])
    for jk in (None, "cat"):
        model = getattr(pyg, name)(4, 8, 3, 5, jk=jk, act="tanh", **options).eval()
        ours = drawn(model, x, EDGES)
        outputs: list[Tensor] = []
        for conv in ours.module.convs:
            conv.register_forward_hook(lambda _, args, output, seen=outputs: seen.append(output))
        found = ours(x, EDGES, queries=pairs)
        rows = [output.size(0) for output in outputs]
        assert rows == sorted(rows, reverse=True)
        assert (rows[-1] == pairs.size(1)) == (rows[0] > rows[-1]) == (jk is None)
        expected = one_copy_per_query(ours, pairs, x, EDGES)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


@pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
@pytest.mark.parametrize("colors", [1, 2])
@pytest.mark.parametrize("name", ["GCN", "GraphSAGE", "GIN", "GAT", "EdgeCNN"])
def test_where_no_color_arrives_the_model_is_plain(name: str, colors: int) -> None:
    two_edges = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    x = torch.randn(5, 4, requires_grad=True)
    model = getattr(pyg, name)(4, 8, 2, 3, act="tanh").eval()
    ours = drawn(model, x.detach(), two_edges, colors=colors)
    queries = torch.tensor([[1, 1, 1], [2, 3, 3], [3, 2, 4]])[: colors + 1]  # 0 is computed, but not read
    found, expected = ours(x, two_edges, queries=queries), ours.module(x, two_edges)[queries[0]]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    weight = torch.randn_like(found)
    torch.testing.assert_close(*(torch.autograd.grad((each * weight).sum(), x) for each in (found, expected)))


@pytest.mark.parametrize("color", ["message", "message+update"])
@pytest.mark.parametrize("heads", [1, 2])
def test_targets_as_pairs_and_targets_cut_off_afterwards_agree_with_all_rows(heads: int, color: Color) -> None:
    """GAT applies one weight to sources and targets, so it is given all sources where most of them are targets.

    Answers and gradients of both ways are those of the model on all rows of the identity graph."""
    model = identity_aware(pyg.GAT(4, 4, 3, heads=heads, edge_dim=2), color=color)
    x, edge_attr = features(), torch.rand(EDGES.size(1), 2)
    model(x, EDGES, edge_attr=edge_attr)
    for weight in model.colors.parameters():
        nn.init.normal_(weight, std=0.3)
    assert isinstance(model, IdentityAwareModel) and model._trimmed
    assert all(hooks.route is not None and hooks.route.repeats for hooks in model._hooks.values())
    graph = identity_graph(Data(edge_index=EDGES, num_nodes=NUM_NODES), num_layers=3)
    rounds = next(iter(model._trimmed))
    found = []
    for plan in (whole_plan(graph), *(trimmed_plan(graph, 3, rounds, part) for part in (0.0, 0.5, 1.0))):
        call = ModelCall.of(model.module, (x, EDGES), {"edge_attr": edge_attr})
        out = model.run_plan(lift(call, plan, model.roles), plan).index_select(0, plan.answer)
        gradients = torch.autograd.grad(out.tanh().square().sum(), list(model.parameters()))
        found.append((out, *gradients))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-10)


def test_a_model_that_adds_an_argument_at_the_end_is_no_chain() -> None:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = SAGEConv(4, 4), SAGEConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, pos: Tensor | None = None) -> Tensor:
            out = self.second(self.first(x, edge_index).tanh(), edge_index)
            return out if pos is None else out + pos

    ours, x = drawn(Residual().eval(), features(), EDGES), features()
    every = torch.arange(NUM_NODES)
    for given in ({}, {"pos": x}, {}):  # a chain without pos
        expected = one_copy_per_query(ours, torch.stack([every, every]), x, EDGES, **given)
        torch.testing.assert_close(ours(x, EDGES, **given), expected, rtol=0, atol=1e-10)
    assert [rounds is None for _, rounds in ours._traced.values()] == [False, True]
