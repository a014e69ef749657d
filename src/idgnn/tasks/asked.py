"""What a task asks about a graph, and what is true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.tasks.settings import TaskSettings


@dataclass(frozen=True)
class Asked:
    """Queries about one graph, with their targets."""

    queries: Tensor | None  # [queries] nodes or [2, queries] pairs; None if the graph itself is asked about
    target: Tensor  # [queries], or [1]; empty if nothing is known


def asked(graph: Data, settings: TaskSettings) -> Asked:
    """All that is known about a graph. Labels of -1 or NaN are not known."""
    if settings.level == "pair":
        if graph.get("edge_label_index") is None or graph.get("edge_label") is None:
            raise ValueError(f"a graph has no pairs for {settings.name}. {advice(settings)}")
        for name in ("edge_label_index", "edge_label"):
            _check_tensor(graph[name], name)
        pairs, label = graph.edge_label_index, _numbers(graph.edge_label, settings)
        if label.shape != pairs.shape[1:]:
            raise ValueError(
                f"edge_label has shape {list(label.shape)} for edge_label_index of shape {list(pairs.shape)}, expected "
                "one label for each pair."
            )
        known = _known(label, settings)
        return Asked(pairs[:, known], label[known])
    num_nodes = graph.num_nodes or 0
    size = num_nodes if settings.level == "node" else 1
    y = graph.get("y")
    if y is not None:
        _check_tensor(y, "y")
    if y is None or y.numel() != size:
        given = "no y" if y is None else f"a y of shape {list(y.shape)}"
        expected = "a label of each node" if settings.level == "node" else "one label"
        raise ValueError(
            f"a graph of {num_nodes} nodes has {given}, but {settings.name} expects {expected}. {advice(settings)}"
        )
    y = _numbers(y.view(size), settings)
    known = _known(y, settings)
    return Asked(known if settings.level == "node" else None, y[known])


def _check_tensor(values: Any, name: str) -> None:
    if not isinstance(values, Tensor):
        raise ValueError(
            f"a graph has {name} of type {type(values).__name__}, expected a tensor of numbers. Make one with "
            "torch.tensor([...]), classes numbered 0, 1, 2, ..."
        )


def _numbers(label: Tensor, settings: TaskSettings) -> Tensor:
    """Quantities as floats, classes as 64-bit integers; what is neither stays for the objective to refuse."""
    if settings.name.endswith("regression"):
        return label.float()
    return label if label.is_floating_point() else label.long()


def _known(label: Tensor, settings: TaskSettings) -> Tensor:
    """Where there is a label `[known]`. What can be neither a label nor unknown is refused."""
    if label.is_floating_point():
        if label.isinf().any():
            raise ValueError(
                f"{int(label.isinf().sum())} of {label.numel()} labels for {settings.name} are infinite, or beyond "
                "float32, expected finite numbers, or NaN for what is not known. Correct them."
            )
        return (~label.isnan()).nonzero().flatten()
    if (label < -1).any():
        raise ValueError(
            f"a label for {settings.name} is {int(label.min())}, expected classes 0, 1, 2, ..., or -1 for what is not "
            "known. Number the classes from 0 on."
        )
    return (label >= 0).nonzero().flatten()


def stacked_queries(each: list[Asked], sizes: list[int]) -> list[Tensor] | None:
    """The queries of several graphs, or `None` if they are all nodes, or the graphs themselves."""
    queries = [one.queries for one in each if one.queries is not None]
    if not queries:
        return None
    every = all(torch.equal(nodes, torch.arange(size)) for nodes, size in zip(queries, sizes, strict=True))
    return None if every else queries


def advice(settings: TaskSettings) -> str:
    """What to do if there are no labels."""
    if settings.level == "pair":
        return "Set edge_label_index [2, pairs] and edge_label [pairs] on every graph."
    return "Name the column with the labels (--label), or set y on every graph, with -1 or NaN for what is not known."
