r"""Eq. 5. The clustering coefficient of a node follows from its cycle counts:

.. math:: c_v = \frac{|\{e_{su} : s, u \in \mathcal{N}(v), e_{su} \in \mathcal{E}\}|}{d_v (d_v - 1) / 2}
    = \frac{\mathbf{h}_v^{(K)}[3]}{\mathbf{h}_v^{(K)}[2] \, (\mathbf{h}_v^{(K)}[2] - 1)}

in a simple undirected graph, where :math:`\mathbf{h}_v[2]` is the degree and :math:`\mathbf{h}_v[3]` counts every
triangle in both directions. A node of degree below 2 has no pair of neighbors; its coefficient is 0 by convention.
"""

import networkx as nx
import pytest
import torch

from idgnn import cycle_counts, identity_graph
from tests.paper.awkward_graphs import SIMPLE, as_data
from tests.paper.constructions import counting_network, run


def clustering(counts):
    degree, triangles = counts[:, 1], counts[:, 2]
    return torch.where(degree < 2, 0.0, triangles / (degree * (degree - 1)))


@pytest.mark.parametrize("name", SIMPLE)
def test_clustering_coefficients_from_a_three_layer_id_gnn(name):
    graph, data = SIMPLE[name], as_data(SIMPLE[name])
    expected = nx.clustering(graph)
    found = clustering(run(counting_network(3), data.x, data, identity_graph))
    assert found.tolist() == [expected[v] for v in range(len(graph))]


@pytest.mark.parametrize("seed", range(5))
def test_clustering_coefficients_from_the_features_of_id_gnn_fast(seed):
    graph = nx.powerlaw_cluster_graph(200, 3, 0.2 * seed, seed=seed)
    data, expected = as_data(graph), nx.clustering(graph)
    found = clustering(cycle_counts(data.edge_index, data.num_nodes, 3))
    assert found.tolist() == [expected[v] for v in range(len(graph))]
