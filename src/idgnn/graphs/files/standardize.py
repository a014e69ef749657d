"""Features that are numbers, brought to mean 0 and standard deviation 1: networks learn badly from large numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.schema import Column


def standardized(dataset: Dataset) -> Dataset:
    """The same graphs with standardized numbers; the schema remembers how, so that other files are read likewise."""
    schema = dataset.schema
    if schema is None:
        return dataset
    graphs = [graph.clone() for graph in dataset.graphs]
    node, edge = schema.node, schema.edge
    if node:
        x, node = _standardized(torch.cat([graph.x for graph in graphs if graph.x is not None]), node)
        for graph, part in zip(graphs, x.split([graph.num_nodes or 0 for graph in graphs]), strict=True):
            graph.x = part
    if edge:
        attr, edge = _standardized(
            torch.cat([graph.edge_attr for graph in graphs if graph.edge_attr is not None]), edge
        )
        for graph, part in zip(graphs, attr.split([graph.num_edges for graph in graphs]), strict=True):
            graph.edge_attr = part
    return replace(dataset, graphs=graphs, schema=replace(schema, node=node, edge=edge))


def _standardized(values: Tensor, columns: Sequence[Column]) -> tuple[Tensor, tuple[Column, ...]]:
    """`[rows, sum of the widths]`; a column whose numbers are all the same keeps its scale."""
    parts, found = [], []
    for column, part in zip(columns, values.split([column.width for column in columns], dim=1), strict=True):
        if column.categories is None and part.numel():
            mean = part.double().mean().item()
            scale = part.double().std(correction=0).item() or 1.0
            part = ((part.double() - mean) / scale).float()
            column = replace(column, mean=mean, scale=scale)
        parts.append(part)
        found.append(column)
    return torch.cat(parts, dim=1), tuple(found)
