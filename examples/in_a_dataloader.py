"""Mini-batches: identity graphs are ordinary PyG graphs, so that a DataLoader puts them together like any others.

Two kinds of graphs, all of them 4-regular: rings of triangles of which some edges have been swapped, and graphs without
any order. A plain GNN sees nothing but the number of nodes, and can only guess.
"""

import networkx as nx
import torch
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.utils import from_networkx

import idgnn

K = 3


def regular_graph(seed: int) -> Data:
    """Even seeds: a ring of triangles with swapped edges. Odd seeds: a random 4-regular graph."""
    n = 20 + seed % 17
    ring = nx.double_edge_swap(nx.circulant_graph(n, [1, 2]), nswap=n // 5, seed=seed)
    edge_index = from_networkx(nx.random_regular_graph(4, n, seed=seed) if seed % 2 else ring).edge_index
    return Data(x=torch.ones(n, 1), edge_index=edge_index, y=torch.tensor([seed % 2]))


def accuracy(identity: str) -> float:
    """Trains on 96 graphs, and tests on 96 others."""
    torch.manual_seed(0)
    graphs = [regular_graph(seed) for seed in range(192)]
    if identity == "full":  # once, before training, as the pre_transform of a PyG dataset would
        graphs = [idgnn.ToIdentityGraph(num_layers=K)(graph) for graph in graphs]
    model = idgnn.IDGNN(1, 24, 24, num_layers=K, conv="gcn", identity=identity)
    head = idgnn.GraphHead(24, 2)

    def predict(batch: Data) -> torch.Tensor:
        if identity == "full":  # one answer per node; the rows of a batch outnumber its nodes
            h = model(batch.x, batch.edge_index, graph=batch)
            return head(h, batch.batch[batch.query_row], batch.num_graphs)
        return head(model(batch.x, batch.edge_index), batch.batch, batch.num_graphs)

    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    schedule = CosineAnnealingLR(optimizer, T_max=10)
    for _ in range(10):
        for batch in DataLoader(graphs[:96], batch_size=8, shuffle=True):
            optimizer.zero_grad()
            cross_entropy(predict(batch), batch.y).backward()
            optimizer.step()
        schedule.step()
    model.eval()
    with torch.no_grad():
        right = [predict(batch).argmax(dim=-1) == batch.y for batch in DataLoader(graphs[96:], batch_size=16)]
    return torch.cat(right).double().mean().item()


for identity, title in (("none", "plain GNN"), ("full", "ID-GNN-Full")):
    print(f"{title + ':':<12} {accuracy(identity):4.0%} of new graphs are recognized")
