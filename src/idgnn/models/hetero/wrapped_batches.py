"""Batches of queries for wrapped models over several node types: the part of the graph that answers them, and its rows.

Layers that are not ours take degrees from the rows they see, so that the part has one hop more than there are rounds.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import HeteroData
from torch_geometric.nn import HANConv

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.hetero.graph import TypedRows, typed_queries
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec
from idgnn.identity.hetero.types import EdgeType, Split, TypedGraph
from idgnn.identity.neighborhood import neighborhood
from idgnn.identity.unreached import UnreachedColorWarning, warn_unreached
from idgnn.models.embedding import EmbeddingBar, evaluating
from idgnn.models.embedding_memory import CPU_CHUNK, as_bytes
from idgnn.models.hetero.embedding import query_chunks
from idgnn.models.hetero.index import moved
from idgnn.models.wrapping.hetero_arguments import HeteroCall, TypedPlan
from idgnn.models.wrapping.hetero_trim import trimmed

if TYPE_CHECKING:
    from idgnn.models.hetero.identity_aware import HeteroIdentityAwareModel


@dataclass(frozen=True)
class WrappedPrepared:
    """What a wrapped model runs on to answer some queries."""

    call: HeteroCall  # on a part of the graph
    plan: TypedPlan  # the rows of that part
    unreached: int  # how many of the queries no color reaches

    def to(self, device: torch.device | str) -> WrappedPrepared:
        """The same on another device."""
        return moved(self, torch.device(device))


class WrappedGraph:
    """A graph, held ready on the CPU so that a wrapped model can be run on a few queries at a time.

    Args:
        model: The wrapped model, which is compared with brute force here if it was not before.
        data: The graph.
        queries: All that will be answered; only their node types are used here.
    """

    def __init__(
        self, model: HeteroIdentityAwareModel, data: HeteroData, queries: TypedQuerySpec | TypedQueries
    ) -> None:
        device = next(model.parameters(), torch.empty(0)).device
        self.call = model.call_of(data.cpu() if data.is_cuda else data)
        self.typed = self.call.typed()
        here = model.call_of(data.to(str(device))) if device.type != "cpu" else self.call
        self.num_layers = model.trace_call(here)
        self.queries = typed_queries(self.typed, queries, self.num_layers)
        model.check_types(here, self.queries.read, self.queries.root)
        self.graph = IndexedGraph(self.typed.edge_index, self.typed.total)
        # HANConv weighs relations by a mean over all nodes.
        self.whole = any(isinstance(layer, HANConv) for layer in model.module.modules())
        self.rounds = model.trimmed_rounds(here, self.queries.read, self.queries.root)

    def prepare(self, queries: TypedQueries) -> WrappedPrepared:
        """What the model runs on to answer some queries."""
        call, local, ids = self.call, queries, {}
        if not self.whole:
            call, ids = self._part(queries)
            node, color = (
                _places(ids[kind], nodes)
                for kind, nodes in ((queries.read, queries.node), (queries.root, queries.color))
            )
            local = TypedQueries(queries.read, queries.root, node, node if queries.own else color)
        inside = (local.color >= 0).nonzero().flatten()  # other colors are too far away to be seen
        typed = call.typed()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedColorWarning)
            rows = TypedRows.of(typed, local.take(inside), self.num_layers)
        answer = local.node.index_copy(0, inside, rows.query_row)  # the row of a node itself is the plain one
        plan = replace(TypedPlan.of_rows(rows, typed), answer=answer)
        unreached = int((answer < typed.size[queries.read]).sum())
        plan = plan if self.rounds is None else trimmed(plan, self.num_layers, self.rounds)
        return WrappedPrepared(call, plan, unreached)

    def _part(self, queries: TypedQueries) -> tuple[HeteroCall, dict[str, Tensor]]:
        """The call on what is at most one hop further away than the model looks, and the nodes of each type in it."""
        typed = self.typed
        near = neighborhood(self.graph.into, queries.joined(typed).node, self.num_layers + 1)
        order = torch.sort(near.node).values  # by type, and by number within it
        split = Split.of(typed.node_type.index_select(0, order), len(typed.num_nodes))
        ids = {
            kind: order.index_select(0, split.of_type(number)) - typed.first[kind]
            for number, kind in enumerate(typed.schema.node_types)
        }
        kinds = Split.of(typed.edge_type.index_select(0, near.edge), len(typed.num_edges))
        edges: dict[EdgeType, Tensor] = {}
        ends: dict[EdgeType, Tensor] = {}
        for number, kind in enumerate(typed.schema.edge_types):
            # In their order, which layers that look at it keep.
            edges[kind] = torch.sort(near.edge.index_select(0, kinds.of_type(number))).values - typed.first_edges[kind]
            whole = self.call.edge_index[kind].index_select(1, edges[kind])
            ends[kind] = torch.stack([_places(ids[kind[0]], whole[0]), _places(ids[kind[2]], whole[1])])

        def node(kind: str, values: Tensor) -> Tensor:
            return values.index_select(0, ids[kind])

        def edge(kind: EdgeType, name: str, values: Tensor) -> Tensor:
            return ends[kind] if name == "edge_index" else values.index_select(0, edges[kind])

        part = self.call.map(node, edge)
        return replace(part, num_nodes={kind: found.numel() for kind, found in ids.items()}), ids


def _places(known: Tensor, ids: Tensor) -> Tensor:
    """The places of ids among sorted ones, -1 for those that are not there."""
    if not known.numel():
        return torch.full_like(ids, -1)
    place = torch.searchsorted(known, ids).clamp(max=known.numel() - 1)
    return torch.where(known.index_select(0, place) == ids, place, -1)


def embed_wrapped(
    model: HeteroIdentityAwareModel,
    data: HeteroData,
    queries: TypedQuerySpec | TypedQueries,
    memory: float | str | None,
    progress: bool,
) -> Tensor:
    """:meth:`HeteroIdentityAwareModel.embed`."""
    graph = WrappedGraph(model, data, queries)
    parsed, device = graph.queries, next(model.parameters(), torch.empty(0)).device
    joined = parsed.joined(graph.typed)
    order = torch.argsort(joined.color, stable=True)
    limit = as_bytes(memory, device)
    limit = min(limit, CPU_CHUNK) if device.type == "cpu" else limit
    found, unreached = [], 0
    with torch.no_grad(), evaluating(model), EmbeddingBar(order.numel(), progress) as bar:
        row_bytes = _row_bytes(model, graph.typed)
        near = graph.graph.into.walk_sums(torch.ones(graph.typed.total), graph.num_layers + 1)
        beside = near.clamp(max=graph.typed.total).index_select(0, joined.node) * (not graph.whole)
        chunks = query_chunks(graph.graph, joined.take(order), graph.num_layers, row_bytes, limit, beside[order])
        for first, last in chunks:
            ready = graph.prepare(parsed.take(order[first:last]))
            found.append(model.run(ready.to(device)).cpu())
            unreached += ready.unreached
            bar.advance(last - first)
    warn_unreached(unreached, order.numel(), graph.num_layers)
    out = torch.cat(found)
    return torch.empty_like(out).index_copy(0, order, out)


def _row_bytes(model: HeteroIdentityAwareModel, typed: TypedGraph) -> float:
    """About what a row takes while the model runs: some states of the largest width, and its messages."""
    width = max((max(weight.shape, default=1) for weight in model.parameters()), default=1)
    degree = typed.edge_index.size(1) / max(typed.total, 1)
    return 4 * width * (8 + 2 * degree)
