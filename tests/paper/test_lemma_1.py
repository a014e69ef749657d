r"""Lemma 1 (appendix). After n layers of heterogeneous message passing with respect to the colored node v,

.. math:: \mathbf{h}_u^{(n)}[j] = \text{the number of paths of length } j \text{ between } u \text{ and } v,
    \qquad j = 1, \dots, n.

The paths of the paper may pass a node twice: they are walks. The paper draws undirected graphs. Where edges have a
direction, messages follow it, and the walks that are counted lead from the colored node v to u:
:math:`\mathbf{h}_{u|v}^{(n)}[j] = (A^j)_{vu}`.
"""

import pytest
import torch
from torch_geometric.data import Batch

from idgnn import walk_counts
from tests.paper.awkward_graphs import AWKWARD, as_data, every_pair, walks
from tests.paper.constructions import ENGINES, counting_network, run

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("name", AWKWARD)
def test_copies_of_the_graph_with_one_colored_node_each_count_walks(name, num_layers):
    data, num_nodes = as_data(AWKWARD[name]), len(AWKWARD[name])
    copies = Batch.from_data_list([data] * num_nodes)  # copy v holds the rows v * num_nodes + u
    colored = torch.eye(num_nodes, dtype=torch.bool).flatten()
    h = copies.x
    for layer in counting_network(num_layers):
        h = layer(h, copies.edge_index, colored=colored)
    expected = walks(AWKWARD[name], num_layers)  # [v, u, j]
    assert torch.equal(h.view_as(expected), expected.double())


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AWKWARD)
def test_conditional_embeddings_count_walks_between_all_pairs(name, engine, num_layers):
    data, (u, v) = as_data(AWKWARD[name]), every_pair(len(AWKWARD[name]))
    h = run(counting_network(num_layers), data.x, data, ENGINES[engine], queries=torch.stack([u, v]))
    assert torch.equal(h, walks(AWKWARD[name], num_layers)[v, u].double())


@pytest.mark.parametrize("name", AWKWARD)
def test_walk_counts_are_the_conditional_embeddings_of_the_opposite_pairs(name):
    data, pairs = as_data(AWKWARD[name]), every_pair(len(AWKWARD[name]))
    h = run(counting_network(6), data.x, data, ENGINES["identity graph"], queries=pairs)
    assert torch.equal(walk_counts(data.edge_index, data.num_nodes, pairs.flip(0), 6), h)


def test_one_directed_edge_is_walked_in_its_direction():
    data = as_data(AWKWARD["one directed edge"])  # 1 -> 0
    there_and_back = torch.tensor([[0, 1], [1, 0]])
    h = run(counting_network(1), data.x, data, ENGINES["identity graph"], queries=there_and_back)
    assert h.tolist() == [[1.0], [0.0]]
