r"""Proposition 2. For any node v, there exists a K-layer ID-GNN instantiation that can learn an embedding with

.. math:: \mathbf{h}_v^{(K)}[j] = \text{the number of length } j \text{ cycles starting and ending at } v,
    \qquad j = 1, \dots, K.

The weights are those of Lemma 1, and the cycles are closed walks: :math:`\mathbf{h}_v^{(K)}[j] = (A^j)_{vv}`, the
features of ID-GNN-Fast.
"""

import pytest
import torch

from idgnn import cycle_counts
from tests.paper.awkward_graphs import AWKWARD, as_data, walks
from tests.paper.constructions import ENGINES, counting_network, run


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AWKWARD)
def test_an_id_gnn_counts_cycles(name, engine, num_layers):
    data = as_data(AWKWARD[name])
    h = run(counting_network(num_layers), data.x, data, ENGINES[engine])
    assert torch.equal(h, walks(AWKWARD[name], num_layers).diagonal().t().double())
    assert torch.equal(h, cycle_counts(data.edge_index, data.num_nodes, num_layers))


def test_the_counts_do_not_depend_on_the_features():
    data = as_data(AWKWARD["barbell"])
    network = counting_network(4)
    h = run(network, torch.randn(data.num_nodes, 1, dtype=torch.float64), data, ENGINES["identity graph"])
    assert torch.equal(h, run(network, data.x, data, ENGINES["identity graph"]))
