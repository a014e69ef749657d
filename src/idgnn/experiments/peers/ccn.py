"""CCN: covariant compositional networks (Kondor et al., 2018; Hy et al., 2018), of order 1 and 2.

The state of a node is a vector (1D) or a matrix (2D) of channels over its receptive field, the nodes within as many
steps as there were rounds; permuting the field permutes the state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, pad
from torch_geometric.data import Data

from idgnn.experiments.peers.k_gnn import adjacency_of
from idgnn.experiments.peers.packed import PackedBatch, PackedGraphs, Space
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.peers.stacked import StackedLinear

ROUNDS = 2
MOST = {1: 32, 2: 16}
"""The most nodes of a receptive field, by the order: memory grows with its square and its cube. A field that would have
more stops at the shell before."""

# What is kept of T[a, b, c] A[d, e]; the other indices are summed, alone or where they are equal. n: node, x: channel.
CONTRACTIONS = (
    "nabcx,nde->nabx", "nabcx,nde->nadx", "nabcx,nde->nbcx", "nabcx,nde->nbdx", "nabcx,nde->ndex",
    "nabcx,nce->nabx", "nabcx,ndd->nabx", "nabbx,nde->nadx", "nabcx,ndb->nadx", "nabcx,nae->nbcx",
    "nabax,nde->nbdx", "nabcx,nda->nbdx", "nabcx,ndc->nbdx", "naacx,nde->ndex", "nabbx,nde->ndex",
    "nabbx,ndb->nadx", "nabax,nda->nbdx", "naaax,nde->ndex",
)  # fmt: skip


def fields_of(adjacency: Tensor, most: int) -> list[Tensor]:
    """Bool `[nodes, nodes]` for rounds 0, 1, 2: whether a node (column) is in the receptive field of another (row).

    Example:
        >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=torch.bool)
        >>> [each.sum(1).tolist() for each in fields_of(path, 10)]
        [[1, 1, 1], [2, 3, 2], [3, 3, 3]]
    """
    step = adjacency.float().fill_diagonal_(1)
    ball = torch.eye(len(step), dtype=torch.bool)
    found = [ball]
    for _ in range(ROUNDS):
        ball = ball.float() @ step > 0
        small = ball.sum(1, keepdim=True) <= most
        found.append(torch.where(small, ball, found[-1]))
    return found


def ccn_spaces(graphs: Sequence[Data], order: int) -> list[dict[str, Space]]:
    """The nodes of each graph, with their fields after each round, padded to the largest of the dataset.

    `member l` points to the nodes of the field; `inside l` marks the real ones; `place l` `[nodes, a, b]` is the
    position of member b in the earlier field of member a, or behind its end if it is not in there; `adjacent l`, for
    2D, is the adjacency of the field with ones on the diagonal.
    """
    adjacencies = [adjacency_of(graph) for graph in graphs]
    fields = [fields_of(adjacency, MOST[order]) for adjacency in adjacencies]
    widths = [max(int(each[level].sum(1).max()) for each in fields) for level in range(ROUNDS + 1)]
    spaces = []
    for graph, adjacency, levels in zip(graphs, adjacencies, fields, strict=True):
        values, points = {"x": graph["x"].float()}, {}
        for level in range(1, ROUNDS + 1):
            width, before = widths[level], levels[level - 1]
            member = pad(levels[level].float().sort(dim=1, descending=True, stable=True).indices, (0, width))[:, :width]
            inside = torch.arange(width) < levels[level].sum(1, keepdim=True)
            member = torch.where(inside, member, 0)
            position = torch.where(before, before.cumsum(1) - 1, widths[level - 1])  # [nodes, nodes]
            a, b = member.unsqueeze(2), member.unsqueeze(1)  # [nodes, width, 1] and [nodes, 1, width]
            both = inside.unsqueeze(2) & inside.unsqueeze(1)
            place = torch.where(both, position[a, b], widths[level - 1])
            values |= {f"inside {level}": inside, f"place {level}": place.to(torch.int16)}
            if order == 2:
                loops = adjacency.clone().fill_diagonal_(True)
                values[f"adjacent {level}"] = loops[a, b] & both
            points[f"member {level}"] = ("nodes", member)
        spaces.append({"nodes": Space(len(adjacency), values, points)})
    return spaces


def promoted(state: Tensor, batch: PackedBatch, level: int, order: int) -> Tensor:
    """T: the earlier states of all members a of a field, in its own order: `[nodes, a, b, x]` or `[nodes, a, b, c, x]`.

    `state` is `[nodes, field, x]` or `[nodes, field, field, x]`; what is outside of the earlier field of a is 0.
    """
    nodes = batch["nodes"]
    channels, width = state.size(-1), state.size(1) + 1
    padded = pad(state, (0, 0, *(0, 1) * order)).reshape(-1, channels)  # a row of zeros behind the end
    member, place = nodes.points[f"member {level}"], nodes.values[f"place {level}"].long()
    index = member.unsqueeze(-1) * width + place  # [nodes, a, b]
    if order == 2:
        index = index.unsqueeze(3) * width + place.unsqueeze(2)  # [nodes, a, b, c]
    inside = nodes.values[f"inside {level}"].unflatten(1, (-1, *[1] * (order + 1)))
    return padded.index_select(0, index.flatten()).view(*index.shape, channels) * inside


def contract_1d(t: Tensor, size: Tensor) -> Tensor:
    """Row sums, column sums, diagonal, trace and total of T `[nodes, a, b, x]`, over the size of the field: `[nodes, a,
    5 x]`."""
    row, column, diagonal = t.sum(2), t.sum(1), t.diagonal(dim1=1, dim2=2).transpose(1, 2)
    trace, total = (each.sum(1, keepdim=True).expand_as(row) for each in (diagonal, row))
    return torch.cat([row, column, diagonal, trace, total], dim=-1) / size.view(-1, 1, 1)


def contract_2d(t: Tensor, adjacency: Tensor, size: Tensor) -> Tensor:
    """The 18 contractions of T and A, each divided by the size of the field for every index that is summed: `[nodes, p,
    p, 18 x]`."""
    over_c, over_a, found = t.sum(3), t.sum(1), []
    for each in CONTRACTIONS:
        summed = len(set(each.split("->")[0]) - set(each.split("->")[1]) - {","})
        # T is large: where c or a is summed alone, the sum is shared.
        operand = t
        if each.startswith("nabcx") and each.count("c") == 1:
            each, operand = each.replace("nabcx", "nabx"), over_c
        elif each.startswith("nabcx") and each.count("a") == 1:
            each, operand = each.replace("nabcx", "nbcx"), over_a
        found.append(torch.einsum(each, operand, adjacency) / size.view(-1, 1, 1, 1) ** summed)
    return torch.cat(found, dim=-1)


class CCN1D(nn.Module):
    """A linear layer, then two rounds of contractions and an MLP of two layers, sigmoid after each; the sums of the
    states of all rounds are read by a linear layer."""

    def __init__(self, copies: int, channels: int, width: int, num_classes: int) -> None:
        super().__init__()
        self.first = StackedLinear(copies, channels, width)
        sizes = (5 * width, width)
        self.rounds = nn.ModuleList(
            nn.Sequential(*(layer for size in sizes for layer in (StackedLinear(copies, size, width), nn.Sigmoid())))
            for _ in range(ROUNDS)
        )
        self.head = StackedLinear(copies, (ROUNDS + 1) * width, num_classes)

    def forward(self, batch: PackedBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        nodes = batch["nodes"]
        h = self.first(nodes.stacked(nodes.values["x"])).sigmoid()
        state, found = h.flatten(0, 1).unsqueeze(1), [h]  # a field of one node
        for level, layers in enumerate(self.rounds, start=1):
            inside = nodes.values[f"inside {level}"].unsqueeze(-1)
            sums = contract_1d(promoted(state, batch, level, 1), inside.sum(1).clamp(min=1))
            state = layers(nodes.stacked(sums).flatten(1, 2)).reshape(*sums.shape[:2], -1) * inside
            found.append(nodes.stacked(state.sum(1)))
        return self.head(batch.pool("nodes", torch.cat(found, dim=-1)))


class CCN2D(nn.Module):
    """A linear layer, then two rounds of 18 contractions, a linear layer and LeakyReLU; the last states, summed, are
    read by a linear layer."""

    def __init__(self, copies: int, channels: int, width: int, num_classes: int) -> None:
        super().__init__()
        self.first = StackedLinear(copies, channels, width)
        self.rounds = nn.ModuleList(StackedLinear(copies, len(CONTRACTIONS) * width, width) for _ in range(ROUNDS))
        self.head = StackedLinear(copies, width, num_classes)

    def forward(self, batch: PackedBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        nodes = batch["nodes"]
        h = leaky_relu(self.first(nodes.stacked(nodes.values["x"])))
        state = h.flatten(0, 1)[:, None, None]  # a field of one node
        for level, layer in enumerate(self.rounds, start=1):
            inside = nodes.values[f"inside {level}"]
            adjacency = nodes.values[f"adjacent {level}"].to(state.dtype)
            sums = contract_2d(promoted(state, batch, level, 2), adjacency, inside.sum(1).clamp(min=1))
            state = leaky_relu(layer(nodes.stacked(sums).flatten(1, 3))).reshape(*sums.shape[:3], -1)
            state = state * (inside.unsqueeze(2) & inside.unsqueeze(1)).unsqueeze(-1)
        return self.head(batch.pool("nodes", nodes.stacked(leaky_relu(state.sum((1, 2))))))


def build_ccn(settings: PeerSettings, graphs: Sequence[Data], num_classes: int) -> Peer:
    """CCN 1D or 2D for a dataset."""
    network, order = (CCN1D, 1) if settings.network == "ccn-1d" else (CCN2D, 2)
    spaces, channels = ccn_spaces(graphs, order), graphs[0]["x"].size(1)
    return Peer(
        lambda copies: network(copies, channels, settings.width, num_classes),
        lambda device: PackedGraphs(spaces, device),
    )
