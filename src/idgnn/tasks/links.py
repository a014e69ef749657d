"""Link prediction: edges that carry no messages, and as many pairs that are no edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from idgnn.graphs.link_pairs import link_split, negative_pairs
from idgnn.identity.adjacency import pointers
from idgnn.tasks.part import Part, stack


@dataclass(frozen=True)
class LinkPart(Part):
    """Graphs of messages, with the edges that are to be predicted; the pairs beside them are drawn for each epoch."""

    positives: Tensor = field(kw_only=True)  # [2, positives]
    known: Tensor = field(kw_only=True)  # [2, edges] all edges there are, which no negative may be

    def epoch(self, generator: Generator) -> Part:
        """Every positive once, and for each graph as many negatives, uniform over the ordered pairs without an edge."""
        counts = torch.bincount(self.owner[self.positives[0]], minlength=self.num_graphs)
        negatives, _ = negative_pairs(self.known, pointers(self.owner, self.num_graphs), counts, generator)
        queries = torch.cat([self.positives, negatives], dim=1)
        target = torch.zeros_like(queries[0])
        target[: self.positives.size(1)] = 1
        order = torch.argsort(self.owner[queries[0]], stable=True)
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(Part)}
        values |= {"queries": queries[:, order], "target": target[order]}
        return Part(**values)


def links_of_many_graphs(
    graphs: Sequence[Data], split: Mapping[str, list[int]], share: float, generator: Generator, directed: bool
) -> tuple[dict[str, LinkPart], dict[str, list[int]]]:
    """Parts of a split of graphs, in each of which a share of the edges is asked for; and the graphs in each.

    Graphs that are too small to give an edge away are left out.
    """
    parts, ids = {}, {}
    for name, members in split.items():
        made = {i: link_split(graphs[i], share, generator, directed) for i in members}
        asked = {i: graph for i, graph in made.items() if graph.edge_label_index.size(1)}
        _check_asked(bool(asked), name)
        parts[name], ids[name] = _part(list(asked.values())), list(asked)
    return parts, ids


def links_of_one_graph(
    graph: Data, shares: Mapping[str, float], share: float, generator: Generator, directed: bool
) -> dict[str, LinkPart]:
    """Shares of the edges of a graph are held out, and a `share` of what is left is asked for in training.

    What is held out is asked for when all edges that are left carry messages, those for training included.
    """
    held_out: dict[str, Tensor] = {}
    left, rest = graph, 1.0
    for name, part in shares.items():
        if part > 0:
            left = link_split(left, part / rest, generator, directed)
            held_out[name], rest = left.edge_label_index, rest - part
    train = link_split(left, share, generator, directed)
    for name, positives in {"train": train.edge_label_index, **held_out}.items():
        _check_asked(positives.size(1) > 0, name)
    known = link_split(graph, 0.0, generator, directed).known_edge_index  # no negative is an edge of another part
    train.known_edge_index = left.known_edge_index = known
    # The graph may be large: what parts have in common they share.
    parts, later = {"train": _part([train])}, _part([left])
    for name, positives in held_out.items():
        parts[name] = replace(later, x=parts["train"].x, positives=positives)
    return parts


def _part(graphs: Sequence[Data]) -> LinkPart:
    part = stack("pair", graphs, [graph.edge_label_index for graph in graphs])
    known = stack("pair", graphs, [graph.known_edge_index for graph in graphs]).queries
    assert part.queries is not None and known is not None
    values: dict[str, Any] = vars(part) | {"queries": None}
    return LinkPart(**values, positives=part.queries, known=known)


def _check_asked(any_edge: bool, name: str) -> None:
    if not any_edge:
        raise ValueError(f"no edge is left to ask for in part {name!r}. Use more or larger graphs, or larger shares.")
