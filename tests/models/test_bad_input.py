"""Bad input to a model is refused with a ValueError that says what was given, what was expected and what to do."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GATv2Conv, GCNConv, MessagePassing

from idgnn import IDGNN, identity_graph
from idgnn.identity import cost
from tests.models.small_graphs import IDENTITIES, IN, PAIRS, ladder, network

DATA = ladder()
X, EDGE_INDEX, EDGE_ATTR = DATA.x, DATA.edge_index, DATA.edge_attr


def spoilt(values: torch.Tensor, number: float = torch.nan) -> torch.Tensor:
    values = values.clone()
    values[2] = number
    return values


# Each is passed to every version of the model.
BAD_GRAPHS = {
    "no x": ((None, EDGE_INDEX), r"x is a NoneType, expected a tensor.*torch.ones\(num_nodes, 1\)"),
    "x as a list": ((X.tolist(), EDGE_INDEX), r"x is a list, expected a tensor"),
    "x as an array": ((X.numpy(), EDGE_INDEX), r"x is a ndarray, expected a tensor"),
    "x of one dimension": ((X[:, 0], EDGE_INDEX), r"x has shape \[8\], expected \[num_nodes, 3\].*in_channels=3"),
    "x without dimension": ((X[0, 0], EDGE_INDEX), r"x has shape \[\], expected \[num_nodes"),
    "x of three dimensions": (
        (X[None], EDGE_INDEX),
        r"x has shape \[1, 8, 3\], expected \[num_nodes, 3\]|names node 7, but the graph has 1 nodes",
    ),
    "x too narrow": ((X[:, :2], EDGE_INDEX), r"x has shape \[8, 2\], expected \[num_nodes, 3\].*in_channels=3"),
    "x too wide": ((torch.ones(8, 13), EDGE_INDEX), r"x has shape \[8, 13\], expected \[num_nodes, 3\]"),
    "x of whole numbers": ((X.long(), EDGE_INDEX), r"x has dtype torch.int64, expected.*float"),
    "x in another precision": ((X.double(), EDGE_INDEX), r"x has dtype torch.float64, expected.*torch.float32"),
    "x with NaN": ((spoilt(X), EDGE_INDEX), r"NaN or infinite features in 1 rows, the first is row 2.*nan_to_num"),
    "x with inf": ((spoilt(X, torch.inf), EDGE_INDEX), r"NaN or infinite features in 1 rows, the first is row 2"),
    "too few rows of x": ((X[:5], EDGE_INDEX), r"edge_index names node 7, but the graph has 5 nodes"),
    "no edge_index": ((X, None), r"edge_index is a NoneType, expected an integer tensor"),
    "edge_index as a list": ((X, EDGE_INDEX.tolist()), r"edge_index is a list.*torch.as_tensor"),
    "edge_index of floats": ((X, EDGE_INDEX.float()), r"dtype torch.float32, expected whole.*edge_index.long\(\)"),
    "edge_index lying down": ((X, EDGE_INDEX.t()), r"shape \[22, 2\], expected \[2, num_edges\].*edge_index.t\(\)"),
    "a node that is not there": ((X, EDGE_INDEX + 1), r"names node 8, but the graph has 8 nodes.*from 0 to 7"),
    "a negative node": ((X, EDGE_INDEX - 1), r"names node -1, but the graph has 8 nodes.*from 0 to 7"),
}

BAD_QUERIES = {
    "a root that is not there": (torch.tensor([8]), r"names? node 8.* 8 nodes"),
    "a negative root": (torch.tensor([0, -1]), r"names? node -1.* 8 nodes"),
    "no roots": (torch.empty(0, dtype=torch.long), r"no nodes were queried"),
    "no pairs": (torch.empty(2, 0, dtype=torch.long), r"no query pairs were given"),
    "a pair that is not there": (torch.tensor([[0], [8]]), r"names? node 8.* 8 nodes"),
    "pairs lying down": (PAIRS.t(), r"shape \[5, 2\], expected.*\[2, num_pairs\]"),
    "roots as a list": ([0, 1], r"are a list, expected an integer tensor"),
    "roots of floats": (torch.tensor([0.5]), r"dtype torch.float32, expected whole numbers"),
}


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", BAD_GRAPHS)
def test_a_bad_graph_is_refused(name, identity):
    given, says = BAD_GRAPHS[name]
    for conv in ("gcn", GCNConv):
        with pytest.raises(ValueError, match=says):
            network(conv, identity)(*given)


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_queries_are_refused(name, identity):
    queries, says = BAD_QUERIES[name]
    with pytest.raises(ValueError, match=says):
        network("gin", identity)(X, EDGE_INDEX, queries=queries)


@pytest.mark.parametrize("engine", ["trimmed", "graph", "ego"])
@pytest.mark.parametrize("name", BAD_QUERIES)
def test_bad_queries_are_refused_by_every_engine(name, engine):
    queries, says = BAD_QUERIES[name]
    with pytest.raises(ValueError, match=says):
        network("gin")(X, EDGE_INDEX, queries=queries, engine=engine)


BAD_EDGES = {
    "weights of another precision": (
        "gcn",
        {"edge_weight": torch.ones(EDGE_INDEX.size(1), dtype=torch.double)},
        r"edge_weight has dtype torch.float64, expected a float tensor of the layer's dtype torch.float32",
    ),
    "features that are whole numbers": (
        "gine",
        {"edge_attr": torch.ones(EDGE_INDEX.size(1), 2, dtype=torch.long)},
        r"edge_attr has dtype torch.int64, expected a float tensor of the layer's dtype torch.float32. Convert it with",
    ),
    "edge_weight too short": ("gcn", {"edge_weight": torch.ones(3)}, r"edge_weight has 3 rows.* 22 edges"),
    "edge_weight as a column": (
        "gcn",
        {"edge_weight": torch.ones(22, 1)},
        r"edge_weight has shape \[22, 1\].*expected",
    ),
    "edge_weight as one number": ("gcn", {"edge_weight": torch.tensor(1.0)}, r"edge_weight has shape \[\].*expected"),
    "edge_weight as a list": ("gcn", {"edge_weight": [1.0] * 22}, r"edge_weight is a list.*expected"),
    "edge_weight with NaN": ("gcn", {"edge_weight": spoilt(torch.ones(22))}, r"edge_weight holds NaN or infinite"),
    "edge_weight nobody uses": ("gat", {"edge_weight": torch.ones(22)}, r"'gat' has no use for edge_weight"),
    "edge_attr nobody uses": ("gcn", {"edge_attr": EDGE_ATTR}, r"'gcn' has no use for edge_attr"),
    "no edge_attr": ("gine", {}, r"'gine' needs edge_attr of shape \[num_edges, edge_dim\]"),
    "edge_attr too long": ("gine", {"edge_attr": torch.ones(23, 2)}, r"edge_attr has 23 rows.* 22 edges"),
    "edge_attr too wide": ("gine", {"edge_attr": torch.ones(22, 3)}, r"edge_attr has shape \[22, 3\].*expected.* 2\]"),
    "edge_attr of one dimension": (
        "gine",
        {"edge_attr": torch.ones(22)},
        r"edge_attr has shape \[22\].*expected.* 2\]",
    ),
    "edge_attr with inf": ("gine", {"edge_attr": spoilt(EDGE_ATTR, torch.inf)}, r"edge_attr holds NaN or infinite"),
}


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", BAD_EDGES)
def test_bad_edges_are_refused(name, identity):
    conv, edge, says = BAD_EDGES[name]
    with pytest.raises(ValueError, match=says):
        network(conv, identity)(X, EDGE_INDEX, **edge)


BAD_BATCHES = {
    "too short": (torch.zeros(7, dtype=torch.long), r"batch has shape \[7\], expected \[8\]"),
    "a list": ([0] * 8, r"batch is a list.*expected"),
    "edges across graphs": (
        torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]),
        r"4 edges join nodes of different graphs, the first is edge 6: \[2, 4\]",
    ),
}


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("name", BAD_BATCHES)
def test_bad_batches_are_refused(name, identity):
    batch, says = BAD_BATCHES[name]
    with pytest.raises(ValueError, match=says):
        network(identity=identity)(X, EDGE_INDEX, batch=batch)


def test_layers_have_the_width_that_is_asked_for():
    model = network(lambda i, o: GATv2Conv(i, o, heads=2))
    with pytest.raises(ValueError, match=r"a layer of \d+ columns where \d+ were asked for.* o // 2"):
        model(X, EDGE_INDEX)


# --- Making a model

BAD_SETTINGS = {
    "no layers": ({"num_layers": 0}, r"num_layers is 0, expected a whole number of at least 1"),
    "fewer than none": ({"num_layers": -1}, r"num_layers is -1, expected"),
    "half a layer": ({"num_layers": 2.5}, r"num_layers is 2.5, expected"),
    "a truth value of layers": ({"num_layers": True}, r"num_layers is True, expected"),
    "an unknown conv": ({"conv": "gnc"}, r"conv is 'gnc', expected one of gcn, sage, gat, gin, gine.*identity_aware"),
    "no conv": ({"conv": None}, r"conv is None, expected one of gcn"),
    "a layer instead of its class": ({"conv": GCNConv(8, 8)}, r"conv is .*GCNConv\(8, 8\).*function|class"),
    "an unknown identity": ({"identity": "slow"}, r"identity is 'slow', expected one of full, fast, none"),
    "a truth value of identity": ({"identity": True}, r"identity is True, expected one of full, fast, none"),
    "an unknown scale": ({"identity": "fast", "cycle_scale": "lin"}, r"scale is 'lin', expected one of"),
    "no counts": ({"identity": "fast", "cycle_length": 0}, r"cycle_length is 0, expected.*at least 1"),
    "an unknown aggregation": ({"conv": "sage", "aggr": "min"}, r"aggr is 'min', expected 'max', 'mean' or 'sum'"),
    "heads that do not share the channels": ({"conv": "gat", "heads": 3}, r"is 8 and heads is 3"),
    "an unknown nonlinearity": ({"act": "tanh"}, r"act is 'tanh', expected one of 'relu', 'gelu', 'silu'"),
    "a text for a truth value": ({"residual": "no"}, r"residual is 'no', expected True or False"),
    "a number for a truth value": ({"normalize": 2}, r"normalize is 2, expected True or False"),
    "a text for a direction": ({"colors": 2, "directed": "no"}, r"directed is 'no', expected True or False"),
    "half a number of colors": ({"colors": 2.0}, r"colors is 2.0, expected 1 or 2"),
    "gine without edge_dim": ({"conv": "gine", "edge_dim": None}, r"'gine' needs edge_dim"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_refused(name):
    settings, says = BAD_SETTINGS[name]
    with pytest.raises(ValueError, match=says):
        IDGNN(IN, 8, 4, **settings)


# --- Prebuilt identity graphs, engines, counts


def test_a_graph_for_fewer_rounds_is_refused():
    graph = identity_graph(DATA, 2)
    with pytest.raises(ValueError, match=r"built for 2 rounds, but the model has 3.*num_layers=3"):
        network()(X, EDGE_INDEX, graph=graph)
    with pytest.raises(ValueError, match=r"built for 2 rounds, but the model has 3"):
        network(GCNConv)(X, EDGE_INDEX, graph=graph)


def test_a_graph_with_queries_is_refused():
    with pytest.raises(ValueError, match=r"both graph and queries were given.*Pass one of them"):
        network()(X, EDGE_INDEX, graph=identity_graph(DATA, 3), queries=PAIRS)


def test_a_graph_for_ego_networks_is_refused():
    with pytest.raises(ValueError, match=r"engine='ego' makes rows of its own.*Leave graph out"):
        network()(X, EDGE_INDEX, graph=identity_graph(DATA, 3), engine="ego")


@pytest.mark.parametrize("identity", ["none", "fast"])
def test_a_graph_for_a_model_that_has_no_use_for_it_is_refused(identity):
    with pytest.raises(ValueError, match=rf"identity='{identity}'.*identity='full'"):
        network(identity=identity)(X, EDGE_INDEX, graph=identity_graph(DATA, 3))


@pytest.mark.parametrize("given", [DATA, DATA.to_dict(), EDGE_INDEX], ids=["Data", "dict", "tensor"])
def test_a_graph_that_is_no_identity_graph_is_refused(given):
    with pytest.raises(ValueError, match=r"graph is a .*, expected.*identity_graph"):
        network()(X, EDGE_INDEX, graph=given)


def test_features_of_another_graph_are_refused():
    graph = identity_graph(DATA, 3)
    with pytest.raises(ValueError, match=rf"x has 5 rows, expected.*\(8\).*\({graph.num_nodes}\).*another graph"):
        network()(X[:5], EDGE_INDEX, graph=graph)
    with pytest.raises(ValueError, match=r"edge_attr has 5 rows, expected"):
        network("gine")(X, EDGE_INDEX, graph=graph, edge_attr=EDGE_ATTR[:5])


def test_edges_of_another_graph_are_refused():
    """The answer would be that of the identity graph, whatever the edges say."""
    graph = identity_graph(DATA, 3)
    with pytest.raises(ValueError, match=r"edge_index.*identity graph"):
        network()(X, EDGE_INDEX[:, :-2], graph=graph)
    other = EDGE_INDEX.clone()
    other[:, 0] = torch.tensor([0, 7])
    with pytest.raises(ValueError, match=r"edge_index.*identity graph"):
        network()(X, other, graph=graph)


@pytest.mark.parametrize(
    "name", [name for name in BAD_GRAPHS if name.startswith(("x ", "no x")) and name != "x without dimension"]
)
def test_bad_features_are_refused_on_a_prebuilt_graph_too(name):
    (x, _), says = BAD_GRAPHS[name]
    with pytest.raises(ValueError, match=r"x has 1 rows" if name == "x of three dimensions" else says):
        network()(x, EDGE_INDEX, graph=identity_graph(DATA, 3))


@pytest.mark.parametrize("identity", IDENTITIES)
def test_an_unknown_engine_is_refused(identity):
    with pytest.raises(ValueError, match=r"engine is 'fast', expected one of trimmed, exchange, graph, ego"):
        network(identity=identity)(X, EDGE_INDEX, engine="fast")


def test_trimming_is_not_for_layers_of_the_users_own():
    with pytest.raises(ValueError, match=r"engine='trimmed' is for the named layers.*engine='graph'"):
        network(GCNConv)(X, EDGE_INDEX, engine="trimmed")


def test_bad_counts_are_refused():
    model = network(identity="fast")
    with pytest.raises(ValueError, match=r"counts has shape \[8, 9\], expected \[num_nodes, 10\]"):
        model(X, EDGE_INDEX, counts=torch.ones(8, 9))
    with pytest.raises(ValueError, match=r"counts has shape \[7, 10\]"):
        model(X, EDGE_INDEX, counts=torch.ones(7, 10))
    with pytest.raises(ValueError, match=r"counts is a list"):
        model(X, EDGE_INDEX, counts=torch.ones(8, 10).tolist())
    with pytest.raises(ValueError, match=r"counts"):  # a model that would leave them out says so
        network(identity="full")(X, EDGE_INDEX, counts=torch.ones(8, 10))


def test_an_identity_graph_beyond_the_memory_is_refused_by_the_model(monkeypatch):
    monkeypatch.setattr(cost, "free_memory", lambda device: 3000)
    model = network("gin")
    with pytest.raises(ValueError, match=r"rows and .* edges and take .*, but 2.9 KiB are free.*AddCycleCounts"):
        model(X, EDGE_INDEX)
    small = Data(x=X[:2], edge_index=torch.tensor([[0, 1], [1, 0]]))
    assert model(small.x, small.edge_index).shape == (2, 4)


class ByOutDegree(MessagePassing):
    """Looks at edges that leave a node, which are not the same on an identity graph."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__(aggr="add")
        self.lin = torch.nn.Linear(in_channels, out_channels)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        out_degree = torch.bincount(edge_index[0], minlength=x.size(0)).clamp(min=1)
        return self.propagate(edge_index, x=self.lin(x) / out_degree.unsqueeze(-1))


def test_a_layer_that_would_not_be_exact_is_refused():
    with pytest.raises(ValueError, match="Chain"):
        network(ByOutDegree)(X, EDGE_INDEX)
    assert network(ByOutDegree, "none")(X, EDGE_INDEX).shape == (8, 4)


def test_a_layer_of_unknown_width_has_all_its_weights_at_once():
    model = network(ByOutDegree)
    assert sum(parameter.numel() for parameter in model.parameters()) > 0


def test_an_embedding_has_a_width():
    with pytest.raises(ValueError, match="out_channels is 0, expected a whole number of at least 1"):
        IDGNN(1, 8, 0)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"num_layers": 2}, r"prepared for 2 rounds of gcn with identity='full', but the model has 3 rounds of gcn"),
        ({"identity": "none"}, r"3 rounds of gcn with identity='none', but.*model.run\(model.prepare\("),
        ({"colors": 2}, r"with identity='full' and two colors \(second='neighbors'\), but"),
        ({"conv": "gin"}, r"3 rounds of gin"),
        ({"conv": GCNConv}, r"3 rounds of GCNConv"),
    ],
)
def test_what_another_network_prepared(other, said):
    model = IDGNN(IN, 8, 2)
    ready = IDGNN(IN, 8, 2, **other).prepare(X, EDGE_INDEX)
    with pytest.raises(ValueError, match=said):
        model.run(ready)
    alike = IDGNN(IN, 16, 4).prepare(X, EDGE_INDEX)  # of another width
    assert model.run(alike).shape == (8, 2)


@pytest.mark.parametrize("option", [{"second": "all"}, {"with_self": True}, {"directed": True}])
def test_what_was_prepared_for_other_second_nodes(option):
    ready = IDGNN(IN, 8, 2, colors=2).prepare(X, EDGE_INDEX)
    (name, value), model = next(iter(option.items())), IDGNN(IN, 8, 2, colors=2, **option)
    with pytest.raises(ValueError, match=rf"two colors \(second='neighbors'\), but .*{name}={value!r}"):
        model.run(ready)


@pytest.mark.parametrize("identity", ["none", "fast", "full"])
def test_triples_where_there_is_one_color(identity):
    with pytest.raises(ValueError, match=r"queries have shape \[3, 1\]: .* but the model has one color"):
        IDGNN(IN, 8, 2, identity=identity)(X, EDGE_INDEX, queries=torch.tensor([[0], [1], [2]]))


@pytest.mark.parametrize("number", [5.0, -1.0, 0.5])
def test_numbers_of_nodes_without_a_vector(number):
    model, data = IDGNN(1, 8, 2, num_embeddings=5), Data(edge_index=EDGE_INDEX[:, :0])
    data.x = torch.tensor([[4.0], [number]])
    with pytest.raises(ValueError, match=f"x holds {number:g} as the number of a node, expected whole numbers from 0"):
        model(data.x, data.edge_index)
    with pytest.raises(ValueError, match="Number the nodes as in training"):
        model.embed(data)


def test_numbers_of_numpy_are_numbers():
    model = IDGNN(IN, np.int64(8), np.int64(2), np.int64(2), colors=np.int64(2))
    assert model(X, EDGE_INDEX).shape == (8, 2)
    assert "2 rounds of gcn" in model.kind
