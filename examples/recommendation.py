"""Which shops does a customer come back to? A graph of customers, visits and shops, and a query for each pair.

A shop looks the same to all of its customers, so that a plain GNN, which reads the embeddings of both, has to guess.
With the customer colored, the shop sees how many of its visits are those of this customer. Tested on other customers.
"""

import torch
from torch import nn
from torch_geometric.data import HeteroData

import idgnn

CUSTOMERS, SHOPS, SHOPS_EACH = 120, 40, 6

torch.manual_seed(0)
visits: list[tuple[int, int]] = []
pairs: list[tuple[int, int]] = []
again: list[bool] = []
for customer in range(CUSTOMERS):
    for place, shop in enumerate(torch.randperm(SHOPS)[:SHOPS_EACH].tolist()):
        pairs.append((shop, customer))
        again.append(place % 2 == 0)
        visits += [(customer, shop)] * (3 if again[-1] else 1)
data = HeteroData()
data["customer"].num_nodes, data["visit"].num_nodes, data["shop"].num_nodes = CUSTOMERS, len(visits), SHOPS
for place, kind in enumerate(("customer", "shop")):
    edges = torch.tensor([(visit, ends[place]) for visit, ends in enumerate(visits)]).t().contiguous()
    data["visit", "of", kind].edge_index, data[kind, "has", "visit"].edge_index = edges, edges.flip(0)
shop, customer = torch.tensor(pairs).t()
label, is_train = torch.tensor(again).float(), customer < CUSTOMERS // 2


def part(chosen):
    """Queries: shops that are read when customers are colored."""
    return ("shop", shop[chosen]), ("customer", customer[chosen])


def accuracy(identity) -> float:
    """Trains on half of the customers; returns the share of right answers for the others."""
    config = idgnn.HeteroConfig(
        hidden_channels=16, out_channels=16, num_layers=2, identity=identity, root="customer", aggr="sum"
    )
    model = idgnn.HeteroIDGNN.for_data(data, config)
    head = idgnn.PairHead(model.pair_channels, 1, hidden_channels=16)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    index = model.index(data)
    ready = index.prepare(part(is_train))
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(head(model.run(ready)).flatten(), label[is_train])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        guess = head(model.embed(index, part(~is_train))).flatten() > 0
    return float((guess == label[~is_train].bool()).float().mean())


print(f"plain GNN, two embeddings side by side: {accuracy('none'):.0%} right")
print(f"ID-GNN-Full, the shop when the customer is colored: {accuracy('full'):.0%} right")
