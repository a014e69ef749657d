"""The graphs and models that the tests of this folder share."""

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn import IDGNN

CONVS = ("gcn", "sage", "gat", "gin", "gine")
IDENTITIES = ("none", "fast", "full")
IN, HIDDEN, OUT = 3, 8, 4


def ladder(rungs: int = 4, seed: int = 0) -> Data:
    """Two paths side by side, joined by rungs, with one diagonal so that no two nodes are alike."""
    generator = torch.Generator().manual_seed(seed)
    edges = [(2 * rung, 2 * rung + 1) for rung in range(rungs)]
    edges += [(node, node + 2) for node in range(2 * rungs - 2)] + [(0, 3)]
    edge_index = torch.tensor(edges + [(b, a) for a, b in edges]).t().contiguous()
    return Data(
        x=torch.randn(2 * rungs, IN, generator=generator),
        edge_index=edge_index,
        edge_attr=torch.randn(edge_index.size(1), 2, generator=generator),
    )


PAIRS = torch.tensor([[0, 1, 5, 5, 2], [3, 0, 5, 4, 0]])


def network(conv: Any = "gcn", identity: str = "full", **options: Any) -> IDGNN:
    if conv == "gine":
        options.setdefault("edge_dim", 2)
    if conv == "gat":
        options.setdefault("heads", 2)
    return IDGNN(IN, HIDDEN, OUT, conv=conv, identity=identity, **options)


def edge_of(conv: Any, data: Data) -> dict[str, Tensor]:
    return {"edge_attr": data.edge_attr} if conv == "gine" else {}
