"""1-2-3-GNN (Morris et al., AAAI 2019): message passing between nodes, pairs of nodes, and connected sets of three.

The states of the nodes are the features of both kinds of sets, beside the kind of graph that a set induces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, elu, one_hot
from torch_geometric.data import Data

from idgnn.experiments.peers.packed import PackedBatch, PackedGraphs, Space
from idgnn.experiments.peers.peer import Peer
from idgnn.experiments.peers.settings import PeerSettings
from idgnn.experiments.peers.stacked import StackedLinear

SET_LAYERS = 2


def adjacency_of(graph: Data) -> Tensor:
    """Bool `[nodes, nodes]`, symmetric, without self-loops."""
    size = int(graph.num_nodes or 0)
    adjacency = torch.zeros(size, size, dtype=torch.bool)
    adjacency[graph["edge_index"][0], graph["edge_index"][1]] = True
    return (adjacency | adjacency.t()).fill_diagonal_(False)


def pair_sets(adjacency: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs u < v `[pairs, 2]`, and for each the pairs in which an adjacent node takes the place of one member
    `[2, links]`: from {u, w} to {u, v} if v and w are adjacent.

    Example:
        >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=torch.bool)
        >>> members, links = pair_sets(path)
        >>> members.tolist(), links.tolist()
        ([[0, 1], [0, 2], [1, 2]], [[1, 0, 2, 1], [0, 1, 1, 2]])
    """
    size = adjacency.size(0)
    members = torch.triu_indices(size, size, 1).t()
    number = torch.full((size, size), -1)
    number[members[:, 0], members[:, 1]] = number[members[:, 1], members[:, 0]] = torch.arange(len(members))
    found = []
    for kept, left in ((0, 1), (1, 0)):
        which, other = adjacency[members[:, left]].nonzero().t()  # a neighbor takes the place of `left`
        source = number[members[which, kept], other]
        found.append(torch.stack([source, which])[:, source >= 0])  # not the kept node itself
    return members, _sorted(torch.cat(found, dim=1), len(members))


def triple_sets(adjacency: Tensor, neighbors: Literal["malkin", "local"]) -> tuple[Tensor, Tensor]:
    """All connected sets of three `[sets, 3]`, and their links `[2, links]`, between sets that differ in one node.

    `malkin`: the nodes that differ are adjacent. `local`: the new one is adjacent to any node of the old set. Of each
    set only neighbors that are connected sets count. Links go in both directions.
    """
    size = adjacency.size(0)
    middle, first = adjacency.nonzero().t()
    which, second = adjacency[middle].nonzero().t()  # all walks first - middle - second
    walks = torch.stack([first[which], middle[which], second], dim=1)
    members = walks[walks[:, 0] < walks[:, 2]].sort(dim=1).values.unique(dim=0)  # triangles have three walks
    code = (members * torch.tensor([size * size, size, 1])).sum(1)  # increasing
    found = []
    for left in range(3):
        kept = members[:, [i for i in range(3) if i != left]]
        near = adjacency[members[:, left]]
        if neighbors == "local":
            near = near | adjacency[kept[:, 0]] | adjacency[kept[:, 1]]
        near = near.scatter(1, members, False)
        which, other = near.nonzero().t()
        new = torch.cat([kept[which], other.unsqueeze(1)], dim=1).sort(dim=1).values
        wanted = (new * torch.tensor([size * size, size, 1])).sum(1)
        place = torch.searchsorted(code, wanted).clamp(max=max(len(code) - 1, 0))
        known = code[place] == wanted if len(code) else torch.zeros(0, dtype=torch.bool)
        found.append(torch.stack([place[known], which[known]]))
    links = torch.cat(found, dim=1)
    return members, _sorted(torch.cat([links, links.flip(0)], dim=1), len(members))


def _sorted(links: Tensor, number: int) -> Tensor:
    """Each link between so many sets once, by target."""
    codes = (links[1] * number + links[0]).unique()
    return torch.stack([codes % max(number, 1), codes // max(number, 1)])


def pair_kinds(adjacency: Tensor, members: Tensor, label: Tensor) -> Tensor:
    """What a pair induces `[pairs, 3]`: its labels in order, and whether its nodes are adjacent."""
    labels = label[members].sort(dim=1).values
    return torch.cat([labels, adjacency[members[:, 0], members[:, 1]].unsqueeze(1).long()], dim=1)


def triple_kinds(adjacency: Tensor, members: Tensor, label: Tensor) -> Tensor:
    """What a connected set of three induces `[sets, 4]`: its labels in order, and the label of the middle of a path, or
    -1 for a triangle. The order of the nodes does not matter."""
    pairs = members[:, [[1, 2], [0, 2], [0, 1]]]  # opposite of each member
    missing = ~adjacency[pairs[..., 0], pairs[..., 1]]  # [sets, 3]: of a path, that opposite of its middle
    middle = torch.where(missing.any(1), (label[members] * missing).sum(1), -1)
    return torch.cat([label[members].sort(dim=1).values, middle.unsqueeze(1)], dim=1)


def k_gnn_spaces(settings: PeerSettings, graphs: Sequence[Data]) -> tuple[list[dict[str, Space]], dict[str, int]]:
    """Nodes, pairs and sets of three of each graph, with their links; and how many kinds of sets the dataset has."""
    found, kinds = list[dict[str, Space]](), {"pairs": list[Tensor](), "triples": list[Tensor]()}
    for graph in graphs:
        adjacency, x = adjacency_of(graph), graph["x"].float()
        label = x.argmax(1)
        target, source = adjacency.nonzero().t()
        made = {"nodes": Space(len(x), {"x": x}), "nodes links": _links("nodes", torch.stack([source, target]))}
        pairs, pair_links = pair_sets(adjacency)
        triples, triple_links = triple_sets(adjacency, settings.neighbors)
        kinds["pairs"].append(pair_kinds(adjacency, pairs, label))
        kinds["triples"].append(triple_kinds(adjacency, triples, label))
        for name, members, links in (("pairs", pairs, pair_links), ("triples", triples, triple_links)):
            made[name] = Space(len(members), {}, {str(i): ("nodes", each) for i, each in enumerate(members.unbind(1))})
            made[f"{name} links"] = _links(name, links)
        found.append(made)
    numbers = dict[str, int]()
    for name, every in kinds.items():
        different, codes = torch.cat(every).unique(dim=0, return_inverse=True)
        numbers[name] = max(len(different), 1)
        for made, code in zip(found, codes.split([len(each) for each in every]), strict=True):
            made[name] = replace(made[name], values={"kind": code})
    return found, numbers


def _links(space: str, links: Tensor) -> Space:
    return Space(links.size(1), points={"source": (space, links[0]), "target": (space, links[1])}, states=False)


class GraphConv(nn.Module):
    r"""A layer between nodes, or between sets: :math:`\mathbf{h}_s' = \textsc{ELU}(\mathbf{W}_1 \mathbf{h}_s +
    \mathbf{W}_2\, \textsc{Mean}_{t \in N(s)} \mathbf{h}_t + \mathbf{b})`.

    The paper has a sum; the authors' code divides it by the number of neighbors.
    """

    def __init__(self, copies: int, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.linear = StackedLinear(copies, 2 * in_channels, out_channels)
        with torch.no_grad():  # uniform in 1 / sqrt(in_channels), as for each of the two
            self.linear.weight.mul_(2**0.5)
            self.linear.bias.mul_(2**0.5)

    def forward(self, h: Tensor, name: str, batch: PackedBatch) -> Tensor:
        """States `[copies, rows, in_channels]` of a space to `[copies, rows, out_channels]`."""
        links, flat = batch[f"{name} links"].points, h.flatten(0, 1)
        total = torch.zeros_like(flat).index_add(0, links["target"], flat.index_select(0, links["source"]))
        number = flat.new_zeros(len(flat)).index_add(0, links["target"], flat.new_ones(len(links["target"])))
        mean = (total / number.clamp(min=1).unsqueeze(-1)).view_as(h)
        return elu(self.linear(torch.cat([h, mean], dim=-1)))


class KGNN(nn.Module):
    """Layers between nodes; on their states, layers between pairs and layers between sets of three; an MLP reads all
    three levels, pooled."""

    def __init__(self, copies: int, channels: int, kinds: dict[str, int], num_classes: int, settings: PeerSettings):
        super().__init__()
        width, self.dropout, self.mean = settings.width, settings.dropout, settings.pool == "mean"
        sizes = [channels, width // 2 if self.mean else width, width, width]  # PROTEINS: 32, 64, 64
        self.kinds = kinds
        self.node_layers = nn.ModuleList(GraphConv(copies, sizes[i], sizes[i + 1]) for i in range(3))
        self.set_layers = nn.ModuleDict(
            {
                name: nn.ModuleList(
                    GraphConv(copies, width if i else width + kinds[name], width) for i in range(SET_LAYERS)
                )
                for name in kinds
            }
        )
        sizes = [3 * width, width, width // 2, num_classes]
        self.head = nn.ModuleList(StackedLinear(copies, sizes[i], sizes[i + 1]) for i in range(3))

    def forward(self, batch: PackedBatch) -> Tensor:
        """`[copies, graphs, num_classes]`."""
        nodes = batch["nodes"]
        h = nodes.stacked(nodes.values["x"])
        for layer in self.node_layers:
            h = layer(h, "nodes", batch)
        pooled, states = [batch.pool("nodes", h, self.mean)], h.flatten(0, 1)
        for name, layers in self.set_layers.items():
            sets = batch[name]
            kind = one_hot(sets.values["kind"], self.kinds[name]).to(h.dtype)
            members = torch.stack([states.index_select(0, each) for each in sets.points.values()]).mean(0)
            s = sets.stacked(torch.cat([members, kind], dim=1))
            assert isinstance(layers, nn.ModuleList)
            for layer in layers:
                s = layer(s, name, batch)
            pooled.append(batch.pool(name, s, mean=True))
        found = elu(self.head[0](torch.cat(pooled, dim=-1)))
        found = elu(self.head[1](dropout(found, self.dropout, self.training)))
        return self.head[2](found)


def build_k_gnn(settings: PeerSettings, graphs: Sequence[Data], num_classes: int) -> Peer:
    """1-2-3-GNN for a dataset whose node features are one-hot labels."""
    spaces, kinds = k_gnn_spaces(settings, graphs)
    channels = graphs[0]["x"].size(1)
    return Peer(
        lambda copies: KGNN(copies, channels, kinds, num_classes, settings),
        lambda device: PackedGraphs(spaces, device),
    )
