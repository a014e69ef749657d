import torch

from idgnn.experiments.peers.dense import DenseGraphs
from idgnn.experiments.peers.ppgn import BLOCKS
from idgnn.experiments.peers.run import BUILDERS
from idgnn.experiments.peers.settings import peer_settings
from idgnn.models.budget import num_parameters
from tests.experiments.peers.laws import make, separates, small
from tests.experiments.peers.small_graphs import (
    awkward,
    decalin_and_bicyclopentyl,
    hexagon_and_triangles,
    rook_and_shrikhande,
)

PPGN = small("ppgn")


def linear(layer, x):
    """On the last dimension, for one copy."""
    return x @ layer.weight[0].t() + layer.bias[0]


def by_hand(network, graph):
    """The equations for one graph, pair by pair, with channels last."""
    n, labels = graph.x.shape
    adjacency = torch.zeros(n, n, dtype=torch.float64)
    adjacency[graph.edge_index[0], graph.edge_index[1]] = 1
    degree = adjacency.sum(1)
    x = torch.zeros(n, n, labels + 1, dtype=torch.float64)
    for i in range(n):
        for j in range(n):
            if adjacency[i, j]:
                x[i, j] = 1 / (degree[i] * degree[j]).sqrt()
        x[i, i, 1:] += graph.x[i]
    answer = torch.zeros(2, dtype=torch.float64)
    for block, head in zip(network.blocks, network.heads, strict=True):
        left = linear(block.left.second, linear(block.left.first, x).relu()).relu()
        right = linear(block.right.second, linear(block.right.first, x).relu()).relu()
        product = torch.einsum("ikc,kjc->ijc", left, right)
        x = linear(block.skip, torch.cat([x, product], dim=-1))
        diagonal = torch.stack([x[i, i] for i in range(n)]).amax(0)
        off = [x[i, j] for i in range(n) for j in range(n) if i != j]
        rest = torch.stack(off).amax(0) if off else torch.zeros_like(diagonal)
        answer = answer + linear(head, torch.cat([diagonal, rest]))
    return answer


@torch.no_grad()
def test_it_is_what_the_equations_say():
    graphs = awkward()
    network, store = make(PPGN, graphs)
    for weight in network.parameters():  # biases start at zero, where a wrong one would not show
        weight += 0.1 * torch.randn_like(weight)
    ours = network(store.batch(torch.arange(len(graphs)).unsqueeze(0)))[0]
    torch.testing.assert_close(ours, torch.stack([by_hand(network, graph) for graph in graphs]))


def test_it_separates_what_1_wl_does_not_but_no_strongly_regular_graphs():
    assert separates(PPGN, hexagon_and_triangles())
    assert separates(PPGN, decalin_and_bicyclopentyl())
    assert not separates(PPGN, rook_and_shrikhande())


def test_the_authors_network_has_three_blocks_of_400_channels():
    settings = peer_settings("ppgn", "MUTAG-folds")
    with torch.device("meta"):
        network = BUILDERS["ppgn"](settings, awkward(), 2).network(10)
    width, labels = settings.width, 3
    first = 2 * ((labels + 1) * width + width + width**2 + width) + (labels + 1 + width) * width + width
    other = 2 * (2 * width**2 + 2 * width) + 2 * width**2 + width
    assert width == 400 and BLOCKS == 3
    assert num_parameters(network) == 10 * (first + 2 * other + 3 * (2 * width * 2 + 2))


def test_sizes_that_are_rounded_up_change_no_answer():
    graphs = awkward()
    network, _ = make(PPGN, graphs)
    ids = torch.arange(len(graphs)).unsqueeze(0)
    exact, rounded = (DenseGraphs(graphs, "cpu", torch.float64, multiple).batch(ids) for multiple in (1, 8))
    assert rounded.adjacency.size(-1) % 8 == 0 < rounded.adjacency.size(-1) - exact.adjacency.size(-1)
    torch.testing.assert_close(network(rounded), network(exact), rtol=1e-10, atol=1e-10)
