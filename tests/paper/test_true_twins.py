r"""What Eq. 3 cannot see: with self-loops as messages, a node and its true twin are one.

True twins are neighbours with the same neighbours: :math:`\mathcal{N}(u) \cup \{u\} = \mathcal{N}(v) \cup \{v\}`. Only
messages are coloured. GCN and GAT treat the state of a node as one more message to itself, so that u and v receive the
same messages in every round, whoever is coloured, and :math:`\mathbf{h}_{u|v} = \mathbf{h}_{v|v}`: distance 1 looks
like distance 0. SAGE and GIN have a term for the node itself and tell them apart.
"""

import pytest
import torch
from torch_geometric.utils import to_undirected

from idgnn import IDGNN

# Nodes 0 and 1 are true twins: neighbours of each other and of 2 and 3. Nodes 2 and 4 are neighbours, but no twins.
EDGES = to_undirected(torch.tensor([[0, 0, 0, 1, 1, 2, 3], [1, 2, 3, 2, 3, 4, 5]]))


def conditional(conv: str, pairs: list[tuple[int, int]]) -> torch.Tensor:
    """The embeddings of (read, coloured) nodes, each with features of its own."""
    torch.manual_seed(0)
    model = IDGNN(3, 16, 4, num_layers=5, conv=conv).double().eval()
    return model(torch.rand(6, 3, dtype=torch.double), EDGES, queries=torch.tensor(pairs).t())


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_gcn_and_gat_cannot_tell_a_coloured_node_from_its_true_twin(conv):
    itself, twin, neighbour = conditional(conv, [(0, 0), (1, 0), (2, 0)])
    torch.testing.assert_close(twin, itself, atol=1e-12, rtol=0)
    assert (neighbour - itself).abs().max() > 1e-4


@pytest.mark.parametrize("conv", ["sage", "gin"])
def test_sage_and_gin_can(conv):
    itself, twin = conditional(conv, [(0, 0), (1, 0)])
    assert (twin - itself).abs().max() > 1e-4
