"""`ToIdentityGraph` with two colors lists the triples that a network with two colors reads, and how they are pooled."""

from contextlib import nullcontext

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import GIN

from idgnn import IDGNN, ToIdentityGraph, identity_aware, identity_graph
from tests.laws.graphs import CHANNELS, graphs, pairs, roots
from tests.laws.networks import KINDS, assert_same, assert_same_function
from tests.laws.test_batching import assert_equal_graphs
from tests.laws.test_two_colors import SECOND, asked_of, triples, two_colors

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


@st.composite
def options(draw) -> dict:
    second = draw(st.sampled_from(SECOND))
    return {
        "second": second,
        **({"radius": draw(st.integers(1, 3))} if second == "ball" else {}),
        "with_self": draw(st.booleans()),
        "directed": draw(st.booleans()),
    }


@st.composite
def asked_graphs(draw, max_nodes: int = 6) -> tuple[Data, str | None]:
    """A graph, and the attribute that holds its queries."""
    data = draw(graphs(max_nodes=max_nodes))
    size = data.num_nodes
    data.triple_index, data.pair_index, data.node_index = draw(triples(size)), draw(pairs(size)), draw(roots(size))
    return data


QUERIES = st.sampled_from([None, "node_index", "pair_index", "triple_index"])


@settings(max_examples=80)
@given(data=asked_graphs(), queries=QUERIES, chosen=options(), num_layers=st.integers(1, 4))
def test_it_is_the_identity_graph_of_the_triples(data, queries, chosen, num_layers):
    model = two_colors(KINDS["gcn"], 1, **chosen)
    listed = asked_of(model, data, None if queries is None else data[queries])
    if queries in (None, "node_index"):  # without a second node first, then by second node
        listed = [sorted(each, key=lambda triple: (triple[1] != triple[2], triple)) for each in listed]
    given = torch.tensor([triple for each in listed for triple in each]).t().contiguous()
    found = ToIdentityGraph(num_layers, queries, colors=2, **chosen)(data)
    if queries != "triple_index":
        owner = [i for i, each in enumerate(listed) for _ in each]
        assert found.pooled_into.tolist() == owner
        del found.pooled_into, found.pooled_by
    assert_equal_graphs(found, identity_graph(data, num_layers, given))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=6)
@given(data=st.data(), queries=QUERIES, chosen=options(), num_layers=st.integers(1, 4))
def test_a_network_pools_as_without_it(kind, data, queries, chosen, num_layers):
    kind = KINDS[kind]
    listed = [data.draw(asked_graphs(max_nodes=4)) for _ in range(data.draw(st.integers(1, 3)))]
    model = two_colors(kind, num_layers, pool=data.draw(st.sampled_from(["sum", "mean", "max"])), **chosen)
    transform = ToIdentityGraph(num_layers, queries, colors=2, **chosen)
    plain, built = Batch.from_data_list(listed), Batch.from_data_list([transform(each) for each in listed])
    engine = data.draw(st.sampled_from([None, "trimmed", "graph"]))

    def ours():
        return model(built.x, built.edge_index, graph=built, engine=engine, **kind.edge(built))

    def expected():
        given = None if queries is None else plain[queries]
        return model(plain.x, plain.edge_index, queries=given, **kind.edge(plain))

    assert_same_function(ours, expected, [], list(model.parameters()))
    sizes = [each.num_nodes if queries is None else each[queries].size(-1) for each in listed]
    assert built.query_batch.tolist() == [i for i, size in enumerate(sizes) for _ in range(size)]


@settings(max_examples=10)
@given(data=asked_graphs(), queries=QUERIES, chosen=options())
def test_a_wrapped_model_pools_as_without_it(data, queries, chosen):
    torch.manual_seed(0)
    model = identity_aware(GIN(CHANNELS, 8, num_layers=3, out_channels=2), colors=2, **chosen).double().eval()
    model(data.x, data.edge_index)
    for weight in model.colors.parameters():
        torch.nn.init.normal_(weight)
    built = ToIdentityGraph(3, queries, colors=2, **chosen)(data)
    expected = model(data.x, data.edge_index, queries=None if queries is None else data[queries])
    assert_same(model(data.x, data.edge_index, graph=built), expected)


@settings(max_examples=40)
@given(
    listed=st.lists(asked_graphs(max_nodes=4), min_size=1, max_size=4),
    queries=QUERIES,
    chosen=options(),
    num_layers=st.integers(1, 4),
)
def test_that_of_a_batch_is_the_batch_of_those(listed, queries, chosen, num_layers):
    transform = ToIdentityGraph(num_layers, queries, colors=2, **chosen)
    single = [transform(data) for data in listed]
    found = transform(Batch.from_data_list(listed))
    assert_equal_graphs(found, Batch.from_data_list(single))
    for ours, theirs in zip(found.to_data_list(), single, strict=True):
        for key in {"query_row", "colored", "pooled_into"} & set(theirs.keys()):
            assert torch.equal(ours[key], theirs[key]), key
        assert ours.get("pooled_by") == theirs.get("pooled_by")


def test_a_graph_without_nodes_has_no_answers():
    empty = Data(x=torch.ones(0, CHANNELS), edge_index=torch.empty(2, 0, dtype=torch.long))
    graph = ToIdentityGraph(3, colors=2)(empty)
    assert graph.pooled_into.numel() == graph.query_row.numel() == 0
    path = Data(x=torch.ones(2, CHANNELS), edge_index=torch.tensor([[0, 1], [1, 0]]))
    batch = Batch.from_data_list([graph, ToIdentityGraph(3, colors=2)(path), graph, ToIdentityGraph(3, colors=2)(path)])
    assert batch.pooled_into.tolist() == [0, 1, 2, 3] and batch.query_batch.tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("queries", "built", "made", "said"),
    [
        (None, {"second": "ball"}, {}, r"built with second='ball', radius=2, but the model has second='neighbors'\."),
        (
            None,
            {"with_self": True},
            {},
            r"with_self=True, but.*Build it with ToIdentityGraph\(3, colors=2, second='neigh",
        ),
        (
            None,
            {},
            {"second": "ball", "radius": 3},
            r"with second='neighbors', but the model has second='ball', radius=3",
        ),
        ("pair_index", {"directed": True}, {}, "built with directed=True, but the model has directed=False"),
        (None, {"directed": True}, {}, None),  # which makes no difference for nodes
        ("pair_index", {"second": "all"}, {}, None),  # nor for pairs
        ("triple_index", {"second": "all"}, {"directed": True}, None),  # these are read one by one
    ],
)
def test_a_network_with_other_second_nodes_refuses_it(queries, built, made, said):
    edge_index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    path = Data(x=torch.ones(3, 1), edge_index=edge_index, pair_index=edge_index, triple_index=torch.zeros(3, 1).long())
    graph = ToIdentityGraph(3, queries, colors=2, **built)(path)
    both = Batch.from_data_list([ToIdentityGraph(3, queries, colors=2, **made)(path), graph])
    wrapped = identity_aware(GIN(1, 8, num_layers=3), colors=2, **made)
    for model in (IDGNN(1, 8, 2, colors=2, **made), wrapped):
        for each in (graph, both):
            with nullcontext() if said is None else pytest.raises(ValueError, match=said):
                model(each.x, each.edge_index, graph=each)


def test_what_it_says_of_itself_and_refuses():
    shown = "ToIdentityGraph(num_layers=3, queries=None, colors=2, second='ball', radius=2, with_self=True)"
    assert repr(ToIdentityGraph(3, colors=2, second="ball", with_self=True)) == shown
    with pytest.raises(ValueError, match="colors is 3, expected 1 or 2"):
        ToIdentityGraph(3, colors=3)
    with pytest.raises(ValueError, match="second is 'any', expected one of 'neighbors', 'ball', 'all'"):
        ToIdentityGraph(3, colors=2, second="any")
    with pytest.raises(ValueError, match="graphs of one node type, but a HeteroData was given"):
        ToIdentityGraph(3, "user", colors=2)(HeteroData(user={"x": torch.ones(2, 1)}))
