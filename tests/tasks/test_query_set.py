"""Stacking graphs, and taking a subset of stacked graphs."""

from dataclasses import fields

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import assume, given
from torch_geometric.data import Batch, Data

from idgnn.tasks.link_prediction import LinkQuerySet
from idgnn.tasks.query_set import QuerySet, as_list, stack
from tests.laws.graphs import CHANNELS, EDGE_DIM, graphs, pairs, roots

NO_NODES = Data(
    x=torch.empty(0, CHANNELS),
    edge_index=torch.empty(2, 0, dtype=torch.long),
    edge_weight=torch.empty(0),
    edge_attr=torch.empty(0, EDGE_DIM),
)


def assert_equal_parts(ours: QuerySet, theirs: QuerySet) -> None:
    for each in fields(QuerySet):
        mine, other = getattr(ours, each.name), getattr(theirs, each.name)
        if isinstance(other, torch.Tensor):
            assert isinstance(mine, torch.Tensor) and mine.dtype == other.dtype, each.name
            assert torch.equal(mine, other), f"{each.name} is {mine}, expected {other}"
        else:
            assert mine == other, f"{each.name} is {mine}, expected {other}"


def queries_of(draw, data: Data, level: str) -> torch.Tensor:
    """Some nodes or pairs, and sometimes none."""
    if not data.num_nodes or draw(st.integers(0, 3)) == 0:
        return torch.empty((2, 0) if level == "pair" else 0, dtype=torch.long)
    return draw((pairs if level == "pair" else roots)(data.num_nodes))


@st.composite
def stack_arguments(draw) -> tuple[str, list[Data], list[torch.Tensor] | None, list[torch.Tensor] | None]:
    """Arguments of `stack`: graphs with or without edge data, with queries of every level."""
    listed = draw(st.lists(st.one_of(graphs(), st.just(NO_NODES)), min_size=1, max_size=5))
    listed = [data.clone() for data in listed]
    for name in draw(st.sets(st.sampled_from(["edge_attr", "edge_weight", "x"]))):
        for data in listed:
            size = data.num_nodes
            del data[name]
            data.num_nodes = size
    level = draw(st.sampled_from(["node", "pair", "graph"]))
    every = level == "graph" or (level == "node" and draw(st.booleans()))
    queries = None if every else [queries_of(draw, data, level) for data in listed]
    sizes = [1 if level == "graph" else data.num_nodes for data in listed]
    sizes = sizes if queries is None else [each.size(-1) for each in queries]
    targets = [torch.randn(size) for size in sizes] if draw(st.booleans()) else None
    return level, listed, queries, targets


@given(stack_arguments(), st.data())
def test_a_subset_is_the_stack_of_its_graphs(given_, data):
    level, listed, queries, targets = given_
    ids = data.draw(st.lists(st.sampled_from(range(len(listed))), min_size=1, unique=True))

    def of(values):
        return None if values is None else [values[i] for i in ids]

    assume(queries is None or sum(each.numel() for each in queries))
    part = stack(level, listed, queries, targets)
    expected = stack(level, of(listed), of(queries), of(targets))
    assert_equal_parts(part.subset(torch.tensor(ids)), expected)
    assert torch.equal(part.subset(torch.tensor(ids)).query_owner, expected.query_owner)


@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_a_subset_of_graphs_without_queries(shape):
    graph, none = Data(num_nodes=2, edge_index=torch.tensor([[0], [1]])), torch.empty(shape, dtype=torch.long)
    level = "node" if len(shape) == 1 else "pair"
    part = stack(level, [graph, graph], [none, none]).subset(torch.tensor([1]))
    assert_equal_parts(part, stack(level, [graph], [none]))


@given(stack_arguments())
def test_a_stack_is_the_batch_of_pyg(given_):
    level, listed, queries, targets = given_
    part = stack(level, listed, queries, targets)
    batch = Batch.from_data_list(listed)
    assert torch.equal(part.edge_index, batch.edge_index)
    assert torch.equal(part.owner, batch.batch) and part.num_graphs == len(listed)
    for name in ("x", "edge_attr", "edge_weight"):
        if batch.get(name) is not None:
            assert torch.equal(getattr(part, name), batch[name].float())
    if queries is not None:
        first = batch.ptr.tolist()
        listed_queries = torch.cat([each + start for each, start in zip(queries, first, strict=False)], dim=-1)
        assert torch.equal(part.queries, listed_queries)
    assert part.query_owner.numel() == (part.owner.numel() if part.queries is None else part.queries.size(-1))


@given(stack_arguments())
def test_to_the_same_device_changes_nothing(given_):
    part = stack(*given_)
    assert_equal_parts(part.to("cpu"), part)
    assert part.epoch(torch.Generator()) is part


def test_link_queries_move_to_another_device():
    part = stack("pair", [Data(num_nodes=2, edge_index=torch.tensor([[0], [1]]))])
    links = LinkQuerySet(**vars(part), positives=torch.tensor([[0], [1]]), known=torch.tensor([[0], [1]]))
    moved = links.to("meta")
    assert isinstance(moved, LinkQuerySet) and moved.positives.is_meta and moved.known.is_meta and moved.x.is_meta


def test_graphs_without_features_get_ones_and_flat_features_become_a_column():
    edge_index = torch.tensor([[0], [1]])
    assert stack("node", [Data(num_nodes=2, edge_index=edge_index)]).x.tolist() == [[1], [1]]
    flat = Data(x=torch.tensor([3, 4]), edge_index=edge_index, edge_attr=torch.tensor([7]))
    part = stack("node", [flat])
    assert part.x.tolist() == [[3], [4]] and part.x.dtype == torch.float32
    assert part.edge_attr is not None and part.edge_attr.tolist() == [[7]]


def test_graphs_that_do_not_fit_together_are_refused():
    edge_index = torch.tensor([[0], [1]])
    with pytest.raises(ValueError, match="there are no graphs, expected at least one"):
        stack("node", [])
    narrow, wide = Data(x=torch.ones(2, 1), edge_index=edge_index), Data(x=torch.ones(2, 3), edge_index=edge_index)
    with pytest.raises(ValueError, match=r"have \[1, 3\] node features, expected the same number"):
        stack("node", [narrow, wide])
    weighted = Data(x=torch.ones(2, 1), edge_index=edge_index, edge_weight=torch.ones(1))
    with pytest.raises(ValueError, match="1 of 2 graphs have edge_weight, expected all or none"):
        stack("node", [narrow, weighted])
    with pytest.raises(ValueError, match="names node 2, but the graph has 2 nodes"):
        stack("node", [Data(x=torch.ones(2, 1), edge_index=edge_index + 1)])


@pytest.mark.parametrize("query", [torch.tensor([[0], [2]]), torch.tensor([2]), torch.tensor([-1])])
def test_queries_outside_of_their_graph_are_refused(query):
    """Node 2 of a graph with two nodes would be the first node of the next graph."""
    two = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    fine = torch.zeros_like(query)
    with pytest.raises(ValueError, match="2 nodes"):
        stack("pair" if query.dim() == 2 else "node", [two, two], [query, fine])


def test_a_batch_is_its_graphs():
    listed = [Data(x=torch.ones(size, 1), edge_index=torch.tensor([[0], [1]])) for size in (2, 3)]
    found = as_list(Batch.from_data_list(listed))
    assert [graph.num_nodes for graph in found] == [2, 3]
    assert all(torch.equal(graph.edge_index, torch.tensor([[0], [1]])) for graph in found)
    batch = Batch.from_data_list(listed)
    batch.y = torch.tensor([0, 1])
    with pytest.raises(ValueError, match=r"y was set on the batch itself"):
        as_list(batch)
    with pytest.raises(ValueError, match=r"a batch that cannot be split into graphs.* Give a list"):
        as_list(Batch(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]), batch=torch.tensor([0, 0])))
