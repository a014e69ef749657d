"""A ready encoder for heterogeneous graphs: plain GNN, ID-GNN-Fast and ID-GNN-Full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn.module_dict import ModuleDict

from idgnn.choices import CycleScale, Identity
from idgnn.identity.checks import check_num_layers, check_whole
from idgnn.identity.cycle_features import check_scale
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.time import alive, check_alive, check_times, snapshot, snapshots
from idgnn.identity.hetero.types import Schema, TypedGraph
from idgnn.layers.eager import eager
from idgnn.models.hetero.index import HeteroIndex, HeteroPrepared, Start
from idgnn.models.hetero.layer import HeteroLayer
from idgnn.models.saving import Saved
from idgnn.models.settings import check_dropout

HeteroAggregation = Literal["mean", "sum"]
EdgeTypeSum = Literal["sum", "attention"]


class HeteroIDGNN(Saved, nn.Module):
    r"""An encoder of heterogeneous graphs: a linear layer for each node type, `num_layers` rounds of
    :class:`idgnn.models.hetero.layer.HeteroLayer`, and a last linear layer.

    A node type without features starts from a vector that is learned, the same for all of its nodes; one that is in
    `num_embeddings` has a learned vector for each node besides, which new nodes do not have.

    Args:
        metadata: The node types and edge types: `data.metadata()`.
        in_channels: The number of features of each node type; `None`, or left out: it has none.
        hidden_channels: Width of the network.
        out_channels: Width of the embeddings; `None` leaves the last linear layer out.
        num_layers: Rounds of message passing. A color has to arrive: `num_layers` is at least the number of message
            steps in the schema from the colored type to the type that is read.
        identity: `"full"`: heterogeneous message passing (Algorithm 1). `"fast"`: closed-walk counts, over all edge
            types, as features of all nodes. `"none"`: the plain GNN.
        root: The node type that is colored: the edge types that start from it have second weights. `None`: all have.
        aggr: How messages of one edge type are aggregated, `"mean"` or `"sum"`.
        combine: How edge types are, by `"sum"` or `"attention"`.
        residual: Whether a round adds to the states before it.
        dropout: The share of states that is set to zero in training.
        num_embeddings: The number of nodes of the types that have a learned vector for each node.
        cycle_length: How many counts `"fast"` adds to the features.
        cycle_scale: Their scale.

    Example:
        >>> data = HeteroData()
        >>> data["user"].num_nodes, data["item"].x = 2, torch.randn(3, 4)
        >>> edges = torch.tensor([[0, 0, 1], [0, 1, 2]])
        >>> data["user", "buys", "item"].edge_index, data["item", "of", "user"].edge_index = edges, edges.flip(0)
        >>> model = HeteroIDGNN.for_data(data, hidden_channels=8, out_channels=5, num_layers=3, root="user")
        >>> model(data, queries="user").shape  # users under their own colors
        torch.Size([2, 5])
        >>> model(data, queries=(("item", [0, 1]), ("user", [0, 0]))).shape  # items when a user is colored
        torch.Size([2, 5])
    """

    def __init__(
        self,
        metadata: tuple[Sequence[str], Sequence[Sequence[str]]],
        in_channels: Mapping[str, int | None],
        hidden_channels: int,
        out_channels: int | None,
        num_layers: int = 4,
        identity: Identity = "full",
        *,
        root: str | None = None,
        aggr: HeteroAggregation = "mean",
        combine: EdgeTypeSum = "sum",
        residual: bool = True,
        dropout: float = 0.0,
        num_embeddings: Mapping[str, int] | None = None,
        cycle_length: int = 8,
        cycle_scale: CycleScale = "log",
    ) -> None:
        super().__init__()
        node_types, edge_types = list(metadata[0]), [(str(a), str(b), str(c)) for a, b, c in metadata[1]]
        self.schema = Schema(tuple(node_types), tuple(edge_types))
        self.in_channels = {kind: width for kind, width in in_channels.items() if width}
        self.num_embeddings = dict(num_embeddings or {})
        self.settings = {
            "metadata": [node_types, [list(kind) for kind in edge_types]],
            "in_channels": self.in_channels,
            "hidden_channels": hidden_channels,
            "out_channels": out_channels,
            "num_layers": num_layers,
            "identity": identity,
            "root": root,
            "aggr": aggr,
            "combine": combine,
            "residual": residual,
            "dropout": dropout,
            "num_embeddings": self.num_embeddings,
            "cycle_length": cycle_length,
            "cycle_scale": cycle_scale,
        }
        for name, value, choices in (
            ("identity", identity, get_args(Identity)),
            ("aggr", aggr, get_args(HeteroAggregation)),
            ("combine", combine, get_args(EdgeTypeSum)),
        ):
            if value not in choices:
                raise ValueError(f"{name} is {value!r}, expected one of {', '.join(map(repr, choices))}.")
        check_num_layers(num_layers)
        check_dropout(dropout)
        check_scale(cycle_scale)
        if cycle_scale == "standardized":
            raise ValueError("cycle_scale is 'standardized', expected 'log', 'counts' or 'walk' here.")
        check_whole(hidden_channels, "hidden_channels", "the width of the network")
        check_whole(cycle_length, "cycle_length", "how many counts are added to the features")
        for kind in (*in_channels, *self.num_embeddings, *([] if root is None else [root])):
            self.schema.check_type(kind, "the options")
        self.num_layers, self.identity, self.root, self.aggr = num_layers, identity, root, aggr
        self.attention = combine == "attention"
        self.hidden_channels, self.out_channels = hidden_channels, out_channels
        self.cycle_length: int = cycle_length
        self.cycle_scale: CycleScale = cycle_scale

        added = cycle_length if identity == "fast" else 0
        widths = {kind: self.in_channels.get(kind, 0) + added for kind in node_types}
        self.lin_in = ModuleDict({kind: nn.Linear(width, hidden_channels) for kind, width in widths.items() if width})
        self.constant = nn.Parameter(torch.empty(len(node_types), hidden_channels))
        self.embedding = ModuleDict(
            {kind: nn.Embedding(size, hidden_channels) for kind, size in self.num_embeddings.items()}
        )
        second = tuple(e for e, kind in enumerate(edge_types) if root is None or kind[0] == root)
        self.layers = nn.ModuleList(
            HeteroLayer(
                hidden_channels,
                len(node_types),
                len(edge_types),
                second if identity == "full" else (),
                self.attention,
                residual,
                dropout,
            )
            for _ in range(num_layers)
        )
        self.lin_out = nn.Identity() if out_channels is None else nn.Linear(hidden_channels, out_channels)
        nn.init.normal_(self.constant, std=0.1)
        for weight in self.embedding.parameters():
            nn.init.normal_(weight, std=0.1)

    @classmethod
    def for_data(
        cls,
        data: HeteroData,
        hidden_channels: int,
        out_channels: int | None,
        num_layers: int = 4,
        identity: Identity = "full",
        *,
        root: str | None = None,
        aggr: HeteroAggregation = "mean",
        combine: EdgeTypeSum = "sum",
        residual: bool = True,
        dropout: float = 0.0,
        num_embeddings: Mapping[str, int] | None = None,
        cycle_length: int = 8,
        cycle_scale: CycleScale = "log",
    ) -> Self:
        """A network for the types and features of a graph."""
        widths = {kind: data[kind].x.size(-1) for kind in data.node_types if isinstance(data[kind].get("x"), Tensor)}
        return cls(
            data.metadata(),
            widths,
            hidden_channels,
            out_channels,
            num_layers,
            identity,
            root=root,
            aggr=aggr,
            combine=combine,
            residual=residual,
            dropout=dropout,
            num_embeddings=num_embeddings,
            cycle_length=cycle_length,
            cycle_scale=cycle_scale,
        )

    @property
    def rounds(self) -> list[HeteroLayer]:
        """The layers, one for each round."""
        return [layer for layer in self.layers if isinstance(layer, HeteroLayer)]

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self.constant.dtype

    @property
    def embedding_channels(self) -> int:
        """Width of what is returned for a node."""
        return self.hidden_channels if self.out_channels is None else self.out_channels

    @property
    def pair_channels(self) -> int:
        """Width of what is returned for a pair: one conditional embedding, or two node embeddings side by side."""
        return self.embedding_channels * (1 if self.identity == "full" else 2)

    def check_types(self, typed: TypedGraph) -> None:
        """Refuses a graph of other types, or with more nodes than there are learned vectors."""
        if typed.schema != self.schema:
            raise ValueError(
                f"the graph has the node types {list(typed.schema.node_types)} and the edge types "
                f"{list(typed.schema.edge_types)}, but the network was made for {list(self.schema.node_types)} and "
                f"{list(self.schema.edge_types)}, in this order."
            )
        for kind, size in self.num_embeddings.items():
            if typed.size[kind] > size:
                raise ValueError(
                    f"the graph has {typed.size[kind]} nodes of {kind!r}, but the network has a learned vector for "
                    f"{size} of them: num_embeddings={{{kind!r}: {size}}}."
                )

    def forward(
        self,
        data: HeteroData | HeteroIndex,
        queries: TypedQuerySpec | TypedQueries,
        *,
        query_time: Tensor | float | None = None,
        time_attr: str = "time",
        strict: bool = False,
    ) -> Tensor:
        r"""Embeds nodes, or nodes under the colors of others.

        Args:
            data: The graph, or what :meth:`index` made of it, which saves time if it is used again.
            queries: A node type, some of its nodes `("driver", ids)`, or pairs `(("circuit", r), ("driver", v))` of
                nodes that are read and colored.
            query_time: The time of each query, which then sees what was there by that time: see
                :func:`idgnn.snapshot`. The queries of each different time are run by themselves.
            time_attr: The attribute that holds the times of nodes and edges.
            strict: Whether a query sees only what was there before its time.

        Returns:
            `[num_queries, out_channels]`; for pairs `[num_queries, pair_channels]`.
        """
        if query_time is None:
            return self.run(self.prepare(data, queries))
        if isinstance(data, HeteroIndex):
            raise ValueError("query_time needs the graph itself, a HeteroData. Or index its snapshots.")
        return self._by_time(data, queries, query_time, time_attr, strict)

    def index(self, data: HeteroData) -> HeteroIndex:
        """Works out what a graph needs once, to be given in its place to :meth:`forward`, :meth:`prepare`, `embed`."""
        return HeteroIndex(self, data)

    @eager
    def prepare(self, data: HeteroData | HeteroIndex, queries: TypedQuerySpec | TypedQueries) -> HeteroPrepared:
        """Works out which rows to compute: all that depends on values, to be run by :meth:`run`."""
        index = data if isinstance(data, HeteroIndex) else HeteroIndex(self, data)
        return index.prepare(queries)

    def run(self, ready: HeteroPrepared) -> Tensor:
        """Embeds what :meth:`prepare` made ready."""
        h = self.start(ready.starts)
        for layer, round_ in zip(self.layers, ready.schedule.rounds, strict=True):
            h = layer(h, round_, ready.weight)
        h = self.lin_out(h).index_select(0, ready.schedule.answer)
        if ready.read is None:
            return h
        node = h.index_select(0, ready.read.node)
        return node if ready.read.own else torch.cat([node, h.index_select(0, ready.read.color)], dim=-1)

    def start(self, starts: tuple[Start, ...]) -> Tensor:
        """The states before the first round."""
        parts = []
        for start in starts:
            number = self.schema.node_types.index(start.kind)
            h = self.constant[number].expand(start.ids.numel(), -1)
            if start.x is not None:
                h = h + self.lin_in[start.kind](start.x)
            if start.kind in self.embedding:
                h = h + self.embedding[start.kind](start.ids)
            parts.append(h)
        return torch.cat(parts) if parts else self.constant[:0]

    def embed(
        self,
        data: HeteroData | HeteroIndex,
        queries: TypedQuerySpec | TypedQueries,
        *,
        memory: float | str | None = None,
        progress: bool = False,
    ) -> Tensor:
        """The answers to any number of queries, in evaluation mode and without gradients, on the CPU.

        States without a color are computed once for all nodes and kept; those with one are computed for as many queries
        at a time as the memory allows: bytes, or a size such as `"4GiB"`; `None` is half of what is free.
        """
        from idgnn.models.hetero.embedding import embed  # which needs to know what this is

        return embed(
            self, data if isinstance(data, HeteroIndex) else HeteroIndex(self, data), queries, memory, progress
        )

    def _by_time(self, data: HeteroData, queries: Any, query_time: Any, time_attr: str, strict: bool) -> Tensor:
        typed = TypedGraph.of_data(data)
        asked = as_typed_queries(queries, typed.schema, typed.size, typed.edge_index.device)
        times = check_times(query_time, asked.node.numel(), asked.node.device)
        parts, places = [], []
        for time, chosen in snapshots(times):
            mine = asked.take(chosen)
            check_alive(mine, alive(data, time, time_attr, strict), time, strict)
            past = snapshot(data, time, time_attr=time_attr, strict=strict)
            parts.append(self.run(self.prepare(past, mine)))
            places.append(chosen)
        out = torch.cat(parts)
        return torch.empty_like(out).index_copy(0, torch.cat(places), out)
