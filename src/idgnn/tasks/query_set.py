"""The graphs of one part of a split, stacked into one, with queries and targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from idgnn.choices import Level
from idgnn.identity.checks import check_graph, check_pairs, check_roots, edges_of
from idgnn.identity.cutting import Cutter, Field, Space

_FLOAT_INTEGERS = 2**24  # up to here float32 holds every integer


@dataclass(frozen=True)
class QuerySet:
    """Graphs stacked into one, and queries with their targets, all ordered by graph."""

    level: Level
    x: Tensor  # [nodes, channels]
    edge_index: Tensor  # [2, edges]
    edge_attr: Tensor | None  # [edges, channels]
    edge_weight: Tensor | None  # [edges]
    owner: Tensor  # [nodes] the graph of each node
    num_graphs: int
    queries: Tensor | None = None  # [queries] nodes, or [2, queries] pairs; None for every node
    target: Tensor | None = None  # [queries, ...], or [graphs, ...] if level is graph; None if unknown

    def epoch(self, generator: torch.Generator) -> QuerySet:
        """The queries of one epoch of training: the same ones, unless some are random (:class:`LinkQuerySet`)."""
        return self

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        return replace(self, **{name: value.to(device) for name, value in vars(self).items() if torch.is_tensor(value)})

    @property
    def query_owner(self) -> Tensor:
        """The graph of each query."""
        if self.queries is None:
            return self.owner
        return self.owner[self.queries if self.queries.dim() == 1 else self.queries[0]]

    def subset(self, graphs: Tensor) -> QuerySet:
        """Some of the graphs `[graphs]`, ids on the CPU, in the given order."""
        cutter, (nodes, edges, queries), ends, fields = self._cutter
        cut = cutter.cut(graphs)
        given, target = self.queries, self.target
        if target is not None:
            target = target[graphs.to(target.device)] if self.level == "graph" else cut.take(target, queries)
        found = [cut[field] for field in fields]
        return QuerySet(
            self.level,
            x=cut.take(self.x, nodes),
            edge_index=torch.stack([cut[end] for end in ends]),
            edge_attr=None if self.edge_attr is None else cut.take(self.edge_attr, edges),
            edge_weight=None if self.edge_weight is None else cut.take(self.edge_weight, edges),
            owner=cut.graph(nodes),
            num_graphs=graphs.numel(),
            queries=None if given is None else found[0] if given.dim() == 1 else torch.stack(found),
            target=target,
        )

    @cached_property
    def _cutter(self) -> tuple[Cutter, tuple[Space, Space, Space], list[Field], list[Field]]:
        """What graphs are cut out with; the spaces of nodes, edges and queries; the ends of edges and of queries."""
        cutter = Cutter(self.num_graphs)
        nodes, edges = cutter.space(self.owner), cutter.space(self.owner[self.edge_index[1]])
        ends = [cutter.field(edges, end, nodes) for end in self.edge_index]
        queries = cutter.space(self.query_owner)
        given = self.queries
        rows = [] if given is None else [given] if given.dim() == 1 else given.unbind(0)
        fields = [cutter.field(queries, row, nodes) for row in rows]
        cutter.finish()
        return cutter, (nodes, edges, queries), ends, fields


def as_list(data: Data | Sequence[Data]) -> list[Data]:
    """A graph, graphs, or a batch of them, as a list."""
    try:
        graphs: list = _of_batch(data) if isinstance(data, Batch) else [data] if isinstance(data, Data) else [*data]
    except RuntimeError as error:  # a batch that was not made from a list
        raise ValueError(f"the graphs are a batch that cannot be split into graphs: {error} Give a list.") from None
    except TypeError:
        raise ValueError(f"the graphs are {data!r}, expected torch_geometric.data.Data, or a list of them.") from None
    for graph in graphs:
        if not isinstance(graph, Data):
            raise ValueError(f"the graphs hold a {type(graph).__name__}, expected torch_geometric.data.Data.")
    return graphs


def _of_batch(batch: Any) -> list:
    """The graphs of a batch, with all that it holds."""
    graphs = batch.to_data_list()
    kept = {"batch", "ptr", "num_nodes"}.union(*(graph.keys() for graph in graphs))
    if lost := sorted(set(batch.keys()) - kept):
        raise ValueError(
            f"{', '.join(lost)} was set on the batch itself, so it cannot be split among the graphs. Set it on the "
            "graphs before batching them, or give a list of graphs."
        )
    return graphs


def stack(
    level: Level,
    graphs: Sequence[Data],
    queries: Sequence[Tensor] | None = None,
    targets: Sequence[Tensor] | None = None,
) -> QuerySet:
    """Stacks graphs, with the queries and targets of each, into one. Nodes without features get the feature 1."""
    if not graphs:
        raise ValueError("there are no graphs, expected at least one.")
    sizes = [check_graph(graph) for graph in graphs]
    if queries is not None:
        _check_queries(queries, sizes)
    start = torch.tensor([0, *sizes]).cumsum(0)[:-1].tolist()
    return QuerySet(
        level,
        x=_features(graphs, sizes),
        edge_index=torch.cat([edges_of(graph) + first for graph, first in zip(graphs, start, strict=True)], dim=1),
        edge_attr=_all_or_none(graphs, "edge_attr"),
        edge_weight=_all_or_none(graphs, "edge_weight"),
        owner=torch.arange(len(graphs)).repeat_interleave(torch.tensor(sizes)),
        num_graphs=len(graphs),
        queries=None
        if queries is None
        else torch.cat([nodes + first for nodes, first in zip(queries, start, strict=True)], dim=-1),
        target=None if targets is None else torch.cat(list(targets)),
    )


def _check_queries(queries: Sequence[Tensor], sizes: list[int]) -> None:
    if len(queries) != len(sizes):
        raise ValueError(f"queries are given for {len(queries)} graphs, but there are {len(sizes)}: expected one each.")
    for nodes, size in zip(queries, sizes, strict=True):
        if nodes.numel():
            check_pairs(nodes, size) if nodes.dim() == 2 else check_roots(nodes, size)


def _features(graphs: Sequence[Data], sizes: list[int]) -> Tensor:
    x = [torch.ones(n, 1) if graph.x is None else graph.x for graph, n in zip(graphs, sizes, strict=True)]
    x = [rows.unsqueeze(-1) if rows.dim() == 1 else rows for rows in x]
    widths = sorted({rows.size(1) for rows in x})
    if len(widths) > 1:
        raise ValueError(f"the graphs have {widths} node features, expected the same number in each of them.")
    return torch.cat(x).float()


def restore_integers(graphs: Sequence[Data], name: str, values: Tensor) -> Tensor:
    """Stacked features as integers again, if all graphs hold integers under this name: codes for an embedding layer."""
    given = [graph.get(name) for graph in graphs]
    integer = (isinstance(each, Tensor) and not each.is_floating_point() and each.dtype != torch.bool for each in given)
    if not all(integer):
        return values
    if values.numel() and values.abs().max() >= _FLOAT_INTEGERS:
        raise ValueError(f"{name} holds integers of {_FLOAT_INTEGERS:,} or more. Number the categories from 0 on.")
    return values.long()


def _all_or_none(graphs: Sequence[Data], name: str) -> Tensor | None:
    have = [graph[name] for graph in graphs if graph.get(name) is not None]
    if not have:
        return None
    if len(have) < len(graphs):
        raise ValueError(
            f"{len(have)} of {len(graphs)} graphs have {name}, expected all or none. Add it to the others or delete it."
        )
    if name == "edge_weight":
        return torch.cat(have).float()
    return torch.cat([values.unsqueeze(-1) if values.dim() == 1 else values for values in have]).float()
