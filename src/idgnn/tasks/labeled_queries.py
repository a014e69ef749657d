"""Queries whose labels come with the graphs, and how they are split into training and held-out parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.splits import Split, k_fold, provided, provided_fold, random_split
from idgnn.tasks.query_set import QuerySet, stack
from idgnn.tasks.task_settings import TaskSettings


@dataclass(frozen=True)
class LabeledQueries:
    """The queries of one graph whose labels are known."""

    queries: Tensor | None  # [queries] nodes or [2, queries] pairs; None for the graph itself
    target: Tensor  # [queries, ...], or [1, ...] for the graph itself; empty if no label is known


def labeled_queries(graph: Data, settings: TaskSettings, quantity: bool = False) -> LabeledQueries:
    """The queries of a graph with known labels. Labels of -1 (classes) or NaN are unknown.

    Tasks that count patterns have several labels for a query, side by side.
    """
    if settings.level == "pair":
        if graph.get("edge_label_index") is None or graph.get("edge_label") is None:
            raise ValueError(f"a graph has no pairs for {settings.name}. {_how_to_label(settings)}")
        for name in ("edge_label_index", "edge_label"):
            _check_tensor(graph[name], name)
        pairs, label = graph.edge_label_index, _converted(graph.edge_label, quantity)
        if label.shape != pairs.shape[1:]:
            raise ValueError(
                f"edge_label has shape {list(label.shape)} for edge_label_index of shape {list(pairs.shape)}, expected "
                "one label for each pair."
            )
        known = _known(label, settings)
        return LabeledQueries(pairs[:, known], label[known])
    num_nodes = graph.num_nodes or 0
    size = num_nodes if settings.level == "node" else 1
    y = graph.get("y")
    if y is not None:
        _check_tensor(y, "y")
    several = settings.name in ("node-counting", "graph-counting") and y is not None and y.shape[:1] == (size,)
    if y is None or not (several or y.numel() == size):
        given = "no y" if y is None else f"a y of shape {list(y.shape)}"
        expected = "a label of each node" if settings.level == "node" else "one label"
        raise ValueError(
            f"a graph of {num_nodes} nodes has {given}, but {settings.name} expects {expected}. "
            f"{_how_to_label(settings)}"
        )
    y = _converted(y if several else y.view(size), quantity)
    known = _known(y, settings)
    return LabeledQueries(known if settings.level == "node" else None, y[known])


def split_labeled_queries(
    dataset: Dataset, settings: TaskSettings, seed: int, quantity: bool
) -> tuple[dict[str, QuerySet], dict[str, list[int]]]:
    """Splits the graphs, or the nodes or pairs of the only graph; and for each part the ids of its graphs."""
    split = _split_one_graph if len(dataset) == 1 else _split_graphs
    return split(dataset, settings, seed, quantity)


def split_ids(
    dataset: Dataset, settings: TaskSettings, seed: int, ids: list[int], classes: Tensor | None = None
) -> dict[str, list[int]]:
    """Splits ids of graphs, nodes or pairs; with `classes` `[ids]`, folds have equal shares of each class.

    With `settings.inner`, the training part of that is split again, and all else is left aside."""
    parts = _outer_split(dataset, settings, seed, ids, classes)
    if not settings.inner:
        return parts
    train = parts["train"]
    inside = random_split(len(train), (1 - settings.inner, settings.inner), seed)
    return {name: [train[i] for i in part.tolist()] for name, part in inside.items()}


def _outer_split(
    dataset: Dataset, settings: TaskSettings, seed: int, ids: list[int], classes: Tensor | None
) -> dict[str, list[int]]:
    folds_come_with_it = settings.split == "folds" and len(dataset.provided_folds) > 0
    if settings.split == "provided" or folds_come_with_it:
        available = set(ids)
        found = provided_fold(dataset, settings.folds, settings.fold) if folds_come_with_it else provided(dataset)
        parts = {name: [i for i in part.tolist() if i in available] for name, part in found.items()}
        if not parts.get("ambiguous", True):  # few graphs are: a selection may have none
            del parts["ambiguous"]
        if "train" not in parts or len(parts) < 2 or not all(parts.values()):
            raise ValueError(
                f"the split of {dataset.name} has {list(parts)}, expected train and at least one other part."
            )
        return parts
    if settings.split == "folds":
        by = len(ids) if classes is None else classes
        split: Split = k_fold(by, settings.folds, seed, stratified=classes is not None)[settings.fold]
    else:
        shares = (1 - settings.valid - settings.test, settings.valid, settings.test)
        split = random_split(len(ids), shares if settings.test else shares[:2], seed)
    return {name: [ids[i] for i in part.tolist()] for name, part in split.items()}


def _split_graphs(
    dataset: Dataset, settings: TaskSettings, seed: int, quantity: bool
) -> tuple[dict[str, QuerySet], dict[str, list[int]]]:
    """Holds out graphs. Graphs without a known label are in no part."""
    graphs, each = dataset.graphs, [labeled_queries(graph, settings, quantity) for graph in dataset.graphs]
    ids = [i for i, one in enumerate(each) if one.target.numel()]
    _check_any_label(len(ids), dataset, settings)
    by_class = settings.level == "graph" and not each[ids[0]].target.is_floating_point()
    classes = torch.cat([each[i].target for i in ids]) if by_class else None
    split = split_ids(dataset, settings, seed, ids, classes)

    def query_set(ids: list[int]) -> QuerySet:
        queries = [one.queries for one in (each[i] for i in ids) if one.queries is not None]
        sizes = [graphs[i].num_nodes or 0 for i in ids]
        every_node = all(torch.equal(nodes, torch.arange(n)) for nodes, n in zip(queries, sizes, strict=False))
        return stack(
            settings.level,
            [graphs[i] for i in ids],
            None if every_node else queries,
            [each[i].target for i in ids],
        )

    return {name: query_set(ids) for name, ids in split.items()}, split


def _split_one_graph(
    dataset: Dataset, settings: TaskSettings, seed: int, quantity: bool
) -> tuple[dict[str, QuerySet], dict[str, list[int]]]:
    """Holds out nodes or pairs of the only graph; training sees all of its nodes and edges."""
    by_nodes = settings.split == "provided"
    if by_nodes and settings.level == "pair":
        raise ValueError(
            f"split is 'provided', but {settings.name} asks about pairs of nodes of a single graph, and a split that "
            "comes with a single graph is one of its nodes. Use split='random' or 'folds'."
        )
    known = labeled_queries(dataset.graphs[0], settings, quantity)
    if known.queries is None:
        raise ValueError(
            f"there is only one graph, but {settings.name} needs several: some are held out. Add others, or choose a "
            "task about nodes or pairs of nodes."
        )
    _check_any_label(known.target.numel(), dataset, settings)
    # A split that comes with the dataset has node ids; the other splits number the queries.
    ids = known.queries.tolist() if by_nodes else list(range(known.target.size(0)))
    position = {query: i for i, query in enumerate(ids)}
    split = split_ids(dataset, settings, seed, ids, None if known.target.is_floating_point() else known.target)
    whole = stack(settings.level, dataset.graphs, [known.queries], [known.target])
    assert whole.queries is not None and whole.target is not None
    parts = {}
    for name, chosen in split.items():
        index = torch.tensor([position[query] for query in chosen])
        # The graph may be large: all parts hold the same tensors.
        parts[name] = replace(whole, queries=whole.queries[..., index], target=whole.target[index])
    return parts, {name: [0] for name in parts}


def _check_tensor(values: Any, name: str) -> None:
    if not isinstance(values, Tensor):
        raise ValueError(
            f"a graph has {name} of type {type(values).__name__}, expected a tensor of numbers. Make one with "
            "torch.tensor([...]), classes numbered 0, 1, 2, ..."
        )


def _check_any_label(num_known: int, dataset: Dataset, settings: TaskSettings) -> None:
    if num_known == 0:
        raise ValueError(f"no label for task {settings.name} is known in {dataset.name}. {_how_to_label(settings)}")


def _converted(label: Tensor, quantity: bool) -> Tensor:
    """Quantities as float32, classes as int64. Classes that are floats are refused by the objective."""
    if quantity:
        return label.float()
    return label if label.is_floating_point() else label.long()


def _known(label: Tensor, settings: TaskSettings) -> Tensor:
    """The positions of known labels `[known]`. Infinite numbers and classes below -1 are refused."""
    if label.is_floating_point():
        if label.isinf().any():
            raise ValueError(
                f"{int(label.isinf().sum())} of {label.numel()} labels for {settings.name} are infinite, or beyond "
                "float32, expected finite numbers, or NaN for unknown. Correct them."
            )
        return (~label.isnan().view(label.size(0), -1).any(dim=1)).nonzero().flatten()
    if (label < -1).any():
        raise ValueError(
            f"a label for {settings.name} is {int(label.min())}, expected classes 0, 1, 2, ..., or -1 for unknown. "
            "Number the classes from 0 on."
        )
    return (label >= 0).nonzero().flatten()


def _how_to_label(settings: TaskSettings) -> str:
    if settings.level == "pair":
        return (
            "Name a table of pairs and the column with their labels (--labeled-pairs, --label), or set "
            "edge_label_index [2, pairs] and edge_label [pairs] on every graph."
        )
    return "Name the column with the labels (--label), or set y on every graph, with -1 or NaN for unknown labels."
