"""Where the nodes of a small graph are drawn: as far apart as they are in the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import networkx as nx
import numpy as np

ROUNDS = 300


def layout(nodes: Sequence[int], edges: Iterable[tuple[int, int]]) -> dict[int, tuple[float, float]]:
    """A place for each node, edges about one unit long: stress majorization (Gansner, Koren, North, 2004).

    networkx has layouts too, but those that are as good need SciPy. Cubic in the nodes, so for some hundreds of them.
    """
    distance = _distances(nodes, edges)  # [nodes, nodes]
    if len(nodes) == 1:
        return {nodes[0]: (0.0, 0.0)}
    weight = 1 / np.where(distance > 0, distance, np.inf) ** 2
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian)
    place = np.random.default_rng(0).normal(size=(len(nodes), 2)) * 0.01 + _principal(distance)
    for _ in range(ROUNDS):
        apart = np.linalg.norm(place[:, None] - place[None], axis=-1)
        pull = weight * distance / np.where(apart > 1e-9, apart, np.inf)
        place = inverse @ ((np.diag(pull.sum(1)) - pull) @ place)
    place = _lying(place)
    return {node: (float(x), float(y)) for node, (x, y) in zip(nodes, place, strict=True)}


def _distances(nodes: Sequence[int], edges: Iterable[tuple[int, int]]) -> np.ndarray:
    """Steps between nodes, whatever the direction of the edges; components stay a little apart."""
    graph = nx.Graph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    steps = dict(nx.all_pairs_shortest_path_length(graph))
    largest = max(max(row.values()) for row in steps.values())
    return np.array([[steps[u].get(v, largest / 2 + 1.5) for v in nodes] for u in nodes], dtype=float)


def _principal(distance: np.ndarray) -> np.ndarray:
    """Classical scaling: the plane in which points at these distances spread most."""
    squared = distance**2
    centered = squared - squared.mean(0) - squared.mean(1)[:, None] + squared.mean()
    value, vector = np.linalg.eigh(-centered / 2)
    return vector[:, -2:] * np.sqrt(np.maximum(value[-2:], 0))


def _lying(place: np.ndarray) -> np.ndarray:
    """Turned so that the longer side lies flat."""
    centered = place - place.mean(0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    return centered @ axes.T
