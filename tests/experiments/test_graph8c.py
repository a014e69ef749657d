"""Pairs that untrained networks leave undistinguished are those that exact refinement leaves."""

from collections import Counter

import pytest
import torch

from idgnn.experiments.graph8c import TOLERANCE, equal_pairs, measure_graph8c
from idgnn.graphs.load import load

FIRST = 1500


def refined(neighbors: list[list[int]], colored: tuple[int, ...], rounds: int) -> list[int]:
    """What each node knows after some rounds, as nested tuples: its own past, and what each neighbor sent.

    A message carries the color of its sender, if it has one; the state itself does not.
    """
    state: list[int] = [0] * len(neighbors)
    for _ in range(rounds):
        state = [
            hash(
                (
                    state[node],
                    tuple(
                        sorted(
                            hash((state[other], colored.index(other) if other in colored else -1)) for other in others
                        )
                    ),
                )
            )
            for node, others in enumerate(neighbors)
        ]
    return state


def representation(data, identity: str, layers: int) -> tuple:
    neighbors: list[list[int]] = [[] for _ in range(data.num_nodes)]
    for source, target in data.edge_index.t().tolist():
        neighbors[target].append(source)
    if identity == "none":
        return tuple(sorted(refined(neighbors, (), layers)))
    if identity == "two":
        states = [
            tuple(sorted(refined(neighbors, (root, second), layers)[root] for second in neighbors[root]))
            for root in range(data.num_nodes)
        ]
        return tuple(sorted(states))
    copies = [refined(neighbors, (root,), layers) for root in range(data.num_nodes)]
    if identity == "full":
        return tuple(sorted(copy[root] for root, copy in enumerate(copies)))
    return tuple(sorted((copy[root], tuple(sorted(copy))) for root, copy in enumerate(copies)))


@pytest.mark.parametrize(
    ("identity", "layers"), [("none", 2), ("none", 3), ("full", 2), ("full", 3), ("copy", 2), ("two", 2)]
)
def test_networks_leave_the_pairs_that_exact_refinement_leaves(identity, layers, data_dir):
    graphs = load("graph8c").graphs[:FIRST]
    groups = Counter(representation(data, identity, layers) for data in graphs)
    expected = sum(size * (size - 1) // 2 for size in groups.values())
    arguments = {"dataset": "graph8c", "identity": identity, "layers": layers, "graphs": FIRST}
    found = measure_graph8c(arguments, 0, "cpu")
    assert found["pairs"] == expected and found["graphs"] == FIRST
    assert found["by_network"] == sorted(found["by_network"], reverse=True)
    assert (expected > 0) == (identity == "none" or (identity, layers) in (("full", 2), ("two", 2)))


def test_the_fast_version_distinguishes_all_of_them(data_dir):
    arguments = {"dataset": "graph8c", "identity": "fast", "layers": 3, "graphs": FIRST}
    assert measure_graph8c(arguments, 0, "cpu")["pairs"] == 0


def test_equal_pairs_are_those_within_the_tolerance():
    rows = torch.rand(40, 3).double()
    rows[7], rows[21], rows[30] = rows[3], rows[3] + 0.4 * TOLERANCE, rows[9]
    rows[31] = rows[9] + torch.tensor([100.0, -100.0, 0.0]) * TOLERANCE  # the same sum, but other numbers
    scaled = rows / rows.amax(0)
    close = ((scaled[:, None] - scaled).abs() <= TOLERANCE).all(-1).triu(1).nonzero().tolist()
    assert sorted(map(sorted, equal_pairs(rows).t().tolist())) == close == [[3, 7], [3, 21], [7, 21], [9, 30]]
    assert equal_pairs(torch.zeros(4, 2).double()).size(1) == 6
    assert equal_pairs(torch.ones(1, 2).double()).size(1) == 0
