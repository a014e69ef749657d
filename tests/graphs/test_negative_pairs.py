import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from idgnn.graphs.link_pairs import negative_pairs
from tests.graphs.awkward_graphs import AWKWARD, any_graph


def allowed(data: Data, first: int = 0) -> list[tuple[int, int]]:
    """All ordered pairs that are not edges, one by one."""
    edges = set(map(tuple, data.edge_index.t().tolist()))
    nodes = range(data.num_nodes or 0)
    return [(u + first, v + first) for u in nodes for v in nodes if u != v and (u, v) not in edges]


def stack(graphs: list[Data]) -> tuple[torch.Tensor, torch.Tensor]:
    ptr = torch.tensor([0, *(data.num_nodes for data in graphs)]).cumsum(0)
    edges = [data.edge_index + first for data, first in zip(graphs, ptr.tolist(), strict=False)]
    return torch.cat([torch.empty(2, 0, dtype=torch.long), *edges], dim=1), ptr


@given(st.lists(any_graph(max_nodes=5), max_size=5), st.integers(0, 9))
def test_only_pairs_of_one_graph_that_are_no_edges(graphs: list[Data], seed: int) -> None:
    edge_index, ptr = stack(graphs)
    counts = torch.arange(len(graphs)) + 1
    pairs, given_ = negative_pairs(edge_index, ptr, counts, torch.Generator().manual_seed(seed))
    cells = [allowed(data, first) for data, first in zip(graphs, ptr.tolist(), strict=False)]
    assert given_.tolist() == [count if cell else 0 for count, cell in zip(counts.tolist(), cells, strict=True)]
    for found, cell in zip(pairs.split(given_.tolist(), dim=1), cells, strict=True):
        assert set(map(tuple, found.t().tolist())) <= set(cell)


def test_uniform_over_all_allowed_pairs_of_each_graph() -> None:
    edge_index, ptr = stack(AWKWARD)
    each = 5000
    pairs, counts = negative_pairs(edge_index, ptr, torch.full((len(AWKWARD),), each), torch.Generator().manual_seed(1))
    chi_square, freedom = 0.0, 0
    for data, first, found in zip(AWKWARD, ptr.tolist(), pairs.split(counts.tolist(), dim=1), strict=False):
        cells = allowed(data, first)
        drawn = list(map(tuple, found.t().tolist()))
        if cells:
            expected = each / len(cells)
            chi_square += sum((drawn.count(cell) - expected) ** 2 / expected for cell in cells)
            freedom += len(cells) - 1
    # Mean `freedom`, variance 2 * freedom: four standard deviations.
    assert freedom > 50 and abs(chi_square - freedom) < 4 * (2 * freedom) ** 0.5


def test_the_ends_of_a_batch_and_no_counts() -> None:
    batch = Batch.from_data_list([AWKWARD[5], AWKWARD[6]])
    pairs, counts = negative_pairs(batch.edge_index, batch.ptr, torch.tensor([0, 3]), torch.Generator())
    assert counts.tolist() == [0, 3] and (pairs >= 4).all()


def test_the_generator_decides() -> None:
    edge_index, ptr = stack(AWKWARD)
    counts = torch.full((len(AWKWARD),), 20)
    draws = [negative_pairs(edge_index, ptr, counts, torch.Generator().manual_seed(seed))[0] for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])


def test_the_order_and_repetition_of_edges_do_not_matter() -> None:
    edge_index, ptr = stack(AWKWARD)
    counts = torch.full((len(AWKWARD),), 20)
    repeated = torch.cat([edge_index.flip(1), edge_index], dim=1)
    first, second = (negative_pairs(each, ptr, counts, torch.Generator())[0] for each in (edge_index, repeated))
    assert torch.equal(first, second)


def test_a_large_sparse_graph_needs_no_dense_matrix() -> None:
    num_nodes = 1_000_000
    path = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    pairs, counts = negative_pairs(path, torch.tensor([0, num_nodes]), torch.tensor([1000]), torch.Generator())
    assert counts.tolist() == [1000] and not ((pairs[1] - pairs[0] == 1) | (pairs[0] == pairs[1])).any()
    assert pairs.max() > 0.99 * num_nodes and pairs.min() < 0.01 * num_nodes


def test_edges_between_graphs_and_wrong_counts_are_refused() -> None:
    ptr = torch.tensor([0, 2, 4])
    with pytest.raises(ValueError, match="some edges do not lie within one graph"):
        negative_pairs(torch.tensor([[1], [2]]), ptr, torch.tensor([1, 1]), torch.Generator())
    with pytest.raises(ValueError, match="some edges do not lie within one graph"):
        negative_pairs(torch.tensor([[4], [4]]), ptr, torch.tensor([1, 1]), torch.Generator())
    with pytest.raises(ValueError, match="counts has 1 entries for 2 graphs"):
        negative_pairs(torch.tensor([[0], [1]]), ptr, torch.tensor([1]), torch.Generator())
