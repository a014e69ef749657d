"""Generated graphs: scale-free and small-world ones of many clustering coefficients, and random regular ones.

All draws come from a `random.Random` of the seed, so the graphs are the same on every machine (with the same version of
networkx, which makes them). They are made once and then kept in the cache. Node features are ones `[num_nodes, 1]`.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from contextlib import ExitStack

import networkx as nx
import torch
from rich.console import Console
from rich.progress import Progress
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from idgnn.graphs.cache import cache_key, cached

_BINS, _TOP = 10, 0.5  # of average clustering: [0, 0.05), [0.05, 0.1), ..., [0.45, 0.5]
_PATIENCE = 20_000  # draws in a row without a graph to keep, after which the bins that are not full are given up
_SECONDS_WITHOUT_BAR = 2.0  # before a progress bar appears


def scale_free(num_graphs: int = 256, num_nodes: int = 64, seed: int = 0) -> list[Data]:
    """Connected Holme-Kim graphs (each node brings 2 edges), average clustering spread evenly over [0, 0.5].

    Triads are closed with a random probability p; a graph is kept if its 0.05-wide bin of average clustering has room.
    In the end the bins differ by at most one graph. All ten can be filled at 64 nodes, but [0, 0.05) hardly: even
    at p = 0 one graph in 350 falls into it. So p is not uniform but u^4 with u uniform, which draws small p more often:
    the 256 graphs took 23,000 draws (5 to 10 seconds, once) in place of 250,000. Where 20,000 draws in a row fill no
    bin, as can happen at other sizes, the bins that are not full are given up and the others share the rest evenly.
    """

    def draw(p: float, rng: random.Random) -> nx.Graph:
        return nx.powerlaw_cluster_graph(num_nodes, 2, p, seed=rng)

    _check(num_graphs, num_nodes, least=3)
    return _kept("scale_free", num_graphs, num_nodes, seed, lambda: _spread(draw, num_graphs, seed))


def small_world(num_graphs: int = 256, num_nodes: int = 64, seed: int = 0) -> list[Data]:
    """Connected Watts-Strogatz graphs (4 neighbors on the ring), average clustering spread evenly over [0, 0.5].

    Edges are rewired with a random probability p, drawn as in :func:`scale_free`, and graphs are kept by the same rule.
    All ten bins are filled, after 700 draws at 64 nodes.
    """

    def draw(p: float, rng: random.Random) -> nx.Graph:
        return nx.watts_strogatz_graph(num_nodes, 4, p, seed=rng)

    _check(num_graphs, num_nodes, least=5)
    return _kept("small_world", num_graphs, num_nodes, seed, lambda: _spread(draw, num_graphs, seed))


def random_regular(num_graphs: int, num_nodes: int, degree: int, seed: int = 0) -> list[Data]:
    """Random graphs in which every node has the same degree: what a message-passing GNN cannot tell apart.

    Example:
        >>> graphs = random_regular(num_graphs=2, num_nodes=8, degree=3)
        >>> [graph.edge_index.shape for graph in graphs]
        [torch.Size([2, 24]), torch.Size([2, 24])]
    """
    _check(num_graphs, num_nodes, least=1)
    if not 0 <= degree < num_nodes or num_nodes * degree % 2:
        raise ValueError(
            f"no graph of {num_nodes} nodes has degree {degree} everywhere, expected a degree under the number of "
            "nodes and an even product of the two. Change one of them."
        )

    def make() -> list[nx.Graph]:
        rng = random.Random(seed)
        return [nx.random_regular_graph(degree, num_nodes, seed=rng) for _ in range(num_graphs)]

    return _kept(f"{degree}-regular", num_graphs, num_nodes, seed, make)


def _kept(name: str, num_graphs: int, num_nodes: int, seed: int, make: Callable[[], list[nx.Graph]]) -> list[Data]:
    key = cache_key(name, num_graphs, num_nodes, seed, nx.__version__)
    return cached(key, lambda: [_as_data(graph) for graph in make()])


def _spread(draw: Callable[[float, random.Random], nx.Graph], num_graphs: int, seed: int) -> list[nx.Graph]:
    """Connected graphs, as many in each bin of average clustering as in the others, in random order."""
    rng = random.Random(seed)
    kept: list[nx.Graph] = []
    counts = dict.fromkeys(range(_BINS), 0)  # of the bins that are not given up
    idle, start = 0, time.monotonic()
    with ExitStack() as stack:
        bar: Callable[[int], None] | None = None
        while len(kept) < num_graphs:
            if idle == _PATIENCE:
                counts, idle = _without_unreachable(counts, num_graphs - len(kept)), 0
            graph = draw(rng.random() ** 4, rng)
            bin_ = _bin_of(graph)
            idle += 1
            if bin_ in _with_room(counts, num_graphs - len(kept)) and nx.is_connected(graph):
                kept.append(graph)
                counts[bin_] += 1
                idle = 0
                if bar is None and time.monotonic() - start > _SECONDS_WITHOUT_BAR:
                    bar = _bar(stack, num_graphs)
                if bar is not None:
                    bar(len(kept))
    rng.shuffle(kept)  # otherwise the graphs of the rarest bin would come last
    return kept


def _with_room(counts: dict[int, int], missing: int) -> set[int]:
    """The bins that may get one more, if in the end all of them are to differ by at most one."""
    least, extra = divmod(sum(counts.values()) + missing, len(counts))
    extra -= sum(count > least for count in counts.values())
    return {bin_ for bin_, count in counts.items() if count < least or (count == least and extra > 0)}


def _without_unreachable(counts: dict[int, int], missing: int) -> dict[int, int]:
    """The bins that are full: graphs with the clustering of the others practically do not occur."""
    room = _with_room(counts, missing)
    full = {bin_: count for bin_, count in counts.items() if bin_ not in room}
    if not full:
        raise ValueError(
            f"{_PATIENCE:,} random graphs of this size had no average clustering in [0, {_TOP}], expected some "
            "in each part of it. Choose another number of nodes."
        )
    return full


def _bin_of(graph: nx.Graph) -> int:
    """The bin of the average clustering; correctly rounded sums put a graph into the same bin on every machine."""
    neighbors = {node: set(adjacent) for node, adjacent in graph.adjacency()}
    twice = ((sum(len(near & neighbors[other]) for other in near), len(near)) for near in neighbors.values())
    average = math.fsum(found / (degree * (degree - 1)) for found, degree in twice if found) / len(neighbors)
    return _BINS - 1 if average == _TOP else int(average * (_BINS / _TOP))


def _bar(stack: ExitStack, total: int) -> Callable[[int], None]:
    """A progress bar on a terminal, removed when the stack is closed; without a terminal nothing."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return lambda _: None
    progress = stack.enter_context(Progress(console=console, transient=True))
    task = progress.add_task("generating graphs", total=total)
    return lambda completed: progress.update(task, completed=completed)


def _as_data(graph: nx.Graph) -> Data:
    edges = torch.tensor(sorted(graph.edges), dtype=torch.long).view(-1, 2).t()
    num_nodes = graph.number_of_nodes()
    return Data(x=torch.ones(num_nodes, 1), edge_index=to_undirected(edges, num_nodes=num_nodes))


def _check(num_graphs: int, num_nodes: int, least: int) -> None:
    if num_graphs < 1 or num_nodes < least:
        raise ValueError(f"num_graphs is {num_graphs} and num_nodes is {num_nodes}, expected at least 1 and {least}.")
