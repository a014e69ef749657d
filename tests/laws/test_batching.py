"""A batch of graphs is its graphs: built at once or one by one, by hand or by a `DataLoader`, it is the same."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader

from idgnn import IdentityGraph, ToIdentityGraph, identity_graph
from tests.laws.graphs import graphs, pairs, roots
from tests.laws.networks import KINDS, assert_same, encoder

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def assert_equal_graphs(ours: Data, theirs: Data) -> None:
    """Every attribute, its type and the order of elements."""
    assert type(ours) is type(theirs)
    assert set(ours.keys()) == set(theirs.keys())
    for key in theirs.keys():  # noqa: SIM118  (a Data iterates over pairs)
        mine, other = ours[key], theirs[key]
        if isinstance(other, Tensor):
            assert mine.dtype == other.dtype, f"{key} has dtype {mine.dtype}, expected {other.dtype}"
            assert torch.equal(mine, other), f"{key} is {mine}, expected {other}"
        else:
            assert mine == other, f"{key} is {mine}, expected {other}"
    assert ours.num_nodes == theirs.num_nodes
    assert ours.num_edges == theirs.num_edges


@st.composite
def datasets(draw) -> list[Data]:
    """One to four graphs that have the same attributes: labels of graphs, nodes and pairs beside the usual ones."""
    listed = draw(st.lists(graphs(max_nodes=4), min_size=1, max_size=4))
    with_x = draw(st.booleans())
    for number, data in enumerate(listed):
        data.y = torch.tensor([float(number)])
        data.train_mask = torch.arange(data.num_nodes) % 2 == 0
        data.name = f"graph {number}"
        data.edge_label_index = draw(pairs(data.num_nodes))
        data.edge_label = torch.arange(data.edge_label_index.size(1))
        data.root_index = draw(roots(data.num_nodes))
        if not with_x:
            size = data.num_nodes
            del data.x
            data.num_nodes = size
    return listed


ASKED = (None, "edge_label_index", "root_index")


@pytest.mark.parametrize("asked", ASKED)
@settings(max_examples=40)
@given(listed=datasets(), num_layers=st.integers(1, 4))
def test_the_identity_graph_of_a_batch_is_the_batch_of_identity_graphs(asked, listed, num_layers):
    transform = ToIdentityGraph(num_layers, queries=asked)
    single = [transform(data) for data in listed]
    expected = Batch.from_data_list(single)
    found = transform(Batch.from_data_list(listed))
    assert_equal_graphs(found, expected)
    assert found.num_graphs == expected.num_graphs == len(listed)
    assert isinstance(found, IdentityGraph) and isinstance(found, Batch)

    for ours, theirs, one in zip(found.to_data_list(), expected.to_data_list(), single, strict=True):
        assert_equal_graphs(ours, theirs)
        assert type(ours) is IdentityGraph
        for key in ("edge_index", "node", "colored", "arrival", "query_row", "plain_row", "plain_edge", "edge"):
            assert torch.equal(ours[key], one[key]), f"{key} is {ours[key]}, expected {one[key]}"
    assert_equal_graphs(found[len(listed) - 1], expected[len(listed) - 1])


@settings(max_examples=20)
@given(listed=datasets(), num_layers=st.integers(1, 4), size=st.integers(1, 3))
def test_a_loader_batches_identity_graphs(listed, num_layers, size):
    transform = ToIdentityGraph(num_layers, queries="edge_label_index")
    loader = DataLoader([transform(data) for data in listed], batch_size=size)
    for number, batch in enumerate(loader):
        expected = transform(Batch.from_data_list(listed[number * size : (number + 1) * size]))
        assert_equal_graphs(batch, expected)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=6)
@given(data=st.data())
def test_models_answer_a_batch_as_they_answer_its_graphs(kind, asked, data):
    listed = data.draw(st.lists(kind.graphs(), min_size=1, max_size=3))
    for graph in listed:
        graph.edge_label_index = data.draw(pairs(graph.num_nodes))
        graph.root_index = data.draw(roots(graph.num_nodes))
    num_layers = data.draw(st.integers(1, 4))
    model = encoder(kind, num_layers)

    single = [
        model(graph.x, graph.edge_index, queries=None if asked is None else graph[asked], **kind.edge(graph))
        for graph in listed
    ]
    batch = Batch.from_data_list(listed)
    questions = None if asked is None else batch[asked]
    together = model(batch.x, batch.edge_index, batch=batch.batch, queries=questions, **kind.edge(batch))
    assert_same(together, torch.cat(single), 1e-10)

    transform = ToIdentityGraph(num_layers, queries=asked)
    for built in (transform(batch), Batch.from_data_list([transform(graph) for graph in listed])):
        for engine in ("trimmed", "graph"):
            prebuilt = model(built.x, built.edge_index, graph=built, engine=engine, **kind.edge(built))
            assert_same(prebuilt, torch.cat(single), 1e-10)


def test_a_batch_made_by_hand_is_a_graph_like_any_other():
    """A `Data` with a `batch` vector is not a PyG `Batch`; its rows keep the graph they belong to."""
    data = Data(
        x=torch.randn(4, 2),
        edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]),
        batch=torch.tensor([0, 0, 1, 1]),
    )
    built = identity_graph(data, 3)
    assert torch.equal(built.batch, data.batch[built.node])


def test_queries_of_a_batch_in_any_order_are_answered_in_that_order():
    edge_index = torch.tensor([[0, 1], [1, 0]])
    listed = [Data(x=torch.randn(2, 3, dtype=torch.double), edge_index=edge_index) for _ in range(3)]
    batch = Batch.from_data_list(listed)
    asked = torch.tensor([5, 0, 3, 0])
    model = encoder(KINDS["gin"], 2)
    built = identity_graph(batch, 2, asked)
    assert built.node[built.query_row].tolist() == asked.tolist()
    everyone = model(batch.x, batch.edge_index)
    assert_same(model(batch.x, batch.edge_index, graph=built), everyone[asked])
