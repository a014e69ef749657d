"""What a model is called with, checked and brought to one form: features and edges of the original graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.identity.checks import check_edge_index, check_edge_rows, check_graph, check_rows, check_states
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.queries import is_triples
from idgnn.identity.second_nodes import SecondNodes

if TYPE_CHECKING:
    from idgnn.models.identity_aware_model import IdentityAwareModel
    from idgnn.models.idgnn import IDGNN

    AnyEncoder = IDGNN | IdentityAwareModel


@dataclass(frozen=True)
class Inputs:
    """A graph with one row of features per node and one of attributes per edge."""

    x: Tensor
    edge_index: Tensor
    edge_attr: Tensor | None
    edge_weight: Tensor | None

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.x.size(0)


def given(x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None) -> Inputs:
    """Takes a graph as it is, after a look at whether its parts fit together."""
    check_rows(x, "x", "[num_nodes, in_channels]")
    check_edge_index(edge_index, x.size(0))
    for name, values in (("edge_attr", edge_attr), ("edge_weight", edge_weight)):
        if values is not None:
            check_edge_rows(values, edge_index.size(1), name)
    # Integers of another size are converted; what was given stays the same object, since plans are kept by it.
    return Inputs(x, edge_index if edge_index.dtype == torch.long else edge_index.long(), edge_attr, edge_weight)


def of_data(data: Data, model: AnyEncoder, device: torch.device) -> Inputs:
    """A graph with what the layers take of its edges, on a device. One without features gets the feature 1."""
    num_nodes = check_graph(data)
    x = data.x
    if x is None and model.in_channels == 1:
        x = torch.ones(num_nodes, 1, dtype=model.dtype)
    taken = (data.get(name) if model.takes(name) else None for name in ("edge_attr", "edge_weight"))
    parts: tuple[Any, ...] = (x, data.edge_index, *taken)  # if there is no x, `given` says so
    inputs = given(*(part.to(device) if isinstance(part, Tensor) else part for part in parts))
    if model.in_channels is not None:
        check_states(inputs.x, model.in_channels, model.dtype, "model")
    model.check_layers(inputs)
    return inputs


def given_with(
    graph: IdentityGraph, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None, edge_weight: Tensor | None
) -> Inputs:
    """Takes the edges from an identity graph; all else is given per original node and edge, or per row and edge of the
    identity graph, as a `DataLoader` of identity graphs has it."""
    check_identity_graph(graph)
    check_rows(x, "x", "[num_nodes, in_channels]")
    original = original_edges(graph, edge_index)
    return Inputs(
        _original(x, graph.plain_row, graph.num_nodes, "x", "node"),
        original,
        None if edge_attr is None else _edges(graph, edge_attr, "edge_attr"),
        None if edge_weight is None else _edges(graph, edge_weight, "edge_weight"),
    )


def check_identity_graph(graph: Any) -> None:
    """Refuses what is no identity graph."""
    if not isinstance(graph, IdentityGraph):
        raise ValueError(f"graph is a {type(graph).__name__}, expected what idgnn.identity_graph returns.")


def check_prebuilt(graph: IdentityGraph, num_layers: int, second: SecondNodes | None) -> None:
    """Refuses an identity graph built for fewer rounds, other colors or other second nodes than a model has."""
    two = graph.colored.dtype != torch.bool
    if two and second is None:
        raise ValueError(
            "the identity graph has two colors, but the model has one. Make the model with colors=2, or build the "
            f"graph with nodes or pairs as queries: identity_graph(data, num_layers={num_layers})."
        )
    if second is not None and not two:
        raise ValueError(
            "the identity graph has one color, but the model has two. Make the model with colors=1, or build the graph "
            f"with ToIdentityGraph({num_layers}, colors=2, {second.options})."
        )
    told = graph.pooled_by if second is not None and "pooled_by" in graph else []
    for each in {told} if isinstance(told, str) else set(told):  # a batch holds one for each of its graphs
        assert second is not None
        expected = second.pair_options if each.startswith("directed") else second.node_options
        if each != expected:
            raise ValueError(
                f"the identity graph was built with {each}, but the model has {expected}. Build it with "
                f"ToIdentityGraph({num_layers}, colors=2, {second.options})."
            )
    built_for = int(torch.as_tensor(graph.num_layers).min())  # a batch holds one number for each of its graphs
    if built_for < num_layers:
        raise ValueError(
            f"the identity graph was built for {built_for} rounds, but the model has {num_layers}. Build it with "
            f"num_layers={num_layers}."
        )


def original_edges(graph: IdentityGraph, edge_index: Tensor) -> Tensor:
    """The `edge_index` from which an identity graph was built; refuses edges that are neither these nor its own."""
    original = graph.node[graph.edge_index[:, graph.plain_edge]]
    if edge_index is not graph.edge_index and not any(
        torch.equal(edge_index.to(known), known) for known in (original, graph.edge_index)
    ):
        raise ValueError(
            "edge_index is not that of the graph from which the identity graph was built. Pass that one, or "
            "graph.edge_index, or build the identity graph of these edges."
        )
    return original


def check_batch(batch: Any, edge_index: Tensor, num_nodes: int) -> None:
    """Refuses a batch vector that does not fit the nodes, or edges between graphs."""
    if not isinstance(batch, Tensor):
        raise ValueError(f"batch is a {type(batch).__name__}, expected a tensor [num_nodes]: the graph of each node.")
    if batch.shape != (num_nodes,):
        raise ValueError(f"batch has shape {list(batch.shape)}, expected [{num_nodes}]: the graph of each node.")
    across = batch[edge_index[0]] != batch[edge_index[1]]
    if bool(across.any()):
        edge = int(across.nonzero()[0])
        raise ValueError(
            f"{int(across.sum())} edges join nodes of different graphs, the first is edge {edge}: "
            f"{edge_index[:, edge].tolist()}. Was edge_index offset when the graphs were put into one batch?"
        )


def check_one_color(queries: Any) -> None:
    """Refuses queries that color two nodes of a model that has one color."""
    if is_triples(queries):
        raise ValueError(
            f"queries have shape {list(queries.shape)}: read, first color and second color; but the model has one "
            "color, expected nodes [num_queries] or pairs [2, num_queries]. Make it with colors=2."
        )


def _edges(graph: IdentityGraph, values: Tensor, name: str) -> Tensor:
    check_rows(values, name, "[num_edges, ...]")
    values = _original(values, graph.plain_edge, graph.num_edges, name, "edge")
    check_edge_rows(values, graph.plain_edge.numel(), name)
    return values


def _original(values: Tensor, plain: Tensor, num_rows: int, name: str, what: str) -> Tensor:
    if values.size(0) == plain.numel():
        return values
    if values.size(0) == num_rows:
        return values[plain]
    raise ValueError(
        f"{name} has {values.size(0)} rows, expected one per {what} of the original graph ({plain.numel()}) or of the "
        f"identity graph ({num_rows}). Was the identity graph built from another graph?"
    )
