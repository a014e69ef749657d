"""Bad input is refused with a ValueError that says what was given, what was expected and what to do."""

import re

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from idgnn import ToIdentityGraph, identity_cost, identity_graph
from idgnn.identity.ego import ego_networks

EDGE_INDEX = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def graph(**changes) -> Data:
    """A path of three nodes, with some attributes changed; `None` takes an attribute away."""
    attributes = {"x": torch.ones(3, 2), "edge_index": EDGE_INDEX} | changes
    return Data(**{key: value for key, value in attributes.items() if value is not None})


def with_nan(row: int, value: float = torch.nan) -> torch.Tensor:
    x = torch.ones(3, 2)
    x[row, 1] = value
    return x


BAD_GRAPHS = {
    "no graph": (None, r"the graph is a NoneType.*expected a torch_geometric.data.Data.*Data\(x=x"),
    "an edge_index": (EDGE_INDEX, r"the graph is a Tensor.*Data\(x=x"),
    "a networkx graph": (nx.path_graph(3), r"the graph is a Graph.*expected a torch_geometric.data.Data"),
    "a list of graphs": ([graph()], r"the graph is a list.*expected"),
    "no edge_index": (graph(edge_index=None), r"no edge_index.*expected an integer tensor of shape \[2, num_edges\]"),
    "edge_index as a list": (graph(edge_index=EDGE_INDEX.tolist()), r"edge_index"),
    "edge_index as an array": (graph(edge_index=EDGE_INDEX.numpy()), r"edge_index"),
    "edge_index of floats": (
        graph(edge_index=EDGE_INDEX.float()),
        r"torch.float32, expected.*edge_index.long\(\)",
    ),
    "edge_index of truth values": (graph(edge_index=EDGE_INDEX.bool()), r"dtype torch.bool, expected whole numbers"),
    "edge_index lying down": (
        graph(edge_index=torch.tensor([[0, 1], [1, 2], [2, 0]])),
        r"shape \[3, 2\], expected \[2, num_edges\].*edge_index.t\(\)",
    ),
    "edge_index of one dimension": (graph(edge_index=EDGE_INDEX[0]), r"shape \[4\], expected \[2, num_edges\]"),
    "edge_index of three dimensions": (graph(edge_index=EDGE_INDEX[None]), r"shape \[1, 2, 4\], expected"),
    "a node beyond the last": (
        graph(edge_index=EDGE_INDEX + 1),
        r"edge_index names node 3.* 3 nodes.*from 0 to 2",
    ),
    "a negative node": (graph(edge_index=EDGE_INDEX - 1), r"edge_index names node -1, but.* 3 nodes.*from 0 to 2"),
    "an edge in a graph of no nodes": (graph(x=torch.empty(0, 2)), r"names node 2, but the graph has 0 nodes"),
    "neither x nor num_nodes": (graph(x=None), r"neither x nor num_nodes.*Set data.num_nodes"),
    "num_nodes that x contradicts": (graph(num_nodes=4), r"x has 3 rows but the graph has 4 nodes"),
    "x as a list": (graph(x=[[1.0], [2.0], [3.0]], num_nodes=3), r"x is a list.*expected a tensor"),
    "x without dimensions": (graph(x=torch.tensor(1.0), num_nodes=3), r"x has shape \[\].*expected"),
    "x with NaN": (graph(x=with_nan(1)), r"NaN or infinite features in 1 rows, the first is row 1.*nan_to_num"),
    "x with inf": (graph(x=with_nan(2, torch.inf)), r"NaN or infinite features in 1 rows, the first is row 2"),
    "x with -inf": (graph(x=with_nan(0, -torch.inf)), r"NaN or infinite features in 1 rows, the first is row 0"),
    "edge_attr too short": (graph(edge_attr=torch.ones(3, 2)), r"edge_attr has 3 rows but edge_index has 4 edges"),
    "edge_weight too long": (graph(edge_weight=torch.ones(5)), r"edge_weight has 5 rows but edge_index has 4 edges"),
    "edge_weight as a list": (graph(edge_weight=[1.0] * 4), r"edge_weight is a list.*expected a tensor"),
    "edge_weight as one number": (graph(edge_weight=torch.tensor(2.0)), r"edge_weight has shape \[\].*expected"),
    "edge_attr with NaN": (graph(edge_attr=torch.full((4, 1), torch.nan)), r"edge_attr holds NaN or infinite"),
    "edge_weight with inf": (graph(edge_weight=torch.full((4,), torch.inf)), r"edge_weight holds NaN or infinite"),
}

BAD_QUERIES = {
    "a root beyond the last": (torch.tensor([0, 3]), r"the queried nodes names? node 3.* 3 nodes.*from 0 to 2"),
    "a negative root": (torch.tensor([-1]), r"the queried nodes names? node -1.* 3 nodes"),
    "no roots": (torch.empty(0, dtype=torch.long), r"no nodes were queried.*Pass None"),
    "roots of floats": (torch.tensor([0.0]), r"dtype torch.float32, expected whole numbers"),
    # mask.long() would ask for nodes 0 and 1 again and again.
    "a mask": (torch.tensor([True, False, True]), r"dtype torch.bool.*nonzero\(\)"),
    "roots as a list": ([0, 1], r"the queried nodes are a list, expected an integer tensor.*torch\.(as_)?tensor"),
    "roots as an array": (np.array([0, 1]), r"the queried nodes are a ndarray, expected an integer tensor"),
    "one root": (1, r"the queried nodes are a int, expected an integer tensor"),
    "a root without dimension": (
        torch.tensor(1),
        r"have shape \[\], expected an integer tensor.*\[num_queries\]",
    ),
    "a pair beyond the last": (torch.tensor([[0], [3]]), r"the query pairs names? node 3.* 3 nodes"),
    "a negative pair": (torch.tensor([[-2], [0]]), r"the query pairs names? node -2.* 3 nodes"),
    "no pairs": (torch.empty(2, 0, dtype=torch.long), r"no query pairs were given.*\[2, num_pairs\]"),
    "pairs lying down": (torch.zeros(4, 2, dtype=torch.long), r"shape \[4, 2\], expected.*\[2, num_pairs\]"),
    "pairs of floats": (torch.tensor([[0.0], [1.0]]), r"dtype torch.float32, expected whole numbers"),
    "a second color beyond the last": (torch.tensor([[0], [0], [3]]), r"the queries names? node 3.* 3 nodes"),
    "no triples": (torch.empty(3, 0, dtype=torch.long), r"no queries were given.*\[3, num_queries\]"),
    "triples of floats": (torch.zeros(3, 1), r"dtype torch.float32, expected whole numbers"),
    "quadruples": (
        torch.zeros(4, 4, dtype=torch.long),
        r"shape \[4, 4\], expected.*\[2, num_pairs\].*\[3, num_queries",
    ),
    "three dimensions": (torch.zeros(1, 2, 3, dtype=torch.long), r"shape \[1, 2, 3\], expected"),
}

FUNCTIONS = {"identity_graph": identity_graph, "identity_cost": identity_cost, "ego_networks": ego_networks}


@pytest.fixture(params=FUNCTIONS.values(), ids=FUNCTIONS.keys())
def function(request):
    return request.param


@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_a_bad_graph_is_refused(function, name):
    data, says = BAD_GRAPHS[name]
    with pytest.raises(ValueError, match=says):
        function(data, 3)


@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_queries_are_refused(function, name):
    queries, says = BAD_QUERIES[name]
    with pytest.raises(ValueError, match=says):
        function(graph(), 3, queries)


@pytest.mark.parametrize("num_layers", [0, -1, 2.5, 3.0, True, "3", None, torch.tensor(3)])
def test_a_number_of_layers_below_one_is_refused(function, num_layers):
    says = rf"num_layers is {re.escape(repr(num_layers))}, expected a whole number of at least 1"
    with pytest.raises(ValueError, match=says):
        function(graph(), num_layers)
    with pytest.raises(ValueError, match=says):
        ToIdentityGraph(num_layers)


def test_a_whole_number_of_numpy_is_a_whole_number(function):
    assert function(graph(), np.int64(3)) is not None


def test_queries_of_a_graph_without_nodes_are_outside_of_it(function):
    nothing = Data(num_nodes=0, edge_index=torch.empty(2, 0, dtype=torch.long))
    with pytest.raises(ValueError, match=r"names? node 0, but the graph has 0 nodes") as refused:
        function(nothing, 3, torch.tensor([0]))
    assert "0 to -1" not in str(refused.value)


def test_the_transform_says_which_attribute_is_missing():
    with pytest.raises(ValueError, match=r"no attribute 'edge_label_index'.*it has \['edge_index', 'x'\].*leave"):
        ToIdentityGraph(3, queries="edge_label_index")(graph())


def test_the_transform_refuses_bad_queries_of_a_graph():
    with pytest.raises(ValueError, match=r"the query pairs names? node 7"):
        ToIdentityGraph(3, queries="pairs")(graph(pairs=torch.tensor([[0], [7]])))


def test_queries_outside_a_batch_are_refused():
    batch = Batch.from_data_list([graph(), graph()])
    assert identity_graph(batch, 2, torch.tensor([5])).query_row.numel() == 1
    with pytest.raises(ValueError, match=r"names? node 6.* 6 nodes"):
        identity_graph(batch, 2, torch.tensor([6]))


def test_edge_attributes_that_are_none_are_none(function):
    assert function(Data(x=torch.ones(3, 2), edge_index=EDGE_INDEX, edge_attr=None), 2) is not None


@pytest.mark.parametrize(
    ("queries", "given"),
    [(torch.tensor([0, 1]), "a Tensor"), ([0, 1], "a list"), (0, "a int"), (("a", "to", "b"), "a tuple")],
)
def test_the_transform_takes_queries_by_the_name_of_an_attribute(queries, given):
    with pytest.raises(ValueError, match=rf"queries is {given}, expected a text: the name of the attribute of a graph"):
        ToIdentityGraph(3, queries=queries)
