"""Which graphs a network tells apart."""

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn import global_add_pool

from idgnn import IDGNN


def untrained(conv: str, identity: str, num_layers: int) -> IDGNN:
    """An untrained network in float64, in evaluation mode: what it does not tell apart now, it might after training,
    but what it tells apart can be told apart."""
    return IDGNN(1, 16, 16, num_layers, conv, identity).double().eval()


@torch.no_grad()
def representations(model: IDGNN, graphs: list[Data]) -> Tensor:
    """The summed node embeddings of each graph: `[graphs, channels]`."""
    parts = []
    for first in range(0, len(graphs), 10):  # the identity graphs of 100 graphs at once would take gigabytes
        batch = Batch.from_data_list(graphs[first : first + 10])
        parts.append(global_add_pool(model(batch.x, batch.edge_index), batch.batch, batch.num_graphs))
    return torch.cat(parts)


def told_apart(representation: Tensor) -> Tensor:
    """Whether graphs i and j are told apart: `[graphs, graphs]`.

    Sums in another order differ by about 1e-15 of the largest number, what is told apart by far more. Asserts that
    nothing lies between.
    """
    scaled = representation / representation.abs().max()
    distance = (scaled.unsqueeze(1) - scaled).abs().amax(dim=-1)
    assert not ((distance > 1e-13) & (distance < 1e-10)).any(), "cannot tell rounding from a difference"
    return distance > 1e-12


def distinct(apart: Tensor) -> int:
    """How many classes of graphs there are that are not told apart."""
    first_alike = (~apart).int().argmax(dim=1)
    assert torch.equal(apart, first_alike.unsqueeze(1) != first_alike), "alike is not an equivalence"
    return first_alike.unique().numel()
