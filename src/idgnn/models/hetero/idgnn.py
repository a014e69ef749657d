"""A ready encoder for heterogeneous graphs: plain GNN, ID-GNN-Fast and ID-GNN-Full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn.module_dict import ModuleDict

from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec, as_typed_queries
from idgnn.identity.hetero.time import alive, check_alive, check_times, snapshot, snapshots
from idgnn.identity.hetero.types import EdgeType, Schema, TypedGraph
from idgnn.layers.eager import eager
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.hetero.index import HeteroIndex, HeteroPrepared, Start
from idgnn.models.hetero.layer import FusedLayer
from idgnn.models.hetero.operator_layer import OperatorLayer
from idgnn.models.saving import Saved


class HeteroIDGNN(Saved, nn.Module):
    r"""An encoder of heterogeneous graphs: a linear layer for each node type, `num_layers` rounds, and a last linear
    layer. A round is a :class:`~idgnn.models.hetero.layer.FusedLayer` where messages are linear and edge types summed,
    else an :class:`~idgnn.models.hetero.operator_layer.OperatorLayer`.

    A node type without features starts from a vector that is learned, the same for all of its nodes; one that is in
    `num_embeddings` has a learned vector for each node besides, which new nodes do not have.

    Args:
        metadata: The node types and edge types: `data.metadata()`.
        in_channels: The number of features of each node type; `None`, or left out: it has none.
        config: All other options.
        edge_channels: The number of edge features of the edge types that have some, for `conv="gine"`.
        encoders: For some node types a module that maps their columns, `data[kind].tf`, such as a `TensorFrame` of
            pytorch-frame, to `[rows, hidden_channels]`, which is added to what the linear layer gives. Any object will
            do of which `tf[ids]` are some rows. A network with encoders cannot be saved by itself.

    Example:
        >>> data = HeteroData()
        >>> data["user"].num_nodes, data["item"].x = 2, torch.randn(3, 4)
        >>> edges = torch.tensor([[0, 0, 1], [0, 1, 2]])
        >>> data["user", "buys", "item"].edge_index, data["item", "of", "user"].edge_index = edges, edges.flip(0)
        >>> config = HeteroConfig(hidden_channels=8, out_channels=5, num_layers=3, root="user")
        >>> model = HeteroIDGNN.for_data(data, config)
        >>> model(data, queries="user").shape  # users under their own colors
        torch.Size([2, 5])
        >>> model(data, queries=(("item", [0, 1]), ("user", [0, 0]))).shape  # items when a user is colored
        torch.Size([2, 5])
    """

    def __init__(
        self,
        metadata: tuple[Sequence[str], Sequence[Sequence[str]]],
        in_channels: Mapping[str, int | None],
        config: HeteroConfig,
        edge_channels: Mapping[EdgeType, int] | None = None,
        encoders: Mapping[str, nn.Module] | None = None,
    ) -> None:
        super().__init__()
        node_types, edge_types = list(metadata[0]), [(str(a), str(b), str(c)) for a, b, c in metadata[1]]
        self.schema, self.config = Schema(tuple(node_types), tuple(edge_types)), config
        self.in_channels = {kind: width for kind, width in in_channels.items() if width}
        self.edge_channels = dict(edge_channels or {}) if config.conv == "gine" else {}
        self.encoders = ModuleDict({kind: encoder for kind, encoder in (encoders or {}).items()})
        for kind in (
            *in_channels,
            *(encoders or {}),
            *config.num_embeddings,
            *([] if config.root is None else [config.root]),
        ):
            self.schema.check_type(kind, "the options")
        if strange := [kind for kind in self.edge_channels if kind not in edge_types]:
            raise ValueError(f"edge_channels names {strange[0]}, which is none of the edge types {edge_types}.")
        if config.conv == "gine" and not self.edge_channels:
            raise ValueError("conv is 'gine', but no edge type has edge features. Use conv='gin', or set edge_attr.")
        self.num_layers, self.identity = config.num_layers, config.identity

        width, full = config.hidden_channels, config.identity == "full"
        added = config.cycle_length if config.identity == "fast" else 0
        widths = {kind: self.in_channels.get(kind, 0) + added for kind in node_types}
        self.lin_in = ModuleDict({kind: nn.Linear(size, width) for kind, size in widths.items() if size})
        self.constant = nn.Parameter(torch.empty(len(node_types), width))
        self.embedding = ModuleDict({kind: nn.Embedding(size, width) for kind, size in config.num_embeddings.items()})
        second = tuple(e for e, kind in enumerate(edge_types) if full and config.root in (None, kind[0]))
        roots = tuple(n for n, kind in enumerate(node_types) if full and config.root in (None, kind))

        def layer() -> FusedLayer | OperatorLayer:
            if config.fused:
                return FusedLayer(config, len(node_types), len(edge_types), second, roots)
            return OperatorLayer(config, node_types, edge_types, second, roots, self.edge_channels)

        self.layers = nn.ModuleList(layer() for _ in range(config.num_layers))
        self.lin_out = nn.Identity() if config.out_channels is None else nn.Linear(width, config.out_channels)
        nn.init.normal_(self.constant, std=0.1)
        for weight in self.embedding.parameters():
            nn.init.normal_(weight, std=0.1)

    @classmethod
    def for_data(cls, data: HeteroData, config: HeteroConfig, encoders: Mapping[str, nn.Module] | None = None) -> Self:
        """A network for the types and features of a graph."""
        widths = {kind: data[kind].x.size(-1) for kind in data.node_types if isinstance(data[kind].get("x"), Tensor)}
        edges = {
            kind: data[kind].edge_attr.size(-1)
            for kind in data.edge_types
            if isinstance(data[kind].get("edge_attr"), Tensor) and data[kind].edge_attr.dim() == 2
        }
        return cls(data.metadata(), widths, config, edges, encoders)

    @property
    def settings(self) -> dict[str, Any]:
        """What it was made with, as it is saved."""
        return {
            "metadata": [list(self.schema.node_types), [list(kind) for kind in self.schema.edge_types]],
            "in_channels": self.in_channels,
            "config": self.config.as_dict(),
            "edge_channels": [[list(kind), width] for kind, width in self.edge_channels.items()],
            **({"encoders": self.encoders} if len(self.encoders) else {}),
        }

    @classmethod
    def _made(cls, folder: Any, settings: dict[str, Any]) -> Self:
        edges = {tuple(kind): width for kind, width in settings.get("edge_channels", [])}
        try:
            config = HeteroConfig(**settings["config"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"{folder} does not fit this version of {cls.__name__}: {error!r}.") from None
        return super()._made(folder, settings | {"config": config, "edge_channels": edges})

    @property
    def sums(self) -> bool:
        """Whether rows may exchange messages: all operators sum them."""
        first = self.layers[0]
        return isinstance(first, FusedLayer) or all(each.sums for each in cast(OperatorLayer, first).operators)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self.constant.dtype

    @property
    def embedding_channels(self) -> int:
        """Width of what is returned for a node."""
        return self.config.hidden_channels if self.config.out_channels is None else self.config.out_channels

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
        for kind, size in self.config.num_embeddings.items():
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
            h = layer(h, round_, ready.edges)
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
            if start.frame is not None:
                h = h + self.encoders[start.kind](start.frame)
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
        parsed = as_typed_queries(queries, typed.schema, typed.size, typed.edge_index.device)
        times = check_times(query_time, parsed.node.numel(), parsed.node.device)
        parts, places = [], []
        for time, chosen in snapshots(times):
            mine = parsed.take(chosen)
            check_alive(mine, alive(data, time, time_attr, strict), time, strict)
            past = snapshot(data, time, time_attr=time_attr, strict=strict)
            parts.append(self.run(self.prepare(past, mine)))
            places.append(chosen)
        out = torch.cat(parts)
        return torch.empty_like(out).index_copy(0, torch.cat(places), out)
