"""Table 1 of the paper: how many of 100 random d-regular graphs can be told apart?

Every node of a d-regular graph has the same neighborhood as any other, so that a plain GNN gives all of these graphs
one and the same representation. Closed walks, which a K-layer ID-GNN can count up to length K, tell most of them apart.
An untrained ID-GNN-Full tells more: it sees the walks of every node by itself, and how they branch.

    python examples/regular_graphs.py [number of graphs]
"""

import sys

import networkx as nx
import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.utils import from_networkx

import idgnn

LAYERS = (3, 4, 5, 6)
PUBLISHED = {(64, 4): (11, 64, 94, 100), (40, 5): (14, 82, 100, 100), (96, 6): (21, 88, 100, 100)}  # (n, d): percent


def percent_distinct(representations: torch.Tensor) -> str:
    """`[graphs, channels]`: how many rows differ in their first ten digits."""
    rounded = (representations / representations.abs().max()).round(decimals=10)
    return f"{100 * len(rounded.unique(dim=0)) / len(rounded):.0f} %"


@torch.no_grad()
def by_network(graphs: list[torch.Tensor], num_nodes: int, num_layers: int, identity: str) -> str:
    """An untrained network; the embeddings of the nodes are summed up."""
    torch.manual_seed(0)
    model = idgnn.IDGNN(1, 16, 16, num_layers, conv="gin", identity=identity).double().eval()
    x = torch.ones(num_nodes, 1, dtype=torch.float64)
    return percent_distinct(torch.stack([model(x, edge_index).sum(dim=0) for edge_index in graphs]))


def by_closed_walks(graphs: list[torch.Tensor], num_nodes: int, num_layers: int) -> str:
    """The numbers of closed walks of length 1, ..., K, summed over the nodes."""
    counts = [idgnn.cycle_counts(edge_index, num_nodes, num_layers).sum(dim=0) for edge_index in graphs]
    return percent_distinct(torch.stack(counts))


num_graphs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
table = Table("graphs", "told apart by", *(f"K = {k}" for k in LAYERS), title=f"{num_graphs} random d-regular graphs")
for (n, d), published in PUBLISHED.items():
    graphs = [from_networkx(nx.random_regular_graph(d, n, seed=seed)).edge_index for seed in range(num_graphs)]
    table.add_row(f"n = {n}, d = {d}", "published (100 graphs)", *(f"{percent} %" for percent in published))
    table.add_row("", "closed walks", *(by_closed_walks(graphs, n, k) for k in LAYERS))
    table.add_row("", "ID-GNN-Full, untrained", *(by_network(graphs, n, k, "full") for k in LAYERS))
    table.add_row("", "plain GNN (one for all)", *(by_network(graphs, n, k, "none") for k in LAYERS), end_section=True)
Console().print(table)
