"""Two colors == one copy of the graph with both colors per query: rows, outputs, gradients, and what follows."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Batch, Data

from idgnn import IDGNN, ToIdentityGraph, identity_cost, identity_graph
from idgnn.identity import cost
from idgnn.models.large_graph import LargeGraph
from idgnn.models.prepared import PreparedGraphs
from tests.laws import brute_force
from tests.laws.graphs import CHANNELS, graphs, pairs, roots
from tests.laws.networks import (
    ACTS,
    COLORS,
    KINDS,
    OUT,
    WIDTH,
    Kind,
    assert_engines_agree,
    assert_same,
    assert_same_function,
    layer,
    plain_twin,
    randomized,
    with_plain_weights,
)
from tests.laws.test_batching import assert_equal_graphs
from tests.laws.test_blocks import forced
from tests.laws.test_identity_graph import steps
from tests.laws.test_permutation import renamed

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")

SECOND = ("neighbors", "ball", "all")


def two_colors(kind: Kind, num_layers: int, color: str = "message+update", **options) -> IDGNN:
    """In evaluation mode, with random weights and running statistics."""
    model = IDGNN(CHANNELS, WIDTH, OUT, num_layers, kind.conv, color=color, colors=2, **kind.options, **options)
    return randomized(model).eval()


def triples(num_nodes: int) -> st.SearchStrategy[Tensor]:
    """Queries that share colors, twice the same one, nodes with both colors, and nodes that no color reaches."""
    node = st.integers(0, num_nodes - 1)
    listed = st.lists(st.tuples(node, node, node), min_size=1, max_size=5)
    some = listed.map(lambda some: torch.tensor(some).t().contiguous())
    doubled = some.map(lambda some: torch.cat([some, some[[0, 2, 1]], some[:, :1]], dim=1))
    return st.one_of(some, doubled, some.map(lambda some: some[[1, 1, 2]]))


def asked_of(model: IDGNN, data: Data, queries: Tensor | None) -> list[list[tuple[int, int, int]]]:
    """The triples whose states are pooled into each answer, from the definitions and networkx alone."""
    both = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    distance = steps(Data(edge_index=both, num_nodes=data.num_nodes))
    config = model.config
    most = {"neighbors": 1, "ball": config.radius, "all": data.num_nodes}[config.second]
    if queries is not None and queries.dim() == 2 and queries.size(0) == 3:
        return [[tuple(triple)] for triple in queries.t().tolist()]
    if queries is not None and queries.dim() == 2:
        back = (lambda u, v: (v, u, v)) if config.directed else (lambda u, v: (v, v, u))
        return [[(u, u, v), back(u, v)] for u, v in queries.t().tolist()]
    listed = []
    for node in range(data.num_nodes) if queries is None else queries.tolist():
        second = [other for other, steps in distance[node].items() if 0 < steps <= most]
        if config.with_self or not second:
            second.append(node)
        listed.append([(node, node, other) for other in second])
    return listed


def engines(model: IDGNN) -> tuple[str | None, ...]:
    """All that can run its layers."""
    return (None, "trimmed", "graph", "ego", *(["exchange"] if model.operator.sums else []))


@pytest.mark.parametrize("num_layers", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=3)
@given(data=st.data())
def test_every_engine_is_brute_force(kind, num_layers, data):
    graph = data.draw(kind.graphs())
    model = two_colors(
        kind,
        num_layers,
        data.draw(st.sampled_from(COLORS)),
        second=data.draw(st.sampled_from(SECOND)),
        pool=data.draw(st.sampled_from(["sum", "mean", "max"])),
        with_self=data.draw(st.booleans()),
        directed=data.draw(st.booleans()),
        residual=data.draw(st.booleans()),
        act=data.draw(st.sampled_from(ACTS)),
    )
    size = graph.num_nodes
    asked = data.draw(st.one_of(triples(size), st.none(), roots(size), pairs(size)))
    listed = asked_of(model, graph, asked)

    def reference(x, **edge):
        return brute_force.two_colors(model, x, graph.edge_index, listed, **edge)

    assert_engines_agree(model, graph, kind.edge(graph), asked, engines(model), reference)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=10)
@given(data=st.data())
def test_one_layer_is_its_equation_whatever_the_colors(kind, data):
    graph = data.draw(kind.graphs())
    size = graph.num_nodes
    colored = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
    conv = layer(kind, color=data.draw(st.sampled_from(COLORS)), colors=2)
    names, inputs = list(kind.edge(graph)), [graph.x, *kind.edge(graph).values()]

    def reference(x, *edge):
        return brute_force.one_round(conv, x, graph.edge_index, colored, **dict(zip(names, edge, strict=True)))

    def ours(x, *edge):
        return conv(x, graph.edge_index, colored=colored, **dict(zip(names, edge, strict=True)))

    assert_same_function(ours, reference, inputs, list(conv.parameters()), 1e-12)


@settings(max_examples=100)
@given(data=st.data(), graph=graphs(max_nodes=7), num_layers=st.integers(1, 6))
def test_rows_are_those_of_the_definition(data, graph, num_layers):
    """(u|v,w) where both colors arrive in time, (u|v) where v is strictly nearer; the cost is known before."""
    asked = data.draw(triples(graph.num_nodes))
    distance, far = steps(graph), 100
    expected = {}
    for read, first, second in asked.t().tolist():
        for node in range(graph.num_nodes):
            left = distance[node].get(read, far)
            d, e = distance[first].get(node, far), far if second == first else distance[second].get(node, far)
            if max(d, e) + left <= num_layers:
                expected[2, first, second, node] = max(d, e), {0: 1}.get(d, {0: 2}.get(e, 0))
            if d < e and d + left <= num_layers:
                expected[0, first, 0, node] = d, int(d == 0)
            if e < d and e + left <= num_layers:
                expected[1, second, 0, node] = e, 2 * int(e == 0)
    built = identity_graph(graph, num_layers, asked)
    size, ordered = graph.num_nodes, sorted(expected)
    assert built.node[size:].tolist() == [node for *_, node in ordered]
    assert built.arrival[size:].tolist() == [expected[row][0] for row in ordered]
    assert built.colored[size:].tolist() == [expected[row][1] for row in ordered]
    assert built.colored.dtype == torch.int8 and not built.colored[:size].any()
    assert torch.equal(built.node[built.edge_index], graph.edge_index[:, built.edge])
    told = identity_cost(graph, num_layers, asked)
    per_row = (built.node, built.colored, built.arrival, built.before, built.x)
    per_edge = (built.edge_index, built.edge, built.edge_attr, built.edge_weight)
    assert (told.rows, told.edges) == (built.num_nodes, built.num_edges)
    assert told.bytes == sum(values.nbytes for values in per_row + per_edge)


@settings(max_examples=40)
@given(data=st.data(), graph=graphs(max_nodes=7), num_layers=st.integers(1, 5), chunk=st.integers(1, 30))
def test_built_in_parts_it_is_the_same(data, graph, num_layers, chunk):
    asked = data.draw(triples(graph.num_nodes))
    expected = identity_graph(graph, num_layers, asked)
    with pytest.MonkeyPatch.context() as patch:
        for place in ("cone", "identity_graph"):
            patch.setattr(f"idgnn.identity.{place}.CHUNK", chunk)
        assert_equal_graphs(identity_graph(graph, num_layers, asked), expected)
        assert identity_cost(graph, num_layers, asked).rows == expected.num_nodes


@settings(max_examples=40)
@given(data=st.data(), graph=graphs(max_nodes=6), num_layers=st.integers(1, 4))
def test_what_does_not_fit_is_refused_with_the_ways_out(data, graph, num_layers):
    asked = data.draw(triples(graph.num_nodes))
    told = identity_cost(graph, num_layers, asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cost, "free_memory", lambda device: told.bytes)
        assert identity_graph(graph, num_layers, asked).num_nodes == told.rows
        patch.setattr(cost, "free_memory", lambda device: told.bytes - 1)
        says = f"{told.rows:,} rows and {told.edges:,} edges.*fewer layers.*second='neighbors'"
        with pytest.raises(ValueError, match=says):
            identity_graph(graph, num_layers, asked)


@st.composite
def datasets(draw) -> list[Data]:
    listed = draw(st.lists(graphs(max_nodes=4), min_size=1, max_size=4))
    for data in listed:
        data.triple_index = draw(triples(data.num_nodes))
        data.pair_index = draw(pairs(data.num_nodes))
    return listed


@settings(max_examples=40)
@given(listed=datasets(), num_layers=st.integers(1, 4))
def test_the_identity_graph_of_a_batch_is_the_batch_of_identity_graphs(listed, num_layers):
    transform = ToIdentityGraph(num_layers, queries="triple_index")
    single = [transform(data) for data in listed]
    expected, found = Batch.from_data_list(single), transform(Batch.from_data_list(listed))
    assert_equal_graphs(found, expected)
    for ours, theirs in zip(found.to_data_list(), single, strict=True):
        for key in ("edge_index", "node", "colored", "arrival", "before", "query_row", "plain_row", "plain_edge"):
            assert torch.equal(ours[key], theirs[key]), key


@pytest.mark.parametrize("asked", [None, "triple_index", "pair_index"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=3)
@given(draw=st.data(), listed=datasets(), num_layers=st.integers(1, 4))
def test_a_cut_batch_gives_what_the_batch_gives(kind, asked, draw, listed, num_layers):
    kind = KINDS[kind]
    model = two_colors(kind, num_layers, second=draw.draw(st.sampled_from(SECOND)))
    engine = draw.draw(st.sampled_from(engines(model)))

    def prepare(graphs: list[Data]):
        batch = Batch.from_data_list(graphs)
        queries = None if asked is None else batch[asked]
        return batch, model.prepare(batch.x, batch.edge_index, queries=queries, engine=engine, **kind.edge(batch))

    chosen = draw.draw(st.lists(st.sampled_from(range(len(listed))), min_size=1, max_size=4, unique=True))
    batch, everything = prepare(listed)
    stack = PreparedGraphs(everything, batch.batch, len(listed))
    for ids in (chosen, chosen[::-1]):
        ready, cut = stack.cut(torch.tensor(ids))
        _, expected = prepare([listed[i] for i in ids])
        runs = (lambda: model.run(ready)), (lambda: model.run(expected))  # noqa: B023
        assert_same_function(*runs, [], list(model.parameters()))
        sizes = [listed[i][asked].size(1) if asked else listed[i].num_nodes for i in ids]
        assert cut.graph(stack.queries).tolist() == [i for i, size in enumerate(sizes) for _ in range(size)]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=8)
@given(data=st.data())
def test_equal_weights_give_back_the_plain_gnn_and_one_color(kind, data):
    graph = data.draw(kind.graphs())
    asked = data.draw(triples(graph.num_nodes))
    edge, model = kind.edge(graph), two_colors(kind, data.draw(st.integers(1, 4)))
    with_plain_weights(model, ("second",))
    one = randomized(IDGNN(**{**model.settings, "colors": 1})).eval()
    missing, extra = one.load_state_dict(model.state_dict(), strict=False)
    assert not missing and all("second" in name or "before_pool" in name for name in extra)
    one.normalize = model.normalize = False
    one.lin_out, model.lin_out, model.before_pool = torch.nn.Identity(), torch.nn.Identity(), torch.nn.Identity()
    for mine, theirs in zip(model.convs, one.convs, strict=True):
        if hasattr(mine.operator, "eps"):
            theirs.operator.eps = mine.operator.eps
    found = model(graph.x, graph.edge_index, queries=asked, **edge)
    assert_same(found, one(graph.x, graph.edge_index, queries=asked[:2], **edge))
    with_plain_weights(model)
    with_plain_weights(one)
    expected = one(graph.x, graph.edge_index, queries=asked[0].expand(2, -1), **edge)
    assert_same(model(graph.x, graph.edge_index, queries=asked, **edge), expected)
    one.lin_out = randomized(torch.nn.Linear(WIDTH, OUT))
    plain = plain_twin(one)
    plain.normalize = False
    for round_ in (model, plain):
        round_.lin_out = torch.nn.Identity()
    assert_same(expected, plain(graph.x, graph.edge_index, **edge)[asked[0]])


def swapped(model: IDGNN) -> IDGNN:
    """The same network with the weights of the two colors exchanged."""
    other = randomized(IDGNN(**model.settings)).eval()
    names = {"colored": "second", "second": "colored"}
    state = {}
    for name, value in model.state_dict().items():
        for mine, theirs in names.items():
            if f"_{mine}" in name:
                name = name.replace(f"_{mine}", f"_{theirs}")
                break
        state[name] = value
    other.load_state_dict(state)
    return other


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=8)
@given(data=st.data())
def test_swapping_the_colors_and_their_weights_changes_nothing(kind, data):
    graph = data.draw(kind.graphs())
    asked = data.draw(triples(graph.num_nodes))
    asked = asked[:, asked[1] != asked[2]]  # a node with both colors has the first
    if asked.size(1):
        model = two_colors(kind, data.draw(st.integers(1, 4)))
        found = swapped(model)(graph.x, graph.edge_index, queries=asked[[0, 2, 1]], **kind.edge(graph))
        assert_same(found, model(graph.x, graph.edge_index, queries=asked, **kind.edge(graph)))


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=5)
@given(data=st.data())
def test_permuting_nodes_permutes_answers(kind, data):
    graph = data.draw(kind.graphs())
    name = torch.tensor(data.draw(st.permutations(range(graph.num_nodes))))
    order = torch.tensor(data.draw(st.permutations(range(graph.num_edges))), dtype=torch.long)
    other = renamed(graph, name, order)
    size = graph.num_nodes
    asked = data.draw(st.one_of(triples(size), st.none(), roots(size), pairs(size)))
    model = two_colors(kind, data.draw(st.integers(1, 4)), second=data.draw(st.sampled_from(SECOND)))
    before = model(graph.x, graph.edge_index, queries=asked, **kind.edge(graph))
    after = model(other.x, other.edge_index, queries=None if asked is None else name[asked], **kind.edge(other))
    assert_same(after[name] if asked is None else after, before)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=5)
@given(data=st.data())
def test_pairs_without_direction_are_the_same_both_ways(kind, data):
    graph = data.draw(kind.graphs())
    asked = data.draw(pairs(graph.num_nodes))
    num_layers = data.draw(st.integers(1, 4))
    model = two_colors(kind, num_layers)
    out = model(graph.x, graph.edge_index, queries=asked, **kind.edge(graph))
    assert_same(model(graph.x, graph.edge_index, queries=asked.flip(0), **kind.edge(graph)), out)


def test_pairs_with_a_direction_are_not():
    model, x = two_colors(KINDS["gin"], 3, directed=True), torch.randn(3, CHANNELS, dtype=torch.double)
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    pair = torch.tensor([[0], [1]])
    assert (model(x, edge_index, queries=pair) - model(x, edge_index, queries=pair.flip(0))).abs().max() > 1e-3


@pytest.mark.parametrize("kind", ["gcn", "gcn-weighted", "sage-max", "sage-mean", "gat-2-heads", "gin", "gine"])
@settings(max_examples=6)
@given(data=st.data(), num_layers=st.integers(1, 4), size=st.integers(1, 3))
def test_batches_of_roots_and_embeddings_are_brute_force(kind, data, num_layers, size):
    """With blocks of messages as well, where layers take them."""
    kind = KINDS[kind]
    graph = data.draw(kind.graphs())
    model = two_colors(kind, num_layers, second=data.draw(st.sampled_from(SECOND)))
    asked = data.draw(st.one_of(triples(graph.num_nodes), roots(graph.num_nodes), pairs(graph.num_nodes)))
    given_graph = Data(x=graph.x, edge_index=graph.edge_index, **kind.edge(graph))
    listed = asked_of(model, graph, asked)

    def ours():
        with forced(size):
            return model.run(LargeGraph(model, given_graph).prepare(asked))

    def reference():
        return brute_force.two_colors(model, graph.x, graph.edge_index, listed, **kind.edge(graph))

    found = assert_same_function(ours, reference, [], list(model.parameters()), 1e-9)
    with forced(size):
        assert_same(model.embed(given_graph, asked), found, 1e-9)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_both_colors_make_a_difference(kind):
    """The other laws would also hold for a library that forgets a color."""
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    data = Data(
        x=torch.randn(3, CHANNELS, dtype=torch.double),
        edge_index=edge_index,
        edge_weight=torch.rand(6, dtype=torch.double) + 0.5,
        edge_attr=torch.randn(6, 2, dtype=torch.double),
    )
    model = two_colors(kind, 3)
    asked = torch.tensor([[0, 0, 0], [0, 0, 0], [0, 1, 2]])
    out = model(data.x, edge_index, queries=asked, **kind.edge(data))
    assert min((out[0] - out[1]).abs().max(), (out[1] - out[2]).abs().max()) > 1e-4
