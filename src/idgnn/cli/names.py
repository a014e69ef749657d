"""Which graph, and which node of it, a name stands for: the user's own names, or numbers where there are none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data


def graph_places(graphs: Sequence[Data]) -> dict[str, int]:
    """The number of each graph by its name; graphs of a dataset by name are called `0`, `1`, ..."""
    return {str(graph.get("graph_name", number)): number for number, graph in enumerate(graphs)}


def node_places(graph: Data) -> dict[str, int]:
    """The number of each node by its name; nodes of a dataset by name are called `0`, `1`, ..."""
    names = graph.get("node_name")
    return {str(name): i for i, name in enumerate(range(graph.num_nodes or 0) if names is None else names)}


def expected_names(known: Iterable[str], most: int = 5) -> str:
    """The first names, for a sentence that says what was expected."""
    names = list(known)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"one of {', '.join(map(repr, islice(names, most)))}{more}" if names else "none at all"
