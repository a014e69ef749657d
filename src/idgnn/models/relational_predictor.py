"""From a snapshot of a graph to predictions about entities, or to the scores of all items for them."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from idgnn.choices import Identity
from idgnn.identity.cone import UnreachedColorWarning
from idgnn.identity.cycle_counts import cycle_counts
from idgnn.identity.hetero_graph import HeteroIdentityGraph
from idgnn.identity.identity_graph import identity_graph
from idgnn.identity.walk_counts import walk_counts
from idgnn.models.schema_gnn import EdgeType, SchemaGNN

_LAG_CHANNELS = 2


class Moment:
    """A snapshot of a graph with what depends on it alone: walk counts and identity graphs, each made once."""

    def __init__(self, data: HeteroData) -> None:
        self.data = data
        self._made: dict[Hashable, Any] = {}

    def closed_walks(self, kind: str, length: int) -> Tensor:
        """log(1 + number of closed walks) of length 1 to `length` at the nodes of a type, `[nodes, length]`."""
        if ("closed", kind) not in self._made:
            self._made["closed", kind] = cycle_counts(self.data, kind, length).log1p().float()
        return self._made["closed", kind]

    def walks(self, items: str, entities: tuple[str, Tensor], length: int) -> Tensor:
        """log(1 + number of walks) of length 1 to `length`, `[entities, items, length]`."""
        key = "walks", tuple(entities[1].tolist())
        if key not in self._made:
            pairs = _all_pairs(items, self.data, entities)
            counts = walk_counts(self.data, None, pairs, length).log1p().float()
            self._made[key] = counts.view(entities[1].numel(), -1, length)
        return self._made[key]

    def colored_entities(self, kind: str, num_layers: int) -> tuple[HeteroIdentityGraph, Tensor]:
        """The identity graph of all nodes of a type that have edges, and the row that answers for each node."""
        key = "colored", num_layers
        if key not in self._made:
            ends = [self.data[edges].edge_index[0] for edges in self.data.edge_types if edges[0] == kind]
            roots = torch.cat(ends).unique()
            graph = identity_graph(self.data, num_layers, (kind, roots))
            row = torch.arange(int(self.data[kind].num_nodes), device=roots.device)  # the plain rows come first
            row[roots] = graph.query_row
            self._made[key] = graph, row
        return self._made[key]

    def colored_pairs(self, items: str, entities: tuple[str, Tensor], num_layers: int) -> HeteroIdentityGraph:
        """The identity graph of all pairs of an item that is read and an entity that is colored.

        Items that the color does not reach are read from their plain rows.
        """
        key = "pairs", num_layers, tuple(entities[1].tolist())
        if key not in self._made:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnreachedColorWarning)
                self._made[key] = identity_graph(self.data, num_layers, _all_pairs(items, self.data, entities))
        return self._made[key]


class RelationalPredictor(nn.Module):
    """A :class:`~idgnn.models.schema_gnn.SchemaGNN` and a head, for entities or for items ranked for entities.

    - Entities: the state of the entity, colored if `identity` is `"full"`, and the years that the query is later.
    - Items, `"full"`: the state of each item when the entity is colored. `"none"` has two towers, the product of the
      plain states of both; `"fast"` adds a function of the numbers of walks between them.

    Example:
        >>> data = HeteroData()
        >>> data["user"].x, data["item"].x = torch.ones(3, 1), torch.ones(2, 1)
        >>> data["user", "buys", "item"].edge_index = torch.tensor([[0, 1], [0, 1]])
        >>> data["item", "rev_buys", "user"].edge_index = torch.tensor([[0, 1], [0, 1]])
        >>> channels = {"user": 1, "item": 1}
        >>> model = RelationalPredictor(channels, data.edge_types, entity_type="user", item_type="item", num_layers=3)
        >>> model(Moment(data), torch.tensor([0, 2, 0]), torch.zeros(3)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        in_channels: Mapping[str, int],
        edge_types: Iterable[EdgeType],
        *,
        entity_type: str,
        item_type: str | None = None,
        identity: Identity = "full",
        num_layers: int = 2,
        hidden_channels: int = 64,
        dropout: float = 0.0,
        walk_length: int = 4,
    ) -> None:
        super().__init__()
        self.entity_type, self.item_type, self.identity, self.num_layers = entity_type, item_type, identity, num_layers
        self.walk_length = walk_length
        channels = dict(in_channels)
        if identity == "fast" and item_type is None:
            channels[entity_type] += walk_length
        read = [entity_type] if item_type is None else [item_type]
        if item_type is not None and identity != "full":
            read.append(entity_type)
        root = entity_type if identity == "full" else None
        self.gnn = SchemaGNN(channels, edge_types, read, hidden_channels, num_layers, root, dropout)
        inputs = hidden_channels + _LAG_CHANNELS * (item_type is None)
        if item_type is None or identity == "full":
            self.head = _mlp(inputs, hidden_channels, dropout)
        else:
            self.towers = nn.ModuleList([nn.Linear(hidden_channels, hidden_channels) for _ in range(2)])
            self.bias = nn.Linear(hidden_channels, 1)
            self.walk_head = _mlp(walk_length, hidden_channels, dropout) if identity == "fast" else None

    def forward(self, moment: Moment, entity: Tensor, lag: Tensor) -> Tensor:
        """Outputs `[queries, 1]`, or scores of all items `[queries, items]`, for entities `[queries]`."""
        if self.item_type is None:
            h = self.entity_states(moment).index_select(0, entity)
            lag = lag.unsqueeze(1)
            return self.head(torch.cat([h, lag / 5, torch.exp(-lag)], dim=1))
        entities, of = entity.unique(return_inverse=True)
        return self._scores(moment, entities)[of]

    def entity_states(self, moment: Moment) -> Tensor:
        """The states of all entities, `[entities, channels]`."""
        data = moment.data
        if self.identity == "full":
            graph, row = moment.colored_entities(self.entity_type, self.num_layers)
            return self._run(graph)[self.entity_type].index_select(0, row)
        x = data.x_dict
        if self.identity == "fast":
            counts = moment.closed_walks(self.entity_type, self.walk_length)
            x = {**x, self.entity_type: torch.cat([x[self.entity_type], counts], dim=1)}
        return self.gnn(x, data.edge_index_dict)[self.entity_type]

    def _scores(self, moment: Moment, entities: Tensor) -> Tensor:
        """The scores of all items for distinct entities, `[entities, items]`."""
        assert self.item_type is not None
        asked = self.entity_type, entities
        if self.identity == "full":
            graph = moment.colored_pairs(self.item_type, asked, self.num_layers)
            # Many items are out of reach of many entities, and share their plain row.
            rows, of = graph.query_row.unique(return_inverse=True)
            h = self._run(graph)[self.item_type].index_select(0, rows)
            return self.head(h).squeeze(1)[of].view(entities.numel(), -1)
        h = self.gnn(moment.data.x_dict, moment.data.edge_index_dict)
        items = h[self.item_type]
        one, other = self.towers[0](h[self.entity_type][entities]), self.towers[1](items)
        score = one @ other.t() / one.size(1) ** 0.5 + self.bias(items).t()
        if self.walk_head is not None:
            score = score + self.walk_head(moment.walks(self.item_type, asked, self.walk_length)).squeeze(-1)
        return score

    def _run(self, graph: HeteroIdentityGraph) -> dict[str, Tensor]:
        colored = {self.entity_type: graph[self.entity_type].colored}
        return self.gnn(graph.x_dict, graph.edge_index_dict, colored)


def _mlp(inputs: int, channels: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, channels), nn.ReLU(), nn.Dropout(dropout), nn.Linear(channels, 1))


def _all_pairs(items: str, data: HeteroData, entities: tuple[str, Tensor]) -> tuple[tuple[str, Tensor], ...]:
    """Every item with every entity, as queries; the items of an entity stand together."""
    kind, ids = entities
    count = int(data[items].num_nodes)
    every = torch.arange(count, device=ids.device)
    return (items, every.repeat(ids.numel())), (kind, ids.repeat_interleave(count))
