"""Rankings without a network: how often items were used, by all and by the entity itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.graphs.relational.task_tables import TimedQueries
from idgnn.graphs.relational.times import YEAR


@dataclass(frozen=True)
class Uses:
    """Who used which item when, along a path of foreign keys."""

    entity: Tensor  # [uses]
    item: Tensor  # [uses]
    time: Tensor  # [uses] seconds since 1970


def find_uses(graph: HeteroData, entity_type: str, item_type: str) -> Uses:
    """The uses along the shortest path of edge types from entities to items; ties by the order of the edge types.

    For drivers and circuits of rel-f1: driver, result, race, circuit. The time is that of the latest node on the path.
    """
    path = shortest_path(graph, entity_type, item_type)
    if path is None:
        raise ValueError(f"no path of edge types leads from {entity_type!r} to {item_type!r}: nothing connects them.")
    entity = at = torch.arange(int(graph[entity_type].num_nodes))
    time = _times(graph, entity_type)
    for kind in path:
        source, target = graph[kind].edge_index
        order = source.argsort(stable=True)
        degree = torch.bincount(source, minlength=int(graph[kind[0]].num_nodes))
        start = degree.cumsum(0) - degree
        size = degree[at]
        within = torch.arange(int(size.sum())) - (size.cumsum(0) - size).repeat_interleave(size)
        edge = order[start[at].repeat_interleave(size) + within]
        entity, at, time = entity.repeat_interleave(size), target[edge], time.repeat_interleave(size)
        if "time" in graph[kind[2]]:
            time = torch.maximum(time, graph[kind[2]].time[at])
    return Uses(entity, at, time)


def shortest_path(graph: HeteroData, source: str, target: str) -> list[tuple[str, str, str]] | None:
    """The edge types of a shortest path from one node type to another; `None` if there is none.

    For a type and itself: the shortest way back.
    """
    paths: dict[str, list[tuple[str, str, str]]] = {source: []}
    frontier = [source]
    while frontier:
        reached = []
        for kind in graph.edge_types:
            if kind[0] not in frontier:
                continue
            path = [*paths[kind[0]], kind]
            if kind[2] == target:
                return path
            if kind[2] not in paths:
                paths[kind[2]] = path
                reached.append(kind[2])
        frontier = reached
    return None


def popularity(uses: Uses, queries: TimedQueries, num_items: int, years: float | None = None) -> Tensor:
    """How often each item was used before the time of the query, `[queries, items]`; in the last years if given."""
    score = torch.zeros(len(queries), num_items)
    for moment in queries.time.unique().tolist():
        counts = torch.bincount(uses.item[_before(uses, moment, years)], minlength=num_items)
        score[queries.time == moment] = counts.float()
    return score


def past_visits(
    uses: Uses, popular: Tensor, queries: TimedQueries, num_items: int, years: float | None = None
) -> Tensor:
    """How often the entity itself did, `[queries, items]`; items of equal number by `popular` `[queries, items]`."""
    score = popular / (1 + popular.max(dim=1, keepdim=True).values)  # below 1
    for moment in queries.time.unique().tolist():
        rows = _before(uses, moment, years)
        at = (queries.time == moment).nonzero().view(-1)
        entities, of = queries.entity[at].unique(return_inverse=True)
        rows &= torch.isin(uses.entity, entities)  # a table of all entities and all items would be large
        counts = torch.zeros(entities.numel(), num_items)
        place = torch.searchsorted(entities, uses.entity[rows]), uses.item[rows]
        counts.index_put_(place, torch.ones(place[1].numel()), accumulate=True)
        score[at] += counts[of]
    return score


def direct_uses(graph: HeteroData, item_type: str) -> Uses:
    """The rows that refer to an item themselves, such as the races of a circuit; `entity` is the row."""
    kinds = [kind for kind in graph.edge_types if kind[2] == item_type and not kind[1].startswith("rev_")]
    row, item, time = [], [], []
    for kind in kinds:
        source, target = graph[kind].edge_index
        row.append(source)
        item.append(target)
        time.append(_times(graph, kind[0])[source])
    if not kinds:
        raise ValueError(f"no foreign key refers to {item_type!r}: how often its rows were used is not known.")
    return Uses(torch.cat(row), torch.cat(item), torch.cat(time))


def _times(graph: HeteroData, kind: str) -> Tensor:
    store = graph[kind]
    return store.time if "time" in store else torch.full((int(store.num_nodes),), torch.iinfo(torch.long).min)


def _before(uses: Uses, moment: int, years: float | None) -> Tensor:
    rows = uses.time < moment
    return rows if years is None else rows & (uses.time >= moment - years * YEAR)
