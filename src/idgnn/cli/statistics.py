"""What there is to know about a set of graphs before a network is trained on it."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.repeats import num_repeats
from idgnn.identity.adjacency import is_symmetric
from idgnn.identity.walks.components import connected_components
from idgnn.tasks.part import Part

MOST_CLASSES = 12  # of which the balance is shown one by one


def sizes(part: Part) -> Iterator[tuple[str, ...]]:
    """Rows of name, total, mean, least and most: of graphs, nodes, edges and degrees."""
    nodes = torch.bincount(part.owner, minlength=part.num_graphs)
    edges = torch.bincount(part.owner[part.edge_index[0]], minlength=part.num_graphs)
    undirected = is_symmetric(part.edge_index, part.owner.numel())
    yield "graphs", f"{part.num_graphs:,}", "", "", ""
    yield "nodes", f"{int(nodes.sum()):,}", *_spread(nodes)
    yield f"edges{', both directions counted' * undirected}", f"{int(edges.sum()):,}", *_spread(edges)
    for end, name in ((1, "degree" if undirected else "in-degree"), *(() if undirected else ((0, "out-degree"),))):
        degree = torch.bincount(part.edge_index[end], minlength=part.owner.numel())
        yield name, "", *_spread(degree)


def facts(dataset: Dataset, part: Part) -> Iterator[tuple[str, str]]:
    """What is said in words: the shape of the graphs, their features and their labels."""
    (source, target), num_nodes = part.edge_index, part.owner.numel()
    directed = not is_symmetric(part.edge_index, num_nodes)
    yield "directed", "yes: some edges have no reverse" if directed else "no: every edge has its reverse"
    yield "connected", _connected(part)
    isolated = num_nodes - torch.unique(part.edge_index).numel()
    yield "isolated nodes", f"{isolated:,}"
    yield "self-loops", f"{int((source == target).sum()):,}"
    yield "duplicate edges", f"{num_repeats(part.edge_index, num_nodes):,}"
    no_columns = dataset.schema is not None and not dataset.schema.node
    yield "node features", "none: every node gets the number 1" if no_columns else f"{part.x.size(1):,}"
    yield "edge features", "none" if part.edge_attr is None else f"{part.edge_attr.size(1):,}"
    yield "edge weights", "no" if part.edge_weight is None else "yes"
    yield from _labels(dataset, part)
    for name, ids in dataset.provided_split.items():
        yield f"split: {name}", f"{ids.numel():,}"


def _spread(values: Tensor) -> tuple[str, str, str]:
    if values.numel() < 2:
        return "", "", ""
    return f"{values.double().mean():,.1f}", f"{int(values.min()):,}", f"{int(values.max()):,}"


def _connected(part: Part) -> str:
    source, target = part.edge_index
    component = connected_components(source, target, part.owner.numel())  # [nodes]
    size = torch.bincount(component)
    owner = torch.zeros_like(size).scatter_(0, component, part.owner)
    whole = int((torch.bincount(owner, minlength=part.num_graphs) == 1).sum())
    if part.num_graphs > 1:
        return f"{whole:,} of {part.num_graphs:,} graphs"
    return "yes" if whole else f"no: {size.numel():,} components, the largest has {int(size.max()):,} nodes"


def _labels(dataset: Dataset, part: Part) -> Iterator[tuple[str, str]]:
    given = [graph.get("y") for graph in dataset.graphs]
    y = [labels.flatten() for labels in given if isinstance(labels, Tensor)]
    if not y:
        yield "labels", "none"
        return
    labels = torch.cat(y)
    label = None if dataset.schema is None else dataset.schema.label
    whose = "graph" if labels.numel() == part.num_graphs else "node"
    if dataset.schema is not None and dataset.schema.label_of is not None:
        whose = dataset.schema.label_of
    known = labels[~labels.isnan() if labels.is_floating_point() else labels >= 0]
    unknown = labels.numel() - known.numel()
    beside = f", {unknown:,} unknown" if unknown else ""
    if not known.numel():
        yield "labels", f"of each {whose}, all unknown"
        return
    if label.categories is None if label is not None else bool((known != known.round()).any()):
        spread = f"mean {known.mean():.4g}, least {known.min():.4g}, most {known.max():.4g}"
        yield "labels", f"of each {whose}, quantities: {spread}{beside}"
        return
    classes, number = torch.unique(known.long(), return_counts=True)
    names = None if label is None else label.categories
    yield "labels", f"of each {whose}, {classes.numel():,} classes{beside}"
    for each, count in list(zip(classes.tolist(), number.tolist(), strict=True))[:MOST_CLASSES]:
        name = each if names is None else names[each]
        yield f"class {name}", f"{count:,} ({count / known.numel():.1%})"
    if classes.numel() > MOST_CLASSES:
        rest = int(number[MOST_CLASSES:].sum())
        yield f"{classes.numel() - MOST_CLASSES:,} other classes", f"{rest:,} ({rest / known.numel():.1%})"
