"""Embedding by chunks gives what the network gives in one piece, on every awkward graph, however little memory."""

import re

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GATv2Conv, GCNConv, PNAConv, SAGEConv, TAGConv, TransformerConv

from idgnn import IDGNN
from idgnn.experiments.released import ReleasedEncoder
from idgnn.identity.cost import TooLargeError
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.identity.schedule_builder import make_schedule
from idgnn.models import kept_network
from idgnn.models.chunk_shares import Share
from idgnn.models.embedding import embed_by_chunks
from idgnn.models.embedding_memory import as_bytes
from tests.laws import brute_force
from tests.laws.graphs import CHANNELS, EDGE_DIM, as_pairs
from tests.laws.graphs import queries as any_queries
from tests.laws.networks import ACTS, KINDS, assert_same, encoder, randomized

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def graph(num_nodes: int, edges: list[tuple[int, int]], undirected: bool = True, seed: int = 0) -> Data:
    edges = edges + [(b, a) for a, b in edges if a != b] if undirected else edges
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    generator = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(num_nodes, CHANNELS, generator=generator, dtype=torch.double),
        edge_index=edge_index,
        edge_weight=torch.rand(len(edges), generator=generator, dtype=torch.double) + 0.5,
        edge_attr=torch.randn(len(edges), EDGE_DIM, generator=generator, dtype=torch.double),
    )


def drawn(num_nodes: int, num_edges: int, undirected: bool, seed: int) -> Data:
    ends = torch.randint(num_nodes, (num_edges, 2), generator=torch.Generator().manual_seed(seed))
    return graph(num_nodes, [tuple(pair) for pair in ends.tolist()], undirected, seed)


GRAPHS = {
    "one node": graph(1, []),
    "one node with a loop": graph(1, [(0, 0)]),
    "no edges": graph(5, []),
    "isolated nodes": graph(6, [(0, 1), (1, 2)]),
    "loops": graph(4, [(0, 0), (0, 1), (1, 2), (2, 2), (2, 3)]),
    "duplicates": graph(4, [(0, 1), (0, 1), (1, 2), (2, 0), (2, 3), (2, 3)]),
    "directed": drawn(12, 24, undirected=False, seed=1),
    "a path one way": graph(7, [(i, i + 1) for i in range(6)], undirected=False),
    "disconnected": graph(8, [(0, 1), (1, 2), (2, 0), (4, 5), (5, 6), (6, 7)]),
    "a hub": graph(20, [(0, i) for i in range(1, 20)] + [(3, 4), (5, 6)]),
    "a hub that is only heard": graph(12, [(0, i) for i in range(1, 12)], undirected=False),
    "a clique": graph(6, [(a, b) for a in range(6) for b in range(a)]),
    "any": drawn(14, 20, undirected=True, seed=2),
}


def some_roots(num_nodes: int) -> dict[str, Tensor | None]:
    generator = torch.Generator().manual_seed(num_nodes)
    return {
        "all": None,
        "some": torch.randint(num_nodes, (4,), generator=generator),
        "pairs": torch.randint(num_nodes, (2, 9), generator=generator),
    }


def least_memory(model: IDGNN, data: Data, roots: Tensor | None) -> tuple[int, int]:
    """About the least memory that suffices, and the chunks that it takes."""
    memory, chunks = 1 << 12, []
    while not chunks:
        try:
            embed_by_chunks(model, data, roots, memory, lambda positions, values, done: chunks.append(done))
        except TooLargeError:
            memory += memory // 4
    return memory, len(chunks)


@torch.no_grad()
def in_one_piece(model: IDGNN, data: Data, roots: Tensor | None) -> Tensor:
    edge = {name: data[name] for name in ("edge_attr", "edge_weight") if model.takes(name) and name in data}
    return model(data.x, data.edge_index, queries=roots, **edge)


def taken(kind, data: Data) -> Data:
    return Data(x=data.x, edge_index=data.edge_index, **kind.edge(data))


@pytest.mark.parametrize(
    ("name", "num_layers"),
    [(name, 3) for name in KINDS]
    + [(name, k) for name in ("gcn", "sage-max", "gat", "gin", "gine") for k in (1, 2, 4, 5)],
)
def test_every_layer_on_every_graph(name, num_layers):
    kind = KINDS[name]
    model = encoder(kind, num_layers)
    for given_graph in GRAPHS.values():
        data = taken(kind, given_graph)
        for roots in some_roots(data.num_nodes).values():
            assert_same(model.embed(data, roots, memory=1 << 18), in_one_piece(model, data, roots), 1e-9)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_brute_force_agrees(kind, data):
    """One colored copy of the graph per query, every layer from its equation."""
    given_graph = data.draw(kind.graphs())
    roots = data.draw(any_queries(given_graph.num_nodes))
    residual, act = data.draw(st.booleans()), data.draw(st.sampled_from(ACTS))
    model = encoder(kind, data.draw(st.integers(1, 5)), residual=residual, act=act)
    memory, _ = least_memory(model, taken(kind, given_graph), roots)
    ours = model.embed(taken(kind, given_graph), roots, memory=memory)
    asked = as_pairs(roots, given_graph.num_nodes)
    theirs = brute_force.embeddings(model, given_graph.x, given_graph.edge_index, asked, **kind.edge(given_graph))
    assert_same(ours, theirs, 1e-9)


@pytest.mark.parametrize("num_layers", [2, 3, 5])
@pytest.mark.parametrize("name", ["gcn", "gcn-weighted", "gin", "sage-mean", "sage-sum"])
def test_exchanging_messages_is_summing_all_of_them(name, num_layers, monkeypatch):
    kind = KINDS[name]
    model, data = encoder(kind, num_layers, residual=num_layers == 5), drawn(40, 80, undirected=True, seed=3)
    exchanged = model.embed(taken(kind, data))
    monkeypatch.setattr(
        kept_network, "make_schedule", lambda *given, exchange, **rest: make_schedule(*given, exchange=False, **rest)
    )
    assert_same(exchanged, model.embed(taken(kind, data)), 1e-9)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_little_memory_means_many_chunks(kind, undirected):
    model, data = encoder(kind, 3), taken(kind, drawn(36, 45, undirected, seed=4))
    memory, chunks = least_memory(model, data, None)
    assert chunks > 3
    assert_same(model.embed(data, memory=memory), in_one_piece(model, data, None), 1e-9)


class Residual(torch.nn.Module):
    """A layer inside a module of its own."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = GCNConv(in_channels, out_channels)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return x + self.conv(x, edge_index)


FOREIGN = {
    "gcn": GCNConv,
    "residual": Residual,
    "gatv2": lambda i, o: GATv2Conv(i, o, edge_dim=EDGE_DIM),
    "sage": lambda i, o: SAGEConv(i, o, aggr="max"),
    "transformer": lambda i, o: TransformerConv(i, o, edge_dim=EDGE_DIM),
    "pna": lambda i, o: PNAConv(i, o, ["mean", "max"], ["identity", "amplification"], torch.tensor([1, 3, 2])),
}


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("conv", FOREIGN.values(), ids=FOREIGN.keys())
def test_layers_that_are_not_ours(conv, num_layers):
    model = randomized(IDGNN(CHANNELS, 8, 2, num_layers, conv)).eval()
    for name in ("loops", "duplicates", "directed", "a hub"):
        data = GRAPHS[name]
        if conv is FOREIGN["pna"]:  # it takes them only if it is told so when it is made
            data = Data(x=data.x, edge_index=data.edge_index)
        for roots in some_roots(data.num_nodes).values():
            memory, _ = least_memory(model, data, roots)
            assert_same(model.embed(data, roots, memory=memory), in_one_piece(model, data, roots), 1e-9)


@pytest.mark.parametrize("identity", ["none", "fast"])
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin", GCNConv, lambda i, o: TAGConv(i, o, K=2)])
def test_networks_without_colors(conv, identity):
    """Of a plain network any layer will do, also one that looks further than its neighbors."""
    model = randomized(IDGNN(CHANNELS, 8, 2, 3, conv, identity)).eval()
    for name in ("no edges", "loops", "directed", "a hub"):
        data = Data(x=GRAPHS[name].x, edge_index=GRAPHS[name].edge_index)
        for roots in some_roots(data.num_nodes).values():
            memory, _ = least_memory(model, data, roots)
            assert_same(model.embed(data, roots, memory=memory), in_one_piece(model, data, roots), 1e-9)


def test_no_nodes():
    empty = Data(x=torch.zeros(0, CHANNELS), edge_index=torch.zeros(2, 0, dtype=torch.long))
    assert IDGNN(CHANNELS, 8, 2).embed(empty).shape == (0, 2)


def test_no_features():
    """As in training, a graph without features has the feature 1."""
    model, data = IDGNN(1, 8, 2).eval(), GRAPHS["any"]
    plain = Data(edge_index=data.edge_index, num_nodes=data.num_nodes)
    expected = in_one_piece(model, Data(x=torch.ones(data.num_nodes, 1), edge_index=data.edge_index), None)
    assert_same(model.embed(plain), expected, 1e-5)
    with pytest.raises(ValueError, match="x is a NoneType"):
        IDGNN(2, 8, 2).embed(plain)


def test_the_mode_is_kept_and_nothing_is_learnt():
    model, data = randomized(IDGNN(CHANNELS, 8, 2)), GRAPHS["any"]
    model.train()
    model.norms[1].eval()  # a frozen part
    before = {name: value.clone() for name, value in model.state_dict().items()}
    out = model.embed(data)
    assert model.training and model.norms[0].training and not model.norms[1].training
    assert not out.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert_same(out, in_one_piece(model.eval(), data, None), 1e-9)


def test_where_the_result_goes(tmp_path):
    model, data = encoder(KINDS["gin"], 3), GRAPHS["any"]
    expected = model.embed(data)
    file = np.memmap(tmp_path / "embeddings", dtype=np.float64, mode="w+", shape=(data.num_nodes, 2))
    returned = model.embed(data, out=file)
    assert_same(returned, expected, 1e-12)
    assert_same(torch.from_numpy(np.array(file)), expected, 1e-12)
    tensor = torch.empty(data.num_nodes, 2, dtype=torch.float32)
    assert model.embed(data, out=tensor) is tensor
    assert_same(tensor.double(), expected, 1e-6)
    with pytest.raises(ValueError, match=r"out has shape \[3, 2\] .* expected .* \[14, 2\]"):
        model.embed(data, out=torch.empty(3, 2))


def test_going_on_where_it_stopped():
    """The order depends on the roots alone, so that the first of them may be left out."""
    model, data = encoder(KINDS["gcn"], 3), drawn(60, 90, undirected=True, seed=5)
    roots = torch.randint(60, (2, 50), generator=torch.Generator().manual_seed(0))
    expected, out = model.embed(data, roots), torch.full((50, 2), torch.nan, dtype=torch.double)
    stops: list[int] = []

    def finished(positions: Tensor, values: Tensor, done: int) -> None:
        assert out[positions].isnan().all()  # nothing is computed twice
        out[positions] = values
        stops.append(done)
        if len(stops) < 4:
            raise InterruptedError

    memory, _ = least_memory(model, data, roots)
    while out.isnan().any():
        try:
            embed_by_chunks(model, data, roots, memory, finished, start=stops[-1] if stops else 0)
        except InterruptedError:
            memory += 1000  # other chunks
    assert_same(out, expected, 1e-12)


def test_pairs_out_of_reach_are_told():
    data = GRAPHS["disconnected"]
    with pytest.warns(UnreachedColorWarning, match="1 of 2 queries read a node that lies more than 3 steps"):
        encoder(KINDS["gcn"], 3).embed(data, torch.tensor([[0, 1], [5, 0]]))


@pytest.mark.parametrize("conv", ["gcn", "gin"])
def test_a_star_of_100_000_nodes(conv):
    """A row of the hub for each leaf, and each has 100,000 edges: too many to look at one by one."""
    size = 100_000
    leaves = torch.arange(1, size)
    edge_index = torch.stack([torch.cat([leaves, leaves * 0]), torch.cat([leaves * 0, leaves])])
    torch.manual_seed(0)
    data = Data(x=torch.randn(size, 2, dtype=torch.double), edge_index=edge_index)
    model = IDGNN(2, 16, 4, num_layers=3, conv=conv).double().eval()
    found = model.embed(data, memory="512MiB")
    roots = torch.tensor([17, 0, 99_999])
    with torch.no_grad():
        expected = model(data.x, data.edge_index, queries=roots, engine="ego")
    assert_same(found[roots], expected, 1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"roots": torch.tensor([3, 14])}, "name node 14, but the graph has 14 nodes"),
        ({"roots": torch.tensor([[0], [-1]])}, "name node -1"),
        ({"roots": ["a"]}, "roots is .*, expected whole numbers"),
        ({"memory": "lots"}, "memory is 'lots', expected a number of bytes or a size such as '512MiB' or '4GiB'"),
        ({"memory": "4 ib"}, "memory is '4 ib', expected"),
        ({"memory": float("inf")}, "memory is inf, expected"),
        ({"memory": 0}, "memory is 0, expected"),
        ({"memory": 0.5}, "memory is 0.5, expected"),
        ({"memory": "1KiB"}, r"memory is 1.0 KiB, but .* expected at least .* Give more \(memory=..., --memory\)"),
    ],
)
def test_mistakes_are_explained(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        encoder(KINDS["gcn"], 3).embed(GRAPHS["any"], **arguments)


def test_a_root_that_does_not_fit_alone_is_refused_at_once():
    """Before anything is handed over: the hub comes last."""
    edges = [(i, 2000) for i in range(2000)]
    data, model = graph(2001, edges), encoder(KINDS["gcn"], 4)
    done: list[int] = []
    with pytest.raises(
        TooLargeError, match=r"the embedding of node \d+ alone has 2,001 states .* more \(memory=..., --memory\)"
    ):
        embed_by_chunks(model, data, None, 3_600_000, lambda positions, values, number: done.append(number))
    assert not done


@pytest.mark.parametrize("name", ["gat", "gin"])
def test_the_memory_that_a_refusal_asks_for_is_enough(name):
    edges = [(i, 3000 + hub) for hub in range(4) for i in range(600 * hub + 400)]
    data = graph(3004, edges, undirected=True)
    model, roots = encoder(KINDS[name], 3), torch.arange(3000, 3004)
    memory = as_bytes("6MiB", torch.device("cpu"))
    with pytest.raises(TooLargeError, match="the embedding of node 3003 alone") as refusal:
        model.embed(data, roots, memory=memory)
    more = re.search(r"Give ([\d.]+ [KMG]iB) more", str(refusal.value))
    assert more is not None
    model.embed(data, roots, memory=memory + as_bytes(more[1], torch.device("cpu")))


@pytest.mark.parametrize(
    ("memory", "size"), [("4GiB", 2**32), ("1.5 kb", 1500), ("20", 20), (7, 7), ("3 MiB", 3 * 2**20)]
)
def test_sizes(memory, size):
    assert as_bytes(memory, torch.device("cpu")) == size
    assert as_bytes(None, torch.device("cpu")) > 2**20


def test_a_layer_that_mixes_rows_is_refused():
    class Mixing(SAGEConv):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index) + x.mean(0)

    with pytest.raises(ValueError, match="cannot be made identity-aware exactly"):
        IDGNN(CHANNELS, 8, 2, conv=Mixing).double().embed(GRAPHS["any"])


def test_a_block_of_several_layers_is_refused():
    data = GRAPHS["any"]
    model = IDGNN(CHANNELS, 8, 2, num_layers=2, conv=lambda i, o: GCN(i, o, num_layers=2, out_channels=o)).double()
    with pytest.raises(ValueError, match="4 rounds of messages in all, expected 2"):
        model.embed(data)
    with pytest.raises(ValueError, match="4 rounds of messages in all, expected 2"):
        model(data.x, data.edge_index)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.zeros((6, 3), np.int64), "dtype torch.int64, expected a tensor or numpy array of numbers like float32"),
        (torch.zeros(1, 3).expand(6, 3), "several of its entries are one place in memory"),
        ([[0.0]], "out is a list, expected"),
    ],
    ids=["whole numbers", "expanded", "a list"],
)
def test_what_cannot_hold_embeddings_is_refused(out, message):
    with pytest.raises(ValueError, match=message):
        IDGNN(CHANNELS, 4, 3).double().embed(GRAPHS["isolated nodes"], out=out)


def test_a_file_that_is_read_only_is_refused_and_not_touched(tmp_path):
    np.zeros((6, 3)).tofile(tmp_path / "kept")
    out = np.memmap(tmp_path / "kept", np.float64, "r", shape=(6, 3))
    with pytest.raises(ValueError, match="out is read-only"):
        IDGNN(CHANNELS, 4, 3).double().embed(GRAPHS["isolated nodes"], out=out)
    assert not out.any()


def test_autocast_does_not_change_it():
    model = IDGNN(CHANNELS, 4, 3).double()
    expected = model.embed(GRAPHS["a hub"])
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(model.embed(GRAPHS["a hub"]), expected)


def test_a_graph_without_features_has_the_feature_one_in_the_precision_of_the_network():
    data = Data(edge_index=GRAPHS["a hub"].edge_index, num_nodes=20)
    model = IDGNN(1, 4, 3).double()
    with_ones = Data(x=torch.ones(20, 1, dtype=torch.double), edge_index=data.edge_index)
    assert torch.equal(model.embed(data), model.embed(with_ones))


def test_edge_features_are_left_out_if_the_layers_were_made_without():
    data = GRAPHS["loops"]
    model = IDGNN(CHANNELS, 4, 3, conv=TransformerConv).double().eval()
    assert_same(model.embed(data), model(data.x, data.edge_index))


def test_a_layer_derived_from_one_of_ours_is_run_as_it_is():
    """The delta form knows what our layers sum, and not what others make of them."""
    data = GRAPHS["a hub"]
    settings = {"in_channels": CHANNELS, "hidden_channels": 4, "out_channels": None, "conv": "gcn"}
    model = ReleasedEncoder(**settings).double().eval()
    assert_same(model.embed(data), model(data.x, data.edge_index, edge_weight=data.edge_weight))


@pytest.mark.parametrize("size", [10**9, 1e9, np.int64(10**9), "1GB", "1 g", "1000mb"])
def test_sizes_may_be_written_in_many_ways(size):
    assert as_bytes(size, torch.device("cpu")) == 10**9


@pytest.mark.parametrize("roots", [[3, 0, 3], range(4), np.array([2, 1]), [[0, 1], [1, 1]], ()], ids=str)
def test_roots_may_be_what_a_tensor_is_made_of(roots):
    model, data = IDGNN(CHANNELS, 4, 3).double(), GRAPHS["isolated nodes"]
    if len(roots) == 0:
        with pytest.raises(ValueError, match="expected"):
            model.embed(data, roots)
        return
    assert torch.equal(model.embed(data, roots), model.embed(data, torch.tensor(np.asarray(roots))))


@pytest.mark.parametrize("conv", ["gcn", "gat", SAGEConv])
@pytest.mark.parametrize("identity", ["full", "fast", "none"])
def test_shares_together_are_the_whole_bit_for_bit(conv, identity):
    """For any number of processes, also more than there are chunks; other parts change no more than rounding."""
    model = IDGNN(2, 8, 4, conv=conv, identity=identity, cycle_length=4).eval()
    edges = torch.randint(30, (2, 60), generator=torch.Generator().manual_seed(1))
    data, roots = Data(x=torch.randn(34, 2), edge_index=edges), torch.tensor([5, 3, 3, 33, *range(20)])

    def computed(size: int) -> tuple[torch.Tensor, int]:
        found, chunks = torch.full((roots.numel(), 4), torch.nan), 0
        for rank in range(size):

            def finished(positions, values, done):
                nonlocal chunks
                assert found[positions].isnan().all()  # nothing is computed twice
                found[positions], chunks = values, chunks + 1

            embed_by_chunks(model, data, roots, None, finished, share=Share(rank, size, 5))
        return found, chunks

    one, chunks = computed(1)
    assert chunks >= (1 if not isinstance(conv, str) and identity != "full" else 5)
    torch.testing.assert_close(one, model.embed(data, roots), atol=1e-6, rtol=1e-5)
    for size in (2, 3, 40):
        assert torch.equal(computed(size)[0], one)
