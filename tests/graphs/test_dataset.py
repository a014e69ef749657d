import pytest
import torch
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset, select

# Number of nodes and of columns of edge_index of each graph.
SIZES = [(3, 2), (9, 30), (5, 10), (4, 10), (8, 20), (7, 0)]


def dataset() -> Dataset:
    graphs = [
        Data(x=torch.ones(n, 1), edge_index=torch.randint(n, (2, e)), y=torch.tensor([i]))
        for i, (n, e) in enumerate(SIZES)
    ]
    return Dataset("some", graphs, provided_split={"train": torch.tensor([5, 1, 0]), "valid": torch.tensor([2, 3, 4])})


def chosen(result: Dataset) -> list[int]:
    return [int(graph.y) for graph in result.graphs]


def test_by_least_sizes_in_the_order_of_the_dataset() -> None:
    assert chosen(select(dataset())) == [0, 1, 2, 3, 4, 5]
    assert chosen(select(dataset(), min_nodes=5)) == [1, 2, 4, 5]
    assert chosen(select(dataset(), min_nodes=5, min_edges=10)) == [1, 2, 4]


def test_the_smallest_come_first_and_ties_by_index() -> None:
    assert chosen(select(dataset(), min_edges=10, smallest=3)) == [2, 3, 4]
    assert chosen(select(dataset(), smallest=4)) == [5, 0, 2, 3]


def test_graphs_with_fewer_edges_complete_the_number_by_index() -> None:
    assert chosen(select(dataset(), min_edges=20, smallest=4)) == [4, 1, 0, 2]
    assert chosen(select(dataset(), min_edges=20, min_nodes=5, smallest=4)) == [4, 1, 2, 5]


def test_the_provided_split_is_renumbered() -> None:
    result = select(dataset(), min_nodes=5)  # 1, 2, 4, 5
    assert {part: ids.tolist() for part, ids in result.provided_split.items()} == {"train": [3, 0], "valid": [1, 2]}


def test_impossible_selections_are_refused() -> None:
    with pytest.raises(
        ValueError, match="smallest is 5, expected a number from 1 to 4, the graphs of some with at least 5"
    ):
        select(dataset(), min_nodes=5, smallest=5)
    with pytest.raises(ValueError, match=r"smallest is 0, expected a number from 1 to 6, .* Choose such a number, or"):
        select(dataset(), smallest=0)
    with pytest.raises(
        ValueError, match="no graph of some has at least 10 nodes and 0 edges; the largest have 9 and 30"
    ):
        select(dataset(), min_nodes=10)
