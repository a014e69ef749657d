import torch

from idgnn.experiments.peers.dense import DenseBatch
from idgnn.experiments.peers.ign import EquivariantLinear
from tests.experiments.peers.laws import separates, small
from tests.experiments.peers.small_graphs import decalin_and_bicyclopentyl, graph_of, hexagon_and_triangles, nx

IGN = small("ign")


def full(size: int) -> DenseBatch:
    """A batch of one graph without padding."""
    return DenseBatch(torch.zeros(1, 1, size, 1), torch.zeros(1, 1, size, size), torch.tensor([[size]]))


def layer_on(x, layer):
    """`[n, n]` to `[n, n]`, one channel."""
    return layer(x[None, None, None], full(x.size(0)))[0, 0, 0]


@torch.no_grad()
def test_a_layer_commutes_with_permutations():
    torch.manual_seed(0)
    layer = EquivariantLinear(1, 1, 1).double()
    layer.bias += 0.3
    layer.diagonal_bias += 0.7
    x, order = torch.randn(6, 6).double(), torch.randperm(6)
    torch.testing.assert_close(layer_on(x[order][:, order], layer), layer_on(x, layer)[order][:, order])


@torch.no_grad()
def test_its_maps_are_the_15_of_a_basis_of_all_equivariant_maps():
    """There are 15 of them for n >= 4: the maps found with one weight each are linearly independent, and each commutes
    with permutations, so they are a basis."""
    n = 5
    units = torch.eye(n * n).double().view(n * n, n, n)
    order = torch.tensor([3, 0, 4, 2, 1])
    found = []
    layer = EquivariantLinear(1, 1, 1).double()
    for place, weight in layer.maps.items():
        for which in range(weight.size(2)):
            for other in layer.maps.values():
                other.zero_()
            layer.maps[place][0, 0, which] = 1
            matrix = torch.stack([layer_on(unit, layer).flatten() for unit in units])
            moved = torch.stack([layer_on(unit[order][:, order], layer).flatten() for unit in units])
            same = torch.stack([layer_on(unit, layer)[order][:, order].flatten() for unit in units])
            torch.testing.assert_close(moved, same)
            found.append(matrix.flatten())
    assert len(found) == 15 and int(torch.linalg.matrix_rank(torch.stack(found))) == 15


@torch.no_grad()
def test_sums_are_means_so_that_sizes_compare():
    """A matrix of ones has means of one, whatever its size: its image has the same entries."""
    torch.manual_seed(0)
    layer = EquivariantLinear(1, 1, 1).double()
    small_, large = (layer_on(torch.ones(n, n).double(), layer) for n in (3, 8))
    torch.testing.assert_close(small_[0, :2], large[0, :2])


def test_it_separates_nothing_that_1_wl_does_not():
    assert not separates(IGN, hexagon_and_triangles())
    assert not separates(IGN, decalin_and_bicyclopentyl())
    assert separates(IGN, [graph_of(nx.path_graph(6)), graph_of(nx.star_graph(5))])
