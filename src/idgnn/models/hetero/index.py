"""A heterogeneous graph made ready once: its neighbor lists, the weights of messages, features, the counts of Fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from idgnn.identity.adjacency import IndexedGraph, distinct
from idgnn.identity.checks import check_dtype
from idgnn.identity.cone import ChangedEdges, Cone, cones, join
from idgnn.identity.cost import check_room
from idgnn.identity.cycle_features import cycle_features
from idgnn.identity.hetero.edge_rounds import EdgeRoundSchedule, edge_round_schedule
from idgnn.identity.hetero.forward import ForwardSearch
from idgnn.identity.hetero.graph import typed_queries
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.schedule import TypedSchedule, typed_schedule
from idgnn.identity.hetero.types import EdgeType, TypedGraph
from idgnn.identity.queries import Queries
from idgnn.identity.schedule import Schedule
from idgnn.identity.schedule_builder import make_schedule, plain_schedule
from idgnn.identity.unreached import warn_unreached

if TYPE_CHECKING:
    from idgnn.models.hetero.idgnn import HeteroIDGNN


@dataclass(frozen=True)
class Start:
    """The rows of one type that a network starts from."""

    kind: str
    ids: Tensor  # [rows]
    x: Tensor | None  # [rows, features]
    frame: Any = None  # the columns of these rows, for an encoder of the user's


@dataclass(frozen=True)
class HeteroPrepared:
    """What a :class:`idgnn.HeteroIDGNN` runs on to answer some queries."""

    starts: tuple[Start, ...]
    edges: Tensor | tuple[tuple[Tensor | None, Tensor | None], ...] | None
    """Weights of the messages over each edge of all types, or weights and features of the edges of each type."""
    schedule: TypedSchedule | EdgeRoundSchedule
    read: Queries | None  # which of the answers are put together, where nothing is colored

    def to(self, device: torch.device | str) -> HeteroPrepared:
        """The same on another device."""
        return moved(self, torch.device(device))


class HeteroIndex:
    """All that is worked out once for a graph and a network; :meth:`prepare` takes out of it what queries need.

    Args:
        model: The network.
        data: The graph, on any device: `x` of the node types that the network has features for, and `num_nodes` of the
            others.
    """

    def __init__(self, model: HeteroIDGNN, data: HeteroData) -> None:
        self.typed = TypedGraph.of_data(data)
        model.check_types(self.typed)
        self.num_layers, self.identity, self.root = model.num_layers, model.identity, model.config.root
        self.fused, self.sums = model.config.fused, model.sums
        self.graph = IndexedGraph(self.typed.edge_index, self.typed.total)
        linear_mean = model.config.conv == "linear" and model.config.aggr == "mean"
        weight = _means(self.typed, model.dtype) if linear_mean else None
        self.edges = weight if self.fused else _by_edge_type(model, data, self.typed, weight)
        self.x = {kind: _features(model, data, kind) for kind in data.node_types}
        # A name such as "items" is kept under another one by the dictionary of modules, but for keys().
        self.frames = {str(kind): _frame(data, str(kind)) for kind in model.encoders.keys()}  # noqa: SIM118
        self._searches: dict[str, ForwardSearch] = {}  # by the type that is read
        if self.identity == "fast":
            counts = cycle_features(
                self.typed.edge_index, self.typed.total, model.config.cycle_length, model.config.cycle_scale
            )
            parts = counts.to(model.dtype).split(list(self.typed.num_nodes))
            for kind, part in zip(self.typed.schema.node_types, parts, strict=True):
                x = self.x[kind]
                self.x[kind] = part if x is None else torch.cat([x, part], dim=-1)

    @property
    def device(self) -> torch.device:
        """Where the graph is."""
        return self.typed.edge_index.device

    def queries(self, queries: TypedQuerySpec | TypedQueries) -> TypedQueries:
        """Queries that were checked; of ID-GNN-Full also whether the color can arrive."""
        if self.identity == "full":
            parsed = typed_queries(self.typed, queries, self.num_layers)
            if self.root not in (None, parsed.root):
                raise ValueError(
                    f"the queries color nodes of type {parsed.root!r}, but the network was made with another root "
                    f"type, {self.root!r}: edge types that leave {parsed.root!r} have no second weights. Make it with "
                    "root=None, or with the type that is colored."
                )
            return parsed
        return as_typed_queries(queries, self.typed.schema, self.typed.size, self.device)

    def prepare(self, queries: TypedQuerySpec | TypedQueries, gradients: bool = True) -> HeteroPrepared:
        """What the network runs on to answer these queries, and nothing else: each round has the rows that matter."""
        parsed = self.queries(queries)
        joined, read = parsed.joined(self.typed), None
        if self.identity == "full":
            cone, changed = self.rows(joined, parsed.read)
            warn_unreached(int((~cone.find(joined)[1]).sum()), joined.node.numel(), self.num_layers)
            schedule = make_schedule(
                self.graph,
                joined,
                self.num_layers,
                cone=cone,
                changed=changed,
                exchange=None if self.sums else False,
                gradients=False,  # they are sorted once, below
                check=check_room,
            )
        else:
            nodes, place = distinct(torch.cat([joined.node, joined.color]), self.typed.total)
            node, color = place.split(joined.node.numel())
            read = Queries(node, node if parsed.own else color)
            schedule = plain_schedule(self.graph, nodes, self.num_layers)
        return self.ready(schedule, read, gradients)

    def ready(self, schedule: Schedule, read: Queries | None = None, gradients: bool = True) -> HeteroPrepared:
        """What the network runs on, from a schedule of all types as one graph, made without gradients or with them."""
        if self.fused:
            rounds = typed_schedule(schedule, self.graph, self.typed, gradients)
        else:
            rounds = edge_round_schedule(schedule, self.typed, gradients)
        return HeteroPrepared(self.starts(rounds), self.edges, rounds, read)

    def rows(self, queries: Queries, read: str) -> tuple[Cone, ChangedEdges | None]:
        """The rows of the queries and, if they are found on the way, the changed edges between them."""
        if not queries.own:
            if read not in self._searches:
                self._searches[read] = ForwardSearch.of(self.graph, self.typed, read, self.num_layers)
            if self._searches[read].pays(queries):
                return self._searches[read].run(queries)
        return join(cones(self.graph, self.num_layers, queries)), None

    def starts(self, rounds: TypedSchedule | EdgeRoundSchedule) -> tuple[Start, ...]:
        """The features of the rows that a schedule starts from, type by type."""
        found = []
        for (number, _), nodes in zip(rounds.segments, rounds.node.split([n for _, n in rounds.segments]), strict=True):
            kind = self.typed.schema.node_types[number]
            found.append(self.start(kind, nodes - self.typed.first[kind]))
        return tuple(found)

    def start(self, kind: str, ids: Tensor) -> Start:
        """The features of some nodes of a type."""
        x, frame = self.x[kind], self.frames.get(kind)
        return Start(kind, ids, None if x is None else x.index_select(0, ids), None if frame is None else frame[ids])


def moved(value: Any, device: torch.device) -> Any:
    """A frozen dataclass, or a tuple or dictionary of such, with its tensors on another device."""
    if isinstance(value, Tensor):
        return value.to(device, non_blocking=True)
    if isinstance(value, tuple):
        return tuple(moved(part, device) for part in value)
    if isinstance(value, dict):
        return {key: moved(part, device) for key, part in value.items()}
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return value.to(device) if hasattr(value, "to") else value  # a frame of columns
    return type(value)(**{name: moved(getattr(value, name), device) for name in fields})


def _means(typed: TypedGraph, dtype: torch.dtype) -> Tensor:
    """One over the number of messages of its edge type at the target of each edge, and 1 behind: `[edges + 1]`."""
    key = typed.edge_type * typed.total + typed.edge_index[1]
    _, place, count = torch.unique(key, return_inverse=True, return_counts=True)
    return torch.cat([count.index_select(0, place), count.new_ones(1)]).to(dtype).reciprocal()


def _by_edge_type(
    model: HeteroIDGNN, data: HeteroData, typed: TypedGraph, weight: Tensor | None
) -> tuple[tuple[Tensor | None, Tensor | None], ...]:
    """Weights `[edges]` and features `[edges, edge_channels]` of the edges of each type, where there are any."""
    found = []
    for kind, count in zip(typed.schema.edge_types, typed.num_edges, strict=True):
        first = typed.first_edges[kind]
        mine = None if weight is None else weight[first : first + count]
        found.append((mine, _edge_features(model, data, kind)))
    return tuple(found)


def _edge_features(model: HeteroIDGNN, data: HeteroData, kind: EdgeType) -> Tensor | None:
    width = model.edge_channels.get(kind)
    what, made = f"edge_attr of {kind}", f"edge_channels={{{kind!r}: {width}}}"
    return None if width is None else _checked(data[kind].get("edge_attr"), width, what, "num_edges", made, model)


def _frame(data: HeteroData, kind: str) -> Any:
    """The columns of a node type that has an encoder of its own."""
    frame = data[kind].get("tf")
    if frame is None:
        raise ValueError(f"the network has an encoder for {kind!r}, but data[{kind!r}] has no tf, a frame of columns.")
    return frame


def _features(model: HeteroIDGNN, data: HeteroData, kind: str) -> Tensor | None:
    """The features of a type as the network takes them, or none."""
    width = model.in_channels.get(kind)
    what, made = f"x of {kind!r}", f"in_channels={{{kind!r}: {width}}}"
    return None if width is None else _checked(data[kind].get("x"), width, what, "num_nodes", made, model)


def _checked(values: Any, width: int, what: str, rows: str, made: str, model: HeteroIDGNN) -> Tensor:
    """Features that have the width and the type of number that the network was made with."""
    if not isinstance(values, Tensor) or values.dim() != 2 or values.size(1) != width:
        given = list(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise ValueError(f"{what} is {given}, expected [{rows}, {width}]: the network was made with {made}.")
    check_dtype(values, what, model.dtype, "model")
    return values
