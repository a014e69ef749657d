"""Link prediction: edges that carry no messages against as many pairs without an edge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.link_pairs import link_split, negative_pairs
from idgnn.identity.adjacency import is_symmetric, pointers
from idgnn.identity.checks import check_graph, edges_of
from idgnn.tasks.labeled_queries import split_ids
from idgnn.tasks.objective import Binary, Objective, class_metrics
from idgnn.tasks.query_set import QuerySet, stack
from idgnn.tasks.task import Task
from idgnn.tasks.task_settings import TaskSettings

HITS = (1, 10, 50)


@dataclass(frozen=True)
class LinkPrediction(Task):
    """Whether two nodes are joined by an edge."""

    def split(
        self, dataset: Dataset, settings: TaskSettings, seed: int
    ) -> tuple[Mapping[str, QuerySet], Mapping[str, list[int]]]:
        """Holds out graphs, and predicts some edges of every graph; of a single graph, holds out edges."""
        generator = torch.Generator().manual_seed(seed)
        directed = _is_directed(dataset)
        parts: dict[str, LinkQuerySet]
        if len(dataset) == 1:
            if settings.split != "random":
                raise ValueError(
                    f"split is {settings.split!r}, but {settings.name} holds out edges of a single graph at random. "
                    "Use split='random'."
                )
            if settings.inner:
                raise ValueError(
                    "inner splits graphs, but there is a single one. Leave it out, and use valid and test."
                )
            shares = {"test": settings.test, "valid": settings.valid}
            parts = links_of_one_graph(dataset.graphs[0], shares, settings.supervision, generator, directed)
            graph_ids = {name: [0] for name in parts}
        else:
            split = split_ids(dataset, settings, seed, list(range(len(dataset))))
            parts, graph_ids = links_of_many_graphs(dataset.graphs, split, settings.supervision, generator, directed)
        held_out = {name: part.epoch(generator) for name, part in parts.items() if name != "train"}
        return {"train": parts["train"], **held_out}, graph_ids

    def symmetric(self, dataset: Dataset) -> bool:
        """Unless edges have a direction."""
        return not _is_directed(dataset)

    def objective(self, settings: TaskSettings, targets: Mapping[str, Tensor]) -> Objective:
        """Binary cross-entropy; ROC AUC and ranks."""
        return LinkObjective()


@dataclass(frozen=True)
class LinkObjective(Binary):
    """As :class:`~idgnn.tasks.objective.Binary`, and the rank of an edge among the negatives of its graph."""

    kind = "links"
    metrics = ("roc_auc", "average_precision", "accuracy", "mrr", *(f"hits@{k}" for k in HITS))

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """Adds the mean reciprocal rank, and the share of edges that rank among the first 1, 10 and 50."""
        rank = ranks(out.squeeze(-1).float(), target, graph)
        answer = class_metrics((out.squeeze(-1) > 0).long(), target.long(), 2, None)
        found = self.curve_metrics(out, target) | {"accuracy": answer["accuracy"]}
        found |= {"mrr": rank.reciprocal().mean().item()}
        return found | {f"hits@{k}": (rank <= k).float().mean().item() for k in HITS}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The probability of an edge."""
        return {"probability": out.squeeze(-1).float().sigmoid()}


def ranks(score: Tensor, target: Tensor, graph: Tensor) -> Tensor:
    """The rank of every positive among the negatives of its graph, from 1: `[positives]` in float64.

    A positive that ties with negatives gets the mean of the best and the worst rank it could have. All scores are
    sorted once, in place of a comparison of every positive with every negative.
    """
    positive = target.bool()
    # Scores are replaced by their position in the order of all scores, so that graph and score fit into one integer.
    order = torch.unique(score, return_inverse=True)[1]
    size = int(order.max()) + 1 if order.numel() else 1
    key = graph * size + order
    negative = key[~positive].sort().values
    last_of_graph = torch.searchsorted(negative, (graph[positive] + 1) * size)
    above = last_of_graph - torch.searchsorted(negative, key[positive], right=True)
    not_below = last_of_graph - torch.searchsorted(negative, key[positive])
    return 1 + (above + not_below).double() / 2


@dataclass(frozen=True)
class LinkQuerySet(QuerySet):
    """Graphs of the edges that carry messages, and the edges to predict. Negatives are drawn for each epoch."""

    positives: Tensor = field(kw_only=True)  # [2, positives]
    known: Tensor = field(kw_only=True)  # [2, edges] all edges; negatives are drawn from the other pairs

    def epoch(self, generator: Generator) -> QuerySet:
        """Every positive once, and for each graph as many negatives, uniform over the ordered pairs without an edge."""
        counts = torch.bincount(self.owner[self.positives[0]], minlength=self.num_graphs)
        negatives, _ = negative_pairs(self.known, pointers(self.owner, self.num_graphs), counts, generator)
        queries = torch.cat([self.positives, negatives], dim=1)
        target = torch.zeros_like(queries[0])
        target[: self.positives.size(1)] = 1
        order = torch.argsort(self.owner[queries[0]], stable=True)
        values: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(QuerySet)}
        values |= {"queries": queries[:, order], "target": target[order]}
        return QuerySet(**values)


def links_of_many_graphs(
    graphs: Sequence[Data], split: Mapping[str, list[int]], share: float, generator: Generator, directed: bool
) -> tuple[dict[str, LinkQuerySet], dict[str, list[int]]]:
    """Parts of a split of graphs, where a share of the edges of each graph is predicted; and the ids of their graphs.

    Graphs with too few edges to hold one out are left out.
    """
    parts, graph_ids = {}, {}
    for name, members in split.items():
        made = {i: link_split(graphs[i], share, generator, directed) for i in members}
        kept = {i: graph for i, graph in made.items() if graph.edge_label_index.size(1)}
        _check_any_edge(bool(kept), name)
        parts[name], graph_ids[name] = _link_query_set(list(kept.values())), list(kept)
    return parts, graph_ids


def links_of_one_graph(
    graph: Data, shares: Mapping[str, float], share: float, generator: Generator, directed: bool
) -> dict[str, LinkQuerySet]:
    """Holds out shares of the edges of a graph; training predicts a `share` of the remaining edges.

    The held-out edges are predicted when all remaining edges carry messages, those predicted in training included.
    """
    held_out: dict[str, Tensor] = {}
    left, rest = graph, 1.0
    for name, part in shares.items():
        if part > 0:
            left = link_split(left, part / rest, generator, directed)
            held_out[name], rest = left.edge_label_index, rest - part
    train = link_split(left, share, generator, directed)
    for name, positives in {"train": train.edge_label_index, **held_out}.items():
        _check_any_edge(positives.size(1) > 0, name)
    known = link_split(graph, 0.0, generator, directed).known_edge_index  # no negative is an edge of another part
    train.known_edge_index = left.known_edge_index = known
    # The graph may be large: the parts share the tensors that they have in common.
    parts, later = {"train": _link_query_set([train])}, _link_query_set([left])
    for name, positives in held_out.items():
        parts[name] = replace(later, x=parts["train"].x, positives=positives)
    return parts


def _link_query_set(graphs: Sequence[Data]) -> LinkQuerySet:
    part = stack("pair", graphs, [graph.edge_label_index for graph in graphs])
    known = stack("pair", graphs, [graph.known_edge_index for graph in graphs]).queries
    assert part.queries is not None and known is not None
    values: dict[str, Any] = vars(part) | {"queries": None}
    return LinkQuerySet(**values, positives=part.queries, known=known)


def _check_any_edge(any_edge: bool, name: str) -> None:
    if not any_edge:
        raise ValueError(f"part {name!r} has no edge to predict. Use more or larger graphs, or larger shares.")


def _is_directed(dataset: Dataset) -> bool:
    """Whether links have a direction: as stated for files, otherwise if some edge has no reverse edge."""
    if dataset.schema is not None:
        return dataset.schema.directed
    sizes = [check_graph(graph) for graph in dataset.graphs]
    return not all(is_symmetric(edges_of(graph), size) for graph, size in zip(dataset.graphs, sizes, strict=True))
