"""Arguments per node, per edge and shared ones are told apart by name and by what they do, not by their rows."""

from __future__ import annotations

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GraphConv, SAGEConv

from idgnn import IDGNN, ToIdentityGraph, identity_graph
from idgnn.models import identity_aware_model as wrapper
from idgnn.models.identity_aware import identity_aware
from idgnn.models.wrapping import plans
from tests.models.wrapped import EDGES, NUM_NODES, assert_exact, drawn, features, one_copy_per_query

pytestmark = pytest.mark.usefixtures("double")


class Prototypes(nn.Module):
    """How similar each node is to each prototype."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(4, 4)

    def forward(self, x: Tensor, edge_index: Tensor, prototypes: Tensor) -> Tensor:
        return self.conv(self.conv(x, edge_index).tanh(), edge_index) @ prototypes.t()


class Extra(nn.Module):
    """Takes arguments whose names say nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.names = GraphConv(4, 4), nn.Embedding(3, 4)

    def forward(self, x: Tensor, edge_index: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        x = self.conv(x + a, edge_index, b).tanh()
        return self.conv(x + self.names(c), edge_index, b)


def test_shared_rows_are_not_lifted_though_they_are_as_many_as_nodes_or_edges() -> None:
    x = features()
    for number in (NUM_NODES, EDGES.size(1), 3):
        prototypes = torch.randn(number, 4)
        model = drawn(Prototypes().eval(), x, EDGES, prototypes)
        found = model(x, EDGES, prototypes)
        assert found.shape == (NUM_NODES, number)
        every = torch.arange(NUM_NODES)
        expected = one_copy_per_query(model, torch.stack([every, every]), x, EDGES, prototypes)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
    seven = torch.randn(NUM_NODES, 4)  # decided before, on a graph where nothing was in doubt
    assert model(x, EDGES, seven).shape == (NUM_NODES, NUM_NODES)


def test_rows_per_node_and_per_edge_are_lifted_whatever_they_are_called() -> None:
    edges = EDGES[:, :NUM_NODES]  # as many edges as nodes
    for edge_index in (EDGES, edges):
        a, b, c = features(), torch.rand(edge_index.size(1)), torch.arange(NUM_NODES) % 3
        assert_exact(Extra(), features(), edge_index, a, b, c, steps=2)
        assert_exact(Extra(), features(), edge_index, c=c, b=b, a=a, steps=2)


def test_arguments_without_a_name() -> None:
    class Weighted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GraphConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, *rest: Tensor, **named: Tensor) -> Tensor:
            return self.conv(self.conv(x, edge_index, *rest, **named), edge_index, *rest, **named)

    edges, weight = EDGES[:, :NUM_NODES], torch.rand(NUM_NODES)
    assert_exact(Weighted(), features(), edges, edge_weight=weight, steps=2)
    assert_exact(Weighted(), features(), edges, weight, steps=2)


def test_what_cannot_be_decided_is_asked_for_and_can_be_said() -> None:
    x, zeros = features(), torch.zeros(NUM_NODES, dtype=torch.long)

    class Grouped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.groups = GCNConv(4, 4), nn.Embedding(1, 4)

        def forward(self, x: Tensor, edge_index: Tensor, group: Tensor) -> Tensor:
            return self.conv(x + self.groups(group), edge_index)

    with pytest.raises(ValueError, match=r"Grouped takes group \[7\].*per_node=\['group'\]"):
        identity_aware(Grouped())(x, EDGES, zeros)
    model = identity_aware(Grouped(), per_node=["group"])
    torch.testing.assert_close(model(x, EDGES, zeros), model.module(x, EDGES, zeros), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"group has shape \[3\], expected a row for each node: 7"):
        model(x, EDGES, zeros[:3])
    said = identity_aware(Prototypes(), shared=("prototypes",))
    assert said(x, EDGES, x.clone()).shape == (NUM_NODES, NUM_NODES)
    assert identity_aware(Prototypes(), shared="prototypes")(x, EDGES, x.clone()).shape == (NUM_NODES, NUM_NODES)
    with pytest.raises(ValueError, match="said to be per node and shared"):
        identity_aware(Grouped(), per_node=["group"], shared=["group"])
    with pytest.raises(ValueError, match="are for models"):
        identity_aware(GCNConv(4, 4), per_node=["x"])  # type: ignore[call-overload]
    weighted = identity_aware(Extra(), per_node=("a", "c"), per_edge=("b",))
    assert weighted(x, EDGES, x, torch.ones(EDGES.size(1)), zeros).shape == (NUM_NODES, 4)


def test_numbers_that_describe_the_data_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is the model traced again nor compared with brute force; another number of rounds is both."""
    counts = {"trace": 0, "verify": 0}

    def counted(name: str) -> None:
        original = getattr(wrapper, name)

        def count(*args: object, **kwargs: object) -> object:
            counts[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(wrapper, name, count)

    counted("trace")
    counted("verify")

    class Sized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, batch_size: int, scale: float = 1.0, depth: int = 2) -> Tensor:
            for _ in range(depth):
                x = self.conv(x, edge_index).tanh()
            return scale * x

    model, x = identity_aware(Sized()), features()
    for batch_size in range(1, 5):
        model(x, EDGES, batch_size)
    assert counts == {"trace": 1, "verify": 1}
    for scale in (0.5, 0.25, 0.5):
        model(x, EDGES, 3, scale=scale)
    assert counts == {"trace": 3, "verify": 1}
    model(x, EDGES, 3, depth=3)
    assert counts == {"trace": 4, "verify": 2} and model.num_layers == 3
    model(x, EDGES, 3)
    assert counts == {"trace": 4, "verify": 2} and model.num_layers == 2


def test_the_identity_graph_is_built_once_per_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[object] = []

    def counted(data: Data, **options: object) -> object:
        built.append(data)
        return identity_graph(data, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(plans, "identity_graph", counted)
    model, x, edges = identity_aware(pyg.GCN(4, 8, 2)), features(), EDGES.clone()
    first = model(x, edges)
    torch.testing.assert_close(model(x, edges), first)
    assert len(built) == 1
    edges[0, 0] = 5  # changed in place
    assert not torch.allclose(model(x, edges), first)
    assert len(built) == 2
    model(x, EDGES)
    assert len(built) == 3


def test_the_number_of_rounds_is_found_without_side_effects() -> None:
    model = identity_aware(pyg.GAT(4, 8, 3))
    assert model.trace(features(), EDGES) == 3 and model.num_layers is None


def test_which_arguments_a_wrapped_module_takes() -> None:
    gin, gat = identity_aware(pyg.GIN(4, 8, 2)), identity_aware(pyg.GAT(4, 8, 2, edge_dim=3))
    assert [model.takes("edge_attr") for model in (gin, gat)] == [False, True]
    assert not gat.takes("edge_weight") and not gat.takes("pos")
    assert identity_aware(GraphConv(4, 4)).takes("edge_weight")
    assert [identity_aware(pyg.GATConv(4, 4, edge_dim=d)).takes("edge_attr") for d in (None, 3)] == [False, True]


def graphs() -> list[Data]:
    edges = [EDGES, EDGES[:, :9], EDGES.flip(0)]
    return [Data(x=features(), edge_index=e, edge_attr=torch.rand(e.size(1), 3), z=features()) for e in edges]


@pytest.mark.parametrize("name", ["GAT", "PNA"])
def test_prebuilt_graphs_are_called_as_with_our_own_model(name: str) -> None:
    """With features, edges and all else of the original graph or of the identity graph, a batch of them too."""
    plain = Batch.from_data_list(graphs())
    batch = Batch.from_data_list([ToIdentityGraph(2)(graph) for graph in plain.to_data_list()])
    options = (
        {"aggregators": ["mean"], "scalers": ["identity"], "deg": torch.tensor([1, 3, 5])} if name == "PNA" else {}
    )
    model = getattr(pyg, name)(4, 8, 2, edge_dim=3, **options).eval()
    ours = drawn(model, plain.x, plain.edge_index, edge_attr=plain.edge_attr)
    expected = ours(plain.x, plain.edge_index, edge_attr=plain.edge_attr)
    for given in (plain, batch):
        found = ours(given.x, given.edge_index, edge_attr=given.edge_attr, graph=batch)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    for x, edge_attr in ((batch.x, plain.edge_attr), (plain.x, batch.edge_attr)):
        found = ours(x, plain.edge_index, edge_attr=edge_attr, graph=batch)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        IDGNN(4, 8, 2, 2).eval()(batch.x, batch.edge_index, graph=batch).shape, torch.Size([plain.num_nodes, 2])
    )
    with pytest.raises(ValueError, match="not that of the graph from which"):
        ours(plain.x, plain.edge_index.flip(0), edge_attr=plain.edge_attr, graph=batch)


def test_a_first_call_with_a_prebuilt_graph_and_arguments_of_other_names() -> None:
    data = Data(x=features(), edge_index=EDGES)
    graph, a, b, c = identity_graph(data, 2), features(), torch.rand(EDGES.size(1)), torch.arange(NUM_NODES) % 3
    ours = identity_aware(Extra().eval())
    expected = ours.module(data.x, EDGES, a, b, c)
    found = ours(graph.x, graph.edge_index, a[graph.node], b[graph.edge], c[graph.node], graph=graph)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours(data.x, EDGES, a, b, c, graph=graph), expected, rtol=0, atol=1e-12)


class Constant(nn.Module):
    """A chain whose layers are given a weight of the model beside the states, and edge weights in some calls only."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.rand(6, 4))
        self.layers = nn.ModuleList([Scaled(), Scaled()])

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        for layer in self.layers:
            x = layer(x, edge_index, self.table, edge_weight).tanh()
        return x


class Scaled(SAGEConv):
    def __init__(self) -> None:
        super().__init__(4, 4)

    def forward(self, x: Tensor | tuple[Tensor, Tensor], edge_index: Tensor, table: Tensor, edge_weight=None) -> Tensor:  # type: ignore[override]
        if edge_weight is not None:
            edge_index = edge_index[:, edge_weight > 0.5]
        return super().forward(x, edge_index) * table.sum()


def test_weights_as_arguments_of_layers_and_arguments_that_come_later() -> None:
    x, weight = features(), torch.rand(EDGES.size(1))
    model = drawn(Constant().eval(), x, EDGES)
    every = torch.arange(NUM_NODES)
    pairs = torch.stack([every, every])
    for edges, given in (
        (EDGES, None),
        (EDGES[:, :4], None),
        (EDGES, weight),
        (EDGES[:, :6], weight[:6]),
        (EDGES, None),
    ):
        found = model(x, edges, given)
        torch.testing.assert_close(found, one_copy_per_query(model, pairs, x, edges, given), rtol=0, atol=1e-10)


def test_categories_decide_roles_too() -> None:
    class Categories(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.conv = nn.Embedding(3, 4), GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor, kind: Tensor) -> Tensor:
            return self.conv(self.embedding(x[:, 0].long()) + self.embedding(kind), edge_index)

    x, kind = (torch.arange(NUM_NODES) % 3).view(-1, 1).double(), torch.arange(NUM_NODES) % 2
    model = identity_aware(Categories())
    torch.testing.assert_close(model(x, EDGES, kind), model.module(x, EDGES, kind), rtol=0, atol=1e-12)


def test_the_number_of_rows_as_an_argument() -> None:
    class Told(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList([pyg.GATConv(4, 4), pyg.GATConv(4, 4)])

        def forward(self, x: Tensor, edge_index: Tensor, num_nodes: int | None = None) -> Tensor:
            for conv in self.convs:
                x = conv(x, edge_index, size=None if num_nodes is None else (num_nodes, num_nodes)).tanh()
            return x

    x, every = features(), torch.arange(NUM_NODES)
    model = drawn(Told().eval(), x, EDGES)
    assert model._trimmed
    expected = one_copy_per_query(model, torch.stack([every, every]), x, EDGES)
    for given in ({}, {"num_nodes": NUM_NODES}):
        torch.testing.assert_close(model(x, EDGES, **given), expected, rtol=0, atol=1e-10)


def test_attributes_of_a_graph_that_the_model_does_not_use_are_left_alone() -> None:
    class OfData(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, 4)

        def forward(self, data: Data) -> Tensor:
            assert data.x is not None and data.edge_index is not None
            return self.conv(data.x + data.extra, data.edge_index)

    masks = {f"mask_{i}": torch.rand(NUM_NODES) > 0.5 for i in range(12)}
    data = Data(x=features(), edge_index=EDGES, extra=features(), y=torch.zeros(NUM_NODES, dtype=torch.long), **masks)
    model = identity_aware(OfData())
    torch.testing.assert_close(model(data), model.module(data), rtol=0, atol=1e-12)
    assert model.roles.known["extra"] == "node" and model.roles.known["mask_3"] == "shared"


def test_a_name_that_the_model_has_no_argument_for_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'edge_wieght' is said to be .* it has .*edge_weight"):
        identity_aware(pyg.GCN(5, 8, 2), per_node=["edge_wieght"])


class Masked(nn.Module):
    """Reads an argument by its sign alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(4, 4), SAGEConv(4, 3)

    def forward(self, x: Tensor, edge_index: Tensor, keep: Tensor) -> Tensor:
        edges = edge_index[:, keep > 0]
        return self.second(self.first(x, edges).tanh(), edges)


def test_an_argument_that_is_compared_with_a_threshold_is_used() -> None:
    x, keep = features(), (torch.arange(EDGES.size(1)) % 3).double()
    model = drawn(Masked().eval(), x, EDGES, keep)
    assert model.roles.of("keep") == "edge"
    every = torch.arange(NUM_NODES)
    expected = one_copy_per_query(model, torch.stack([every, every]), x, EDGES, keep)
    torch.testing.assert_close(model(x, EDGES, keep), expected, rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"takes keep \[14\], .* could not be decided .* Say it"):
        identity_aware(Masked().eval())(x, EDGES, torch.ones(EDGES.size(1)))  # all are kept: it may belong to anything


class Signed(nn.Module):
    """Layers that are given two sets of edges, which the model makes of one."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.SignedConv(4, 2, first_aggr=True), pyg.SignedConv(2, 2, first_aggr=False)

    def forward(self, x: Tensor, edge_index: Tensor, sign: Tensor) -> Tensor:
        edges = edge_index[:, sign > 0], edge_index[:, sign < 0]
        return self.second(self.first(x, *edges).tanh(), *edges)


def test_two_sets_of_edges_of_one_size_are_trimmed_each_by_itself() -> None:
    sign = torch.where(torch.arange(EDGES.size(1)) % 3 == 0, 1.0, -1.0)
    model = identity_aware(Signed().eval(), per_edge=["sign"])
    model(features(), EDGES, sign)
    for weight in model.colors.parameters():
        nn.init.normal_(weight)
    generator = torch.Generator().manual_seed(0)
    sign = torch.where(torch.arange(12) % 2 == 0, 1.0, -1.0)
    for _ in range(40):
        edges, x = torch.randint(0, 6, (2, 12), generator=generator), torch.randn(6, 4)
        source, target = torch.randint(0, 12, (2,), generator=generator)
        pairs = torch.stack([edges[1, [source, target]], edges[0, [source, target]]])
        expected = one_copy_per_query(model, pairs, x, edges, sign)
        torch.testing.assert_close(model(x, edges, sign, queries=pairs), expected, rtol=0, atol=1e-10)
