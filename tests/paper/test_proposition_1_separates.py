r"""Proposition 1, second part. The ID-GNN version of GIN differentiates certain graphs that GIN fails to distinguish.

The example of the paper's first figure are d-regular graphs, such as a hexagon and two triangles. With the same
features at every node, a plain GNN gives every node of every d-regular graph the same state,

.. math:: \mathbf{h}^{(k)} = \textsc{Agg}^{(k)}(\{d \times \textsc{Msg}^{(k)}(\mathbf{h}^{(k-1)})\}, \mathbf{h}^{(k-1)})

and so does the 1-WL test, which bounds what plain GNNs tell apart. An ID-GNN with K layers meets its colored node
again after a closed walk of at most K steps (Eq. 3).
"""

import networkx as nx
import pytest
import torch

from tests.paper.awkward_graphs import SIMPLE, as_data
from tests.paper.separation import distinct, representations, told_apart, untrained

HEXAGON, TRIANGLES = SIMPLE["hexagon"], SIMPLE["two triangles"]
CONVS = ["gcn", "sage", "gat", "gin"]

# networkx 3.5 changed its hashes and says so at every call.
pytestmark = pytest.mark.filterwarnings("ignore:The hashes produced for graphs without node or edge attributes")


def tells_apart(model, *graphs):
    return bool(told_apart(representations(model, [as_data(graph) for graph in graphs])).any())


def wl_class(graph):
    return nx.weisfeiler_lehman_graph_hash(graph, iterations=len(graph))


@pytest.mark.parametrize("num_layers", range(1, 7))
@pytest.mark.parametrize("conv", CONVS)
def test_no_plain_gnn_tells_a_hexagon_from_two_triangles(conv, num_layers):
    assert not tells_apart(untrained(conv, "none", num_layers), HEXAGON, TRIANGLES)


def test_the_1_wl_test_does_not_tell_a_hexagon_from_two_triangles():
    assert wl_class(HEXAGON) == wl_class(TRIANGLES)


@pytest.mark.parametrize("conv", CONVS)
def test_an_id_gnn_tells_a_hexagon_from_two_triangles_from_three_layers_on(conv):
    told = [tells_apart(untrained(conv, "full", num_layers), HEXAGON, TRIANGLES) for num_layers in range(1, 7)]
    assert told == [False, False, True, True, True, True]


@pytest.mark.parametrize("conv", CONVS)
def test_id_gnn_fast_tells_a_hexagon_from_two_triangles(conv):
    assert tells_apart(untrained(conv, "fast", 1), HEXAGON, TRIANGLES)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("num_nodes", "degree"), [(12, 3), (16, 4), (30, 3), (20, 6)])
def test_id_gin_tells_random_regular_graphs_apart(num_nodes, degree, seed):
    pair = [nx.random_regular_graph(degree, num_nodes, seed=2 * seed + side) for side in (0, 1)]
    assert not nx.is_isomorphic(*pair)
    assert wl_class(pair[0]) == wl_class(pair[1])
    assert not any(tells_apart(untrained(conv, "none", 5), *pair) for conv in CONVS)
    assert tells_apart(untrained("gin", "full", 5), *pair)


def test_isomorphic_graphs_are_never_told_apart():
    graph = SIMPLE["scale-free"]
    shuffled = nx.relabel_nodes(graph, dict(enumerate(torch.randperm(len(graph)).tolist())))
    assert not tells_apart(untrained("gin", "full", 5), graph, shuffled)


def test_on_all_graphs_of_up_to_six_nodes_id_gin_tells_apart_all_that_gin_does_and_more():
    atlas = [graph for graph in nx.graph_atlas_g()[1:] if len(graph) <= 6]
    data = [as_data(graph) for graph in atlas]
    plain, full = (told_apart(representations(untrained("gin", i, 4), data)) for i in ("none", "full"))
    classes = [wl_class(graph) for graph in atlas]
    by_1_wl = torch.tensor([[one != other for other in classes] for one in classes])
    assert not (plain & ~by_1_wl).any()  # GIN within 1-WL
    assert not (plain & ~full).any()  # GIN within ID-GIN
    assert (full & ~by_1_wl).any()
    assert distinct(plain) <= distinct(by_1_wl) < distinct(full) <= len(atlas)
