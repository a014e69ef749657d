r"""Eq. 6. A K-layer ID-GNN says whether u is reachable from v within K hops:

.. math::
    \mathbf{m}_{s|v}^{(k)} = \begin{cases} 1 & \text{if } s = v \\ \mathbf{h}_{s|v}^{(k-1)} & \text{else} \end{cases},
    \qquad \mathbf{h}_{u|v}^{(k)} = \textsc{Max}(\{\mathbf{m}_{s|v}^{(k)}, s \in \mathcal{N}(u)\}),
    \qquad \mathbf{h}_{u|v}^{(0)} = 0

The colored node speaks up in every round, so :math:`\mathbf{h}_{u|v}^{(K)} = 1` if a walk of 1 to K steps leads from
v to u, and 0 if none does. For u != v that is: the distance from v to u is at most K. For u = v the walk of no steps
does not count: the answer is 1 if v lies on a closed walk of at most K steps. In an undirected graph that is every
node with a neighbor as soon as K >= 2, or with a self-loop as soon as K >= 1; an isolated node does not reach itself.
"""

import networkx as nx
import pytest
import torch

from tests.paper.awkward_graphs import AWKWARD, SIMPLE, as_data, every_pair, walks
from tests.paper.constructions import ENGINES, reaching_network, run

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def reachable(name, num_layers, engine="identity graph"):
    """The answers of the network: `[v, u]`."""
    data, num_nodes = as_data(AWKWARD[name]), len(AWKWARD[name])
    nothing = torch.zeros_like(data.x)
    h = run(reaching_network(num_layers), nothing, data, ENGINES[engine], queries=every_pair(num_nodes))
    return h.view(num_nodes, num_nodes)


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", AWKWARD)
def test_a_node_is_reachable_if_its_distance_is_at_most_the_number_of_layers(name, engine, num_layers):
    answer = reachable(name, num_layers, engine)
    distance = dict(nx.all_pairs_shortest_path_length(AWKWARD[name].to_directed()))
    for v in AWKWARD[name]:
        for u in set(AWKWARD[name]) - {v}:
            assert answer[v, u] == (distance[v].get(u, float("inf")) <= num_layers)


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("name", AWKWARD)
def test_the_answer_is_one_exactly_for_a_walk_of_one_to_k_steps(name, num_layers):
    expected = walks(AWKWARD[name], num_layers).sum(dim=-1) > 0
    assert torch.equal(reachable(name, num_layers), expected.double())


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("name", SIMPLE)
def test_a_node_reaches_itself_by_a_neighbor(name, num_layers):
    degree = torch.tensor([SIMPLE[name].degree(v) for v in range(len(SIMPLE[name]))])
    expected = (degree > 0) & (num_layers >= 2)
    assert torch.equal(reachable(name, num_layers).diagonal(), expected.double())
