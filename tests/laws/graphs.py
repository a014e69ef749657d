"""Hypothesis strategies: small graphs of every awkward kind, and questions to ask of them."""

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Data

CHANNELS = 3
EDGE_DIM = 2


def _anything(draw, size: int) -> list[tuple[int, int]]:
    """Directed edges as they come: self-loops, duplicates and isolated nodes among them."""
    node = st.integers(0, size - 1)
    return draw(st.lists(st.tuples(node, node), max_size=2 * size))


def _undirected(draw, size: int) -> list[tuple[int, int]]:
    edges = _anything(draw, size)
    return edges + [(target, source) for source, target in edges if source != target]


def _no_edges(draw, size: int) -> list[tuple[int, int]]:
    return []


def _path(draw, size: int) -> list[tuple[int, int]]:
    """One way only, so that nobody hears back from ahead."""
    return [(node, node + 1) for node in range(size - 1)]


def _cycle(draw, size: int) -> list[tuple[int, int]]:
    around = [(node, (node + 1) % size) for node in range(size)]
    return around + [(target, source) for source, target in around]


def _hub(draw, size: int) -> list[tuple[int, int]]:
    """A star whose rays point in, out, or both ways."""
    rays = [(leaf, 0) for leaf in range(1, size)]
    back = [(0, leaf) for leaf in range(1, size)]
    return draw(st.sampled_from([rays, back, rays + back]))


def _clique(draw, size: int) -> list[tuple[int, int]]:
    return [(source, target) for source in range(size) for target in range(size)]


def _two_components(draw, size: int) -> list[tuple[int, int]]:
    """No edge joins the nodes before the cut with those after it."""
    cut = draw(st.integers(0, size))
    return [(a, b) for a, b in _undirected(draw, size) if (a < cut) == (b < cut)]


KINDS = (_anything, _undirected, _no_edges, _path, _cycle, _hub, _clique, _two_components)


@st.composite
def graphs(draw, max_nodes: int = 6, repeated_loops: bool = True) -> Data:
    """A graph with float64 features `x`, `edge_weight` and `edge_attr` of its edges, in an order of its own.

    Without `repeated_loops` a node has at most one self-loop: GCN keeps one, and which of several weights counts is
    nobody's promise.
    """
    size = draw(st.integers(1, max_nodes))
    edges = draw(st.permutations(draw(st.sampled_from(KINDS))(draw, size)))
    if not repeated_loops:
        loops = {edge for edge in edges if edge[0] == edge[1]}
        edges = [edge for edge in edges if edge[0] != edge[1]] + sorted(loops)
    edge_index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous()
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    return Data(
        x=torch.randn(size, CHANNELS, generator=generator, dtype=torch.double),
        edge_index=edge_index,
        edge_weight=torch.rand(len(edges), generator=generator, dtype=torch.double) + 0.5,
        edge_attr=torch.randn(len(edges), EDGE_DIM, generator=generator, dtype=torch.double),
    )


def roots(num_nodes: int) -> st.SearchStrategy[Tensor]:
    """Some of the nodes in any order, some of them more than once."""
    node = st.integers(0, num_nodes - 1)
    return st.lists(node, min_size=1, max_size=6).map(torch.tensor)


def pairs(num_nodes: int) -> st.SearchStrategy[Tensor]:
    """Pairs of nodes: equal ones, repeated ones, and ones that cannot reach each other among them."""
    node = st.integers(0, num_nodes - 1)
    listed = st.lists(st.tuples(node, node), min_size=1, max_size=6)
    return listed.map(lambda some: torch.tensor(some).t().contiguous())


def queries(num_nodes: int) -> st.SearchStrategy[Tensor | None]:
    """Every node, some nodes, or pairs."""
    return st.one_of(st.none(), roots(num_nodes), pairs(num_nodes))


def as_pairs(asked: Tensor | None, num_nodes: int) -> list[tuple[int, int]]:
    """The queries as a list of (read, colored)."""
    if asked is None:
        return [(node, node) for node in range(num_nodes)]
    if asked.dim() == 1:
        return [(node, node) for node in asked.tolist()]
    return list(zip(*asked.tolist(), strict=True))
