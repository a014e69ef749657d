"""Second nodes of nodes, and the triples of pairs."""

import pytest
import torch
from torch import Tensor

from idgnn.identity import second_nodes
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.second_nodes import Reading, SecondNodes

# A path 0 - 1 - 2 - 3 with one edge in one direction, a node with a self-loop, an isolated node, and another edge.
EDGES = torch.tensor([[0, 1, 2, 1, 2, 4, 6], [1, 0, 1, 2, 3, 4, 7]])


def graph(self_loops: bool = False) -> IndexedGraph:
    return IndexedGraph(EDGES, 8, self_loops)


def listed(reading: Reading) -> list[list[tuple[int, int, int]]]:
    asked = reading.queries
    found: list[list[tuple[int, int, int]]] = [[] for _ in range(reading.num_answers)]
    columns = (reading.owner, asked.node, asked.color, asked.second)
    for owner, *triple in zip(*(column.tolist() for column in columns), strict=True):
        found[owner].append(tuple(triple))
    return found


def second(options: SecondNodes, queries: Tensor | None = None, self_loops: bool = False) -> list[list[int]]:
    return [[w for _, _, w in each] for each in listed(options.read(graph(self_loops), queries))]


@pytest.mark.parametrize("self_loops", [False, True])
def test_second_nodes_of_all_nodes(self_loops: bool) -> None:
    assert second(SecondNodes("neighbors"), None, self_loops) == [[1], [0, 2], [1, 3], [2], [-1], [-1], [7], [6]]
    assert second(SecondNodes("ball", radius=2), None, self_loops)[:4] == [[1, 2], [0, 2, 3], [0, 1, 3], [1, 2]]
    assert second(SecondNodes("all"), None, self_loops)[:5] == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [-1]]


def test_the_node_itself_besides() -> None:
    assert second(SecondNodes("neighbors", with_self=True)) == [[-1, *w] for w in ([1], [0, 2], [1, 3], [2])] + [
        [-1],
        [-1],
        [-1, 7],
        [-1, 6],
    ]


def test_some_nodes_in_any_order_twice() -> None:
    assert second(SecondNodes("neighbors"), torch.tensor([3, 1, 3])) == [[2], [0, 2], [2]]
    assert second(SecondNodes("all"), torch.tensor([3, 5])) == [[0, 1, 2], [-1]]


def test_both_ends_of_a_pair_are_colored_and_read() -> None:
    pairs = torch.tensor([[0, 2], [3, 2]])
    assert listed(SecondNodes().read(graph(), pairs)) == [[(0, 0, 3), (3, 3, 0)], [(2, 2, -1), (2, 2, -1)]]
    directed = SecondNodes(directed=True).read(graph(), pairs)
    assert listed(directed) == [[(0, 0, 3), (3, 0, 3)], [(2, 2, -1), (2, 2, -1)]]


def test_triples_are_read_one_by_one() -> None:
    triples = torch.tensor([[0, 1], [2, 3], [3, 3]])
    assert listed(SecondNodes().read(graph(), triples)) == [[(0, 2, 3)], [(1, 3, -1)]]


@pytest.mark.parametrize("options", [SecondNodes("neighbors"), SecondNodes("ball"), SecondNodes("all")])
def test_the_number_of_triples_is_known_before(options: SecondNodes) -> None:
    every = torch.arange(8)
    most, found = options.most(graph(), every), second(options)
    assert all(len(each) <= max(int(bound), 1) for each, bound in zip(found, most, strict=True))


def test_too_many_are_refused_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(second_nodes, "free_memory", lambda device: 1000)
    with pytest.raises(ValueError, match=r"8 nodes would be read with up to 22 second nodes.*second='neighbors'"):
        SecondNodes("all").read(graph(), None)
    assert second(SecondNodes("all"), torch.tensor([0])) == [[1, 2, 3]]


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="second is 'none', expected one of 'neighbors', 'ball', 'all'"):
        SecondNodes("none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="radius is 0, expected a whole number of at least 1"):
        SecondNodes("ball", radius=0)
