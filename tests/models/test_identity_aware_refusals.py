"""What cannot be computed exactly is refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch.nn.functional import relu
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, MessagePassing
from torch_geometric.utils import degree, scatter

from idgnn import IDGNN
from idgnn.identity.identity_graph import identity_graph
from idgnn.models import identity_aware_model
from idgnn.models.identity_aware import identity_aware
from idgnn.models.wrapping.verify import Comparisons, verify
from tests.models.wrapped import EDGES, NOT_COLORED, NUM_NODES, drawn, features, one_copy_per_query

pytestmark = pytest.mark.usefixtures("double")


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
def test_layers_refused_at_their_first_colored_call(layer: MessagePassing, words: str) -> None:
    ours, x = identity_aware(layer), features()
    assert torch.equal(ours(x, EDGES), layer(x, EDGES))
    with pytest.raises(ValueError, match=words):
        ours(x, EDGES, colored=torch.arange(NUM_NODES) == 0)


POOLED = "pool after"
MIXES = "neighborhood"
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
    with pytest.raises(ValueError, match="1-hop neighborhood"):
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


def test_what_the_model_cannot_take_is_told_in_its_own_words_and_shapes() -> None:
    class Encoded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lin, self.conv = nn.Linear(4, 4), GCNConv(4, 4)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(self.lin(x), edge_index)

    x, model = features(), identity_aware(Encoded())
    model(x, EDGES)
    with pytest.raises(RuntimeError, match=rf"\({NUM_NODES}x1 and 4x4\)"):  # not the rows of the identity graph
        model(x[:, :1], EDGES)


class TakesData(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(4, 2)

    def forward(self, data: Data) -> Tensor:
        return self.conv(data.x, data.edge_index)


class RowsOfItsOwn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.place, self.conv = nn.Parameter(torch.rand(NUM_NODES, 4)), GCNConv(4, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x + self.place, edge_index)


class NothingButEdges(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.nodes, self.conv = nn.Embedding(NUM_NODES, 4), GCNConv(4, 2)

    def forward(self, edge_index: Tensor) -> Tensor:
        return self.conv(self.nodes.weight, edge_index)


def test_what_a_model_keeps_for_each_node_has_to_be_an_argument() -> None:
    with pytest.raises(ValueError, match=r"RowsOfItsOwn keeps 'place' \[7, 4\], it seems a row for each node"):
        identity_aware(RowsOfItsOwn())(features(), EDGES)
    with pytest.raises(ValueError, match=r"NothingButEdges takes no features.* has to be an argument"):
        identity_aware(NothingButEdges())(EDGES)


def test_models_of_ours_are_made_identity_aware() -> None:
    with pytest.raises(ValueError, match=r"IDGNN has layers of idgnn's own.* identity-aware with identity='full'"):
        identity_aware(IDGNN(4, 8, 2))


def test_an_error_is_not_blamed_on_weights_that_happen_to_have_as_many_rows() -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(4, NUM_NODES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            if x.size(0) > NUM_NODES:
                raise error("of another kind")
            return self.conv(x, edge_index)

    for error in (RuntimeError, torch.OutOfMemoryError):
        with pytest.raises(error, match="of another kind"):
            identity_aware(Failing())(features(), EDGES)


def test_bad_arguments() -> None:
    x, model = features(), identity_aware(pyg.GCN(4, 8, 2))
    graph = identity_graph(Data(x=x, edge_index=EDGES), num_layers=1)
    with pytest.raises(ValueError, match="built for 1 rounds"):
        model(x, EDGES, graph=graph)
    with pytest.raises(ValueError, match="built from 7 nodes and 14 edges"):
        model(x, EDGES[:, :5], graph=graph)
    with pytest.raises(ValueError, match=r"expected what idgnn\.identity_graph returns"):
        model(x, EDGES, graph=Data(x=x, edge_index=EDGES))
    with pytest.raises(ValueError, match="sampled neighborhood"):
        model(x, EDGES, num_sampled_nodes_per_hop=[3, 4], num_sampled_edges_per_hop=[10, 4])
    with pytest.raises(ValueError, match="more than one of queries"):
        model(x, EDGES, graph=graph, queries=torch.tensor([0]))
    with pytest.raises(ValueError, match="expected a bool tensor"):
        model(x, EDGES, colored=torch.zeros(NUM_NODES))
    with pytest.raises(ValueError, match="one entry per row of x"):
        model(x, EDGES, colored=torch.ones(3, dtype=torch.bool))
    with pytest.raises(ValueError, match="NaN or infinite"):
        model(torch.full_like(x, torch.nan), EDGES)
    with pytest.raises(ValueError, match="names node 8"):
        model(x, EDGES + 3)
    with pytest.raises(ValueError, match="whole numbers"):
        model(x, EDGES.double())
    for name in ("edge_weight", "edge_attr"):
        with pytest.raises(ValueError, match=f"{name} has 3 rows but edge_index has 14 edges"):
            model(x, EDGES, **{name: torch.ones(3)})
        with pytest.raises(ValueError, match=f"{name} has 3 rows but edge_index has 14 edges"):
            identity_aware(TakesData())(Data(x=x, edge_index=EDGES, **{name: torch.ones(3)}))
    with pytest.raises(ValueError, match="x of type NoneType"):
        model(None, EDGES)
    with pytest.raises(ValueError, match="to_edge_index"):
        model(x, torch.eye(NUM_NODES).to_sparse_coo())
    with pytest.raises(ValueError, match="expected at least one"):
        model(x, EDGES, queries=torch.empty(0, dtype=torch.long))
    with pytest.raises(ValueError, match="name node 9"):
        model(x, EDGES, queries=torch.tensor([9]))


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta state")
def test_a_sparse_matrix_is_refused_by_a_layer_colored_along_its_edges() -> None:
    adjacency = torch.eye(NUM_NODES).to_sparse_csr()
    with pytest.raises(ValueError, match="sparse matrix"):
        identity_aware(GCNConv(4, 4, normalize=False))(features(), adjacency, colored=~NOT_COLORED)


def test_a_model_that_cannot_be_copied_says_what_to_do() -> None:
    model = Around(lambda _, h, e: h)
    model.last = model(features(), EDGES)
    with pytest.raises(ValueError, match="load_state_dict"):
        identity_aware(model)


@pytest.mark.parametrize("colors", [1, 2])
def test_a_layer_is_given_colors_and_no_queries(colors: int) -> None:
    layer = identity_aware(GCNConv(4, 4), colors=colors)
    with pytest.raises(ValueError, match=r"a wrapped GCNConv was given queries, .* takes `colored`.* model .*IDGNN"):
        layer(features(), EDGES, queries=torch.tensor([0]))


class Weighted(nn.Module):
    """A chain of layers whose edges have weights, or are chosen, by the degrees of nodes."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.first, self.second, self.kind = pyg.GraphConv(4, 4), pyg.GraphConv(4, 3), kind

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        end = 0 if self.kind == "weights by out-degree" else 1
        of_source = degree(edge_index[end], x.size(0), dtype=x.dtype)[edge_index[0]]
        weight = None if self.kind == "few edges" else of_source.clamp(min=1).rsqrt()
        edges = edge_index[:, of_source < 3] if self.kind == "few edges" else edge_index
        return self.second(self.first(x, edges, weight).tanh(), edges, weight)


def both_ways(*edges: tuple[int, int]) -> Tensor:
    return torch.tensor([*edges, *(edge[::-1] for edge in edges)]).t()


SHOW_LITTLE = {
    "edge": both_ways((0, 1)),
    "star": both_ways((0, 1), (0, 2), (0, 3)),
    "into a node": torch.tensor([[1, 2, 3], [0, 0, 0]]),
    "chain": torch.tensor([[0, 1, 2], [1, 2, 3]]),
    "cycle": torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]),
    "triangle": both_ways((0, 1), (1, 2), (2, 0)),
    "path": both_ways((0, 1), (1, 2)),
    "loop": torch.tensor([[0], [0]]),
}


@pytest.mark.parametrize("first", SHOW_LITTLE)
@pytest.mark.parametrize("kind", ["weights by in-degree", "few edges"])
def test_a_first_graph_that_shows_little_decides_nothing(kind, first) -> None:
    """On these the rows that matter have all of their edges, or no row reads a plain one."""
    small = SHOW_LITTLE[first]
    model = drawn(Weighted(kind).eval(), torch.randn(4, 4), small)
    every, generator = torch.arange(NUM_NODES), torch.Generator().manual_seed(0)
    for _ in range(6):
        x, edges = features(), torch.randint(0, NUM_NODES, (2, 2 * NUM_NODES), generator=generator)
        expected = one_copy_per_query(model, torch.stack([every, every]), x, edges)
        torch.testing.assert_close(model(x, edges), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("first", SHOW_LITTLE)
def test_a_model_that_is_not_exact_is_refused_on_the_first_graph_that_shows_it(first) -> None:
    model = identity_aware(Weighted("weights by out-degree").eval())
    with pytest.raises(ValueError, match="counts the edges that leave a node"):
        model(torch.randn(4, 4), SHOW_LITTLE[first])
        model(features(), EDGES)


def test_graphs_that_show_little_are_compared_a_few_times_only(monkeypatch) -> None:
    compared = []
    monkeypatch.setattr(identity_aware_model, "verify", lambda *given: compared.append(1) or verify(*given))
    model = identity_aware(pyg.GraphSAGE(4, 4, 2).eval())
    for _ in range(Comparisons.MOST + 3):
        model(torch.randn(2, 4), SHOW_LITTLE["edge"])
    assert len(compared) == Comparisons.MOST
