"""From a snapshot of a graph to predictions about entities, or to the scores of all items for them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData

from idgnn.choices import Color, Identity
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.identity.walk_counts import walk_counts
from idgnn.models.column_encoder import ColumnEncoder
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.hetero.idgnn import HeteroIDGNN
from idgnn.models.hetero.index import HeteroIndex, HeteroPrepared
from idgnn.models.saving import Saved

_LAG_CHANNELS = 2
_WALK_LENGTH = 4  # of the counts of ID-GNN-Fast

Pairs = tuple[tuple[str, Tensor], tuple[str, Tensor]]


class Moment:
    """A snapshot of a graph, and what was worked out for it last, for each purpose, for one network."""

    def __init__(self, data: HeteroData) -> None:
        self.data = data
        self._made: dict[str, tuple[Hashable, Any]] = {}

    def once(self, purpose: str, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` returned, unless the key is another than that of the last time."""
        if purpose not in self._made or self._made[purpose][0] != key:
            self._made[purpose] = key, make()
        return self._made[purpose][1]


class RelationalPredictor(Saved):
    """A :class:`idgnn.HeteroIDGNN` and a head, for entities or for items ranked for entities.

    - Entities: the state of the entity, colored if `identity` is `"full"`, and the years that the query is later.
    - Items, `"full"`: the state of each item when the entity is colored; items out of reach of the color are read from
      their plain rows. `"none"` has two towers, the product of the plain states of both; `"fast"` adds a function of
      the numbers of walks between them.

    `columns` are the codes of the columns of each table, as dictionaries, if the encoders of pytorch-frame read them
    (:class:`~idgnn.models.column_encoder.ColumnEncoder`).

    Example:
        >>> data = HeteroData()
        >>> data["user"].x, data["item"].x = torch.ones(3, 1), torch.ones(2, 1)
        >>> data["user", "buys", "item"].edge_index = torch.tensor([[0, 1], [0, 1]])
        >>> data["item", "rev_buys", "user"].edge_index = torch.tensor([[0, 1], [0, 1]])
        >>> channels = {"user": 1, "item": 1}
        >>> model = RelationalPredictor(data.metadata(), channels, entity_type="user", item_type="item", num_layers=3)
        >>> model(Moment(data), torch.tensor([0, 2, 0]), torch.zeros(3)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        metadata: Sequence[Any],
        in_channels: Mapping[str, int],
        *,
        entity_type: str,
        item_type: str | None = None,
        identity: Identity = "full",
        color: Color = HeteroConfig.color,
        num_layers: int = 2,
        hidden_channels: int = 64,
        out_channels: int = 1,
        dropout: float = 0.0,
        columns: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
    ) -> None:
        super().__init__()
        self.settings = {
            "metadata": [list(metadata[0]), [list(kind) for kind in metadata[1]]],
            "in_channels": dict(in_channels),
            "entity_type": entity_type,
            "item_type": item_type,
            "identity": identity,
            "color": color,
            "num_layers": num_layers,
            "hidden_channels": hidden_channels,
            "out_channels": out_channels,
            "dropout": dropout,
            "columns": None if columns is None else {kind: list(map(dict, codes)) for kind, codes in columns.items()},
        }
        self.entity_type, self.item_type, self.identity = entity_type, item_type, identity
        config = HeteroConfig(
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            identity=identity,
            color=color,
            root=entity_type,
            dropout=dropout,
            cycle_length=_WALK_LENGTH,
        )
        readable = {kind: codes for kind, codes in (columns or {}).items() if any(c["kind"] != "text" for c in codes)}
        encoders = {kind: ColumnEncoder(codes, hidden_channels) for kind, codes in readable.items()}
        self.encoder = HeteroIDGNN((metadata[0], metadata[1]), in_channels, config, encoders=encoders)
        if item_type is None:
            self.head = _mlp(hidden_channels + _LAG_CHANNELS, hidden_channels, dropout, out_channels)
        elif identity == "full":
            self.head = _mlp(hidden_channels, hidden_channels, dropout)
        else:
            self.towers = nn.ModuleList([nn.Linear(hidden_channels, hidden_channels) for _ in range(2)])
            self.bias = nn.Linear(hidden_channels, 1)
            self.walk_head = _mlp(_WALK_LENGTH, hidden_channels, dropout) if identity == "fast" else None

    def forward(self, moment: Moment, entity: Tensor, lag: Tensor) -> Tensor:
        """Outputs `[queries, out_channels]`, or scores of all items `[queries, items]`, for entities `[queries]`.

        `lag` `[queries]` is how many years after the snapshot each query is.
        """
        device = self.encoder.constant.device
        lag, (entities, of) = lag.to(device), entity.to(device).unique(return_inverse=True)
        if self.item_type is not None:
            return self._scores(moment, entities)[of]
        lag = lag.unsqueeze(1)
        return self.head(torch.cat([self.entity_states(moment, entities)[of], lag / 5, torch.exp(-lag)], dim=1))

    def entity_states(self, moment: Moment, entities: Tensor) -> Tensor:
        """The states of distinct entities, `[entities, channels]`."""
        queries = self.entity_type, entities
        key = tuple(entities.tolist())
        return self.encoder.run(moment.once("entities", key, lambda: self._index(moment).prepare(queries)))

    def _scores(self, moment: Moment, entities: Tensor) -> Tensor:
        """The scores of all items for distinct entities, `[entities, items]`; -inf of items that were not there yet."""
        pairs, key = self._all_pairs(moment.data, entities), tuple(entities.tolist())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedColorWarning)  # such items are read from their plain rows
            ready = moment.once("pairs", key, lambda: self._index(moment).prepare(pairs))
        assert self.item_type is not None
        score = self._pair_scores(moment, pairs, key, ready).view(entities.numel(), -1)
        known = moment.data[self.item_type].get("known")
        return score if known is None else score.masked_fill(~known, float("-inf"))

    def _pair_scores(self, moment: Moment, pairs: Pairs, key: Hashable, ready: HeteroPrepared) -> Tensor:
        """The scores of pairs of an item and an entity, `[pairs]`."""
        h = self.encoder.run(ready)  # [pairs, channels], or [pairs, 2 channels]: of the item and of the entity
        if self.identity == "full":
            return self.head(h).squeeze(1)
        item, entity = h.chunk(2, dim=1)
        score = (self.towers[0](item) * self.towers[1](entity)).sum(1) / item.size(1) ** 0.5
        score = score + self.bias(item).squeeze(1)
        if self.walk_head is not None:
            counts = moment.once("walks", key, lambda: walk_counts(moment.data, None, pairs, _WALK_LENGTH))
            score = score + self.walk_head(counts.log1p().to(h.dtype)).squeeze(1)
        return score

    def _index(self, moment: Moment) -> HeteroIndex:
        """Neighbor lists, weights and counts of a snapshot, which all queries share."""
        return moment.once("index", None, lambda: self.encoder.index(moment.data))

    def _all_pairs(self, data: HeteroData, entities: Tensor) -> Pairs:
        """Every item with every entity, as queries; the items of an entity stand together."""
        assert self.item_type is not None
        every = torch.arange(int(data[self.item_type].num_nodes), device=entities.device)
        items, roots = every.repeat(entities.numel()), entities.repeat_interleave(every.numel())
        return (self.item_type, items), (self.entity_type, roots)


def _mlp(inputs: int, channels: int, dropout: float, outputs: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, channels), nn.ReLU(), nn.Dropout(dropout), nn.Linear(channels, outputs))
