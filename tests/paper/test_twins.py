r"""What Eq. 3 cannot see: a colored node and its twin are one, and which twin it is depends on self-loops.

Only messages are colored. GCN and GAT treat the state of a node as one more message to itself, so that true twins,
neighbors with :math:`\mathcal{N}(u) \cup \{u\} = \mathcal{N}(v) \cup \{v\}`, receive the same messages in every round,
whoever is colored, and :math:`\mathbf{h}_{u|v} = \mathbf{h}_{v|v}`: distance 1 looks like distance 0. SAGE and GIN
have a term for the node itself, which is never colored. They tell true twins apart, but not false twins with the same
features, :math:`\mathcal{N}(u) = \mathcal{N}(v)`: distance 2 looks like distance 0. With the update colored too, all of
them tell all twins apart.
"""

import pytest
import torch
from torch_geometric.utils import to_undirected

from idgnn import IDGNN

# Nodes 0 and 1 are true twins: neighbors of each other and of 2 and 3. Nodes 2 and 4 are neighbors, but no twins.
# Nodes 6 and 7 are false twins: both are neighbors of 4 and 5.
EDGES = to_undirected(torch.tensor([[0, 0, 0, 1, 1, 2, 3, 4, 4, 5, 5], [1, 2, 3, 2, 3, 4, 5, 6, 7, 6, 7]]))
TRUE, FALSE = (0, 1), (6, 7)


def difference(conv: str, pair: tuple[int, int], *, same_features: bool, color: str = "message") -> float:
    """How far the embedding of the second node is from that of the first, which is colored."""
    torch.manual_seed(0)
    model = IDGNN(3, 16, 4, num_layers=5, conv=conv, color=color).double().eval()
    for layer in model.convs if color == "message+update" else ():
        torch.nn.init.normal_(layer.operator.update_colored, std=0.1)  # as training would
    x = torch.rand(8, 3, dtype=torch.double)
    if same_features:
        x[pair[1]] = x[pair[0]]
    queries = torch.tensor([[pair[0], pair[1]], [pair[0], pair[0]]])
    itself, other = model(x, EDGES, queries=queries)
    return (other - itself).abs().max().item()


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_gcn_and_gat_cannot_tell_a_colored_node_from_its_true_twin(conv):
    assert difference(conv, TRUE, same_features=False) < 1e-12
    assert difference(conv, (2, 4), same_features=True) > 1e-6, "a neighbor that is no twin"


@pytest.mark.parametrize("conv", ["sage", "gin"])
def test_sage_and_gin_can(conv):
    assert difference(conv, TRUE, same_features=True) > 1e-6


@pytest.mark.parametrize("conv", ["sage", "gin"])
def test_sage_and_gin_cannot_tell_a_colored_node_from_its_false_twin(conv):
    assert difference(conv, FALSE, same_features=True) < 1e-12
    assert difference(conv, FALSE, same_features=False) > 1e-6, "features tell them apart"


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_gcn_and_gat_can(conv):
    assert difference(conv, FALSE, same_features=True) > 1e-6


@pytest.mark.parametrize("pair", [TRUE, FALSE])
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
def test_with_a_colored_update_all_layers_tell_all_twins_apart(conv, pair):
    assert difference(conv, pair, same_features=True, color="message+update") > 1e-6
