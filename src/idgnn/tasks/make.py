"""From a dataset and the settings of a task to a problem: labels, split, queries, objective."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.labels import graph_clustering, node_clustering, shortest_paths
from idgnn.graphs.splits import Split, k_fold, provided, random_split
from idgnn.identity.adjacency import is_symmetric
from idgnn.identity.checks import check_graph, edges_of
from idgnn.tasks.asked import advice, asked, stacked_queries
from idgnn.tasks.class_names import class_names
from idgnn.tasks.links import links_of_many_graphs, links_of_one_graph
from idgnn.tasks.objective import Binary, Classes, Links, Objective, Quantity
from idgnn.tasks.part import Part, stack
from idgnn.tasks.problem import Problem
from idgnn.tasks.settings import TaskSettings

# Labels that come from the structure are drawn once, whatever the seed of a run: runs differ in split and weights.
_LABEL_SEED = 0


class OneClassWarning(UserWarning):
    """A held-out part has one class alone, and cannot be judged as the task is."""


def make_problem(dataset: Dataset, settings: TaskSettings, seed: int = 0) -> Problem:
    """The task that the settings describe, on a dataset; `seed` decides the split and what is drawn for validation."""
    if not dataset.graphs:
        raise ValueError("there are no graphs, expected at least one.")
    if settings.name == "link-prediction":
        problem = _links(dataset, settings, seed)
    else:
        dataset = replace(dataset, graphs=_with_labels(dataset.graphs, settings))
        problem = (_one_graph if len(dataset) == 1 else _by_graph)(dataset, settings, seed)
        problem = replace(problem, classes=class_names(dataset, settings))
    _tell_of_one_class(problem)
    return problem


def _tell_of_one_class(problem: Problem) -> None:
    for name, part in problem.held_out.items():
        if problem.objective.metric == "roc_auc" and part.target is not None and part.target.unique().numel() < 2:
            warnings.warn(
                f"all {part.target.numel()} answers of the {name} part are the same, and roc_auc, which compares two "
                "classes, will be NaN. Hold more out, or choose another seed.",
                OneClassWarning,
                stacklevel=3,
            )


def _with_labels(graphs: list[Data], settings: TaskSettings) -> list[Data]:
    if settings.name == "node-clustering":
        return node_clustering(graphs, settings.bins)
    if settings.name == "graph-clustering":
        return graph_clustering(graphs, settings.bins)
    if settings.name == "shortest-path":
        return shortest_paths(graphs, settings.pairs, settings.cutoff, _LABEL_SEED)
    return graphs


def _by_graph(dataset: Dataset, settings: TaskSettings, seed: int) -> Problem:
    """Graphs are held out. Those of which nothing is known are in no part."""
    graphs, each = dataset.graphs, [asked(graph, settings) for graph in dataset.graphs]
    ids = [i for i, one in enumerate(each) if one.target.numel()]
    _check_known(len(ids), dataset, settings)
    by_class = settings.level == "graph" and not each[ids[0]].target.is_floating_point()
    classes = torch.cat([each[i].target for i in ids]) if by_class else None
    split = _split(dataset, settings, seed, ids, classes)

    def part(ids: list[int]) -> Part:
        queries = stacked_queries([each[i] for i in ids], [graphs[i].num_nodes or 0 for i in ids])
        return stack(settings.level, [graphs[i] for i in ids], queries, [each[i].target for i in ids])

    return _problem(settings, {name: part(ids) for name, ids in split.items()}, split)


def _one_graph(dataset: Dataset, settings: TaskSettings, seed: int) -> Problem:
    """Nodes or pairs of the only graph are held out; all of its nodes and edges are there while training."""
    graph, known = dataset.graphs[0], asked(dataset.graphs[0], settings)
    if known.queries is None:
        raise ValueError(
            f"there is one graph alone, but {settings.name} needs several: some are held out. Add others, or choose a "
            "task about nodes or pairs of nodes."
        )
    _check_known(known.target.numel(), dataset, settings)
    classes = None if known.target.is_floating_point() else known.target
    # A split that comes with a dataset names nodes; otherwise it is the queries that are numbered.
    ids = known.queries.tolist() if settings.split == "provided" else list(range(known.target.numel()))
    split = _split(dataset, settings, seed, ids, classes)
    place = {query: i for i, query in enumerate(ids)} if settings.split == "provided" else None
    whole = stack(settings.level, [graph], [known.queries], [known.target])
    assert whole.queries is not None and whole.target is not None
    parts = {}
    for name, chosen in split.items():
        index = torch.tensor(chosen if place is None else [place[query] for query in chosen])
        # The graph may be large: all parts hold the same one.
        parts[name] = replace(whole, queries=whole.queries[..., index], target=whole.target[index])
    return _problem(settings, parts, {name: [0] for name in parts})


def _links(dataset: Dataset, settings: TaskSettings, seed: int) -> Problem:
    """Graphs are held out, and of every graph edges; of a single graph edges alone."""
    generator = torch.Generator().manual_seed(seed)
    directed = _is_directed(dataset)
    if len(dataset) == 1:
        if settings.split != "random":
            raise ValueError(
                f"split is {settings.split!r}, but the edges of a single graph can only be held out at random."
            )
        shares = {"test": settings.test, "valid": settings.valid}
        parts = links_of_one_graph(dataset.graphs[0], shares, settings.supervision, generator, directed)
        ids = {name: [0] for name in parts}
    else:
        split = _split(dataset, settings, seed, list(range(len(dataset))), None)
        parts, ids = links_of_many_graphs(dataset.graphs, split, settings.supervision, generator, directed)
    held_out = {name: part.epoch(generator) for name, part in parts.items() if name != "train"}
    return Problem("pair", Links(), parts["train"], held_out, ids)


def _is_directed(dataset: Dataset) -> bool:
    """Whether a link has a direction: as the files were said to be, else if any edge is without its reverse."""
    if dataset.schema is not None:
        return dataset.schema.directed
    sizes = [check_graph(graph) for graph in dataset.graphs]
    return not all(is_symmetric(edges_of(graph), size) for graph, size in zip(dataset.graphs, sizes, strict=True))


def _split(
    dataset: Dataset, settings: TaskSettings, seed: int, ids: list[int], classes: torch.Tensor | None
) -> dict[str, list[int]]:
    """Parts of the given ids, of graphs or nodes; `classes` are theirs, if folds are to have equal shares of them."""
    if settings.split == "provided":
        there = set(ids)
        parts = {name: [i for i in part.tolist() if i in there] for name, part in provided(dataset).items()}
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


def _check_known(num_known: int, dataset: Dataset, settings: TaskSettings) -> None:
    if num_known == 0:
        raise ValueError(f"nothing is known about {dataset.name} for {settings.name}. {advice(settings)}")


def _problem(settings: TaskSettings, parts: Mapping[str, Part], ids: Mapping[str, list[int]]) -> Problem:
    held_out = {name: part for name, part in parts.items() if name != "train"}
    return Problem(settings.level, _objective(settings, parts), parts["train"], held_out, ids)


def _objective(settings: TaskSettings, parts: Mapping[str, Part]) -> Objective:
    targets = {name: part.target for name, part in parts.items() if part.target is not None}
    if settings.name.endswith("regression"):
        return Quantity.of(targets["train"])
    every = torch.cat(list(targets.values()))
    if every.is_floating_point():
        raise ValueError(
            f"the labels are quantities, such as {every[0].item():g}, but {settings.name} expects classes 0, 1, 2, ... "
            f"Use {settings.level}-regression, or labels that are whole numbers (y.long())."
        )
    num_classes, there = int(every.max()) + 1, every.unique().numel()
    if num_classes > max(2 * there, 100):
        raise ValueError(
            f"the labels go up to {num_classes - 1}, but only {there} of them are there, expected classes 0, 1, 2, ... "
            "Number them with y.unique(return_inverse=True)[1]."
        )
    if num_classes < 2:
        raise ValueError(f"all labels for {settings.name} are the same, expected at least two classes.")
    return Binary() if num_classes == 2 else Classes(num_classes)
