"""A GNN over the tables of a schema that computes only what the types that are read depend on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn
from torch_geometric.nn.module_dict import ModuleDict

EdgeType = tuple[str, str, str]


class MeanRound(nn.Module):
    r"""One round over some edge types, with second weights for what colored nodes send (Eq. 3).

    .. math:: W h_u + \sum_{\text{edge types } t} \Big( W_t \underset{s \in N_t(u)}{\text{mean}}\, h_s
        + \frac{1}{|N_t(u)|} \sum_{s \in N_t(u) \text{ colored}} C_t h_s + \log(1 + |N_t(u)|)\, d_t \Big)

    A colored node sends `(W_t + C_t) h`, so that `C_t = 0`, from which training starts, is the plain GNN. Only edge
    types that start from the type `root` have a `C_t`. A mean does not tell how many rows there are; `d_t` does.
    """

    def __init__(self, targets: Iterable[str], edge_types: Iterable[EdgeType], root: str | None, channels: int) -> None:
        super().__init__()
        self.own = nn.ModuleDict({kind: nn.Linear(channels, channels) for kind in targets})
        kinds = [kind for kind in edge_types if kind[2] in self.own]
        self.plain = ModuleDict({kind: nn.Linear(channels, channels, bias=False) for kind in kinds})
        self.colored = ModuleDict(
            {kind: nn.Linear(channels, channels, bias=False) for kind in kinds if kind[0] == root}
        )
        for weight in self.colored.parameters():
            nn.init.zeros_(weight)
        self.count = ModuleDict({kind: nn.Linear(1, channels, bias=False) for kind in kinds})

    def forward(
        self, h: Mapping[str, Tensor], edges: Mapping[EdgeType, Tensor], colored: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """From states `[rows, channels]` of each type to the next ones; `colored` `[rows]` bool, of the root type."""
        out = {kind: layer(h[kind]) for kind, layer in self.own.items()}
        for kind, weight in self.plain.items():
            source, target = edges[kind]
            size = out[kind[2]].size(0)
            count = torch.bincount(target, minlength=size).to(h[kind[0]].dtype).unsqueeze(1)
            degree = count.clamp(min=1)
            mean = _sum(h[kind[0]], source, target, size) / degree
            out[kind[2]] = out[kind[2]] + weight(mean) + self.count[kind](count.log1p())
            if kind in self.colored and kind[0] in colored:
                some = colored[kind[0]][source].nonzero().view(-1)
                sent = self.colored[kind](h[kind[0]][source[some]]) / degree[target[some]]
                out[kind[2]] = out[kind[2]].index_add(0, target[some], sent)
        return out


def _sum(h: Tensor, source: Tensor, target: Tensor, size: int) -> Tensor:
    return h.new_zeros(size, h.size(1)).index_add(0, target, h.index_select(0, source))


class SchemaGNN(nn.Module):
    r"""Rounds of message passing over all edge types that lead to the node types `read`, each with LayerNorm and ReLU.

    Round k has states of the types from which at most K - k steps lead to one that is read, and weights for these
    alone. With `root`, the type of the colored nodes, it runs on identity graphs.

    Args:
        in_channels: the number of features of each node type.
        edge_types: the edge types of the graph.
        read: the node types whose states are returned.
        hidden_channels: the width of all states.
        num_layers: the number of rounds, K.
        root: the type of the colored nodes; `None` for the plain GNN.
        dropout: share of the states that is set to 0 in training.

    Example:
        >>> ends = torch.tensor([[0, 1], [0, 0]])
        >>> edges = {("a", "to", "b"): ends, ("b", "back", "a"): ends.flip(0)}
        >>> model = SchemaGNN({"a": 2, "b": 3}, edges, ["b"], hidden_channels=4, num_layers=1)
        >>> {kind: list(h.shape) for kind, h in model({"a": torch.ones(2, 2), "b": torch.ones(1, 3)}, edges).items()}
        {'b': [1, 4]}
    """

    def __init__(
        self,
        in_channels: Mapping[str, int],
        edge_types: Iterable[EdgeType],
        read: Iterable[str],
        hidden_channels: int,
        num_layers: int,
        root: str | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        kinds, read = list(edge_types), list(read)
        steps = steps_to(kinds, read)
        self.dropout = nn.Dropout(dropout)
        self.first = nn.ModuleDict(
            {kind: nn.Linear(in_channels[kind], hidden_channels) for kind in steps if steps[kind] <= num_layers}
        )
        self.rounds, self.norms = nn.ModuleList(), nn.ModuleList()
        for left in reversed(range(num_layers)):  # rounds that come after this one
            needed = [kind for kind in steps if steps[kind] <= left]
            self.rounds.append(MeanRound(needed, kinds, root, hidden_channels))
            self.norms.append(nn.ModuleDict({kind: nn.LayerNorm(hidden_channels) for kind in needed}))

    def forward(
        self,
        x_dict: Mapping[str, Tensor],
        edge_index_dict: Mapping[EdgeType, Tensor],
        colored: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Tensor]:
        """The states of the types that are read, each `[nodes, hidden_channels]`."""
        h = {kind: layer(x_dict[kind]).relu() for kind, layer in self.first.items()}
        for one, norm in zip(self.rounds, self.norms, strict=True):
            out = one(h, edge_index_dict, colored or {})
            h = {kind: self.dropout(norm[kind](state).relu()) for kind, state in out.items()}
        return h


def steps_to(edge_types: Iterable[EdgeType], read: Iterable[str]) -> dict[str, int]:
    """The number of edges on the shortest way from each node type to one that is read; types without way are absent.

    Example:
        >>> steps_to([("a", "to", "b"), ("b", "to", "c")], ["c"])
        {'c': 0, 'b': 1, 'a': 2}
    """
    kinds = list(edge_types)
    steps, frontier, count = {kind: 0 for kind in read}, set(read), 0
    while frontier:
        count += 1
        frontier = {source for source, _, target in kinds if target in frontier and source not in steps}
        steps |= dict.fromkeys(sorted(frontier), count)
    return steps
