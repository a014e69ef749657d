"""The encoder in its three versions: what it returns, and that it behaves as a module should."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATv2Conv, GCNConv, GINConv, GraphConv, SAGEConv

from idgnn import IDGNN, ToIdentityGraph, identity_graph
from idgnn.identity.identity_graph import UnreachedColorWarning
from tests.models.small_graphs import CONVS, HIDDEN, IDENTITIES, IN, OUT, PAIRS, edge_of, ladder, network


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_nodes_and_pairs_have_the_documented_shapes(conv, identity):
    data = ladder()
    model = network(conv, identity)
    edge = edge_of(conv, data)
    assert model(data.x, data.edge_index, **edge).shape == (8, OUT)
    assert model(data.x, data.edge_index, queries=torch.tensor([5, 5, 0]), **edge).shape == (3, OUT)
    pairs = model(data.x, data.edge_index, queries=PAIRS, **edge)
    assert pairs.shape == (5, model.pair_channels)
    assert model.pair_channels == (OUT if identity == "full" else 2 * OUT)


@pytest.mark.parametrize("identity", ["none", "fast"])
def test_without_full_a_pair_is_its_two_nodes_side_by_side(identity):
    data = ladder()
    model = network("gin", identity).eval()
    h = model(data.x, data.edge_index)
    expected = torch.cat([h[PAIRS[0]], h[PAIRS[1]]], dim=1)
    assert torch.equal(model(data.x, data.edge_index, queries=PAIRS), expected)
    roots = torch.tensor([3, 0, 3])
    assert torch.equal(model(data.x, data.edge_index, queries=roots), h[roots])


def test_out_channels_none_leaves_the_last_layer_out():
    data = ladder()
    model = IDGNN(IN, HIDDEN, None, num_layers=2).eval()
    out = model(data.x, data.edge_index)
    assert out.shape == (8, HIDDEN)
    assert model.pair_channels == HIDDEN
    torch.testing.assert_close(out.norm(dim=1), torch.ones(8))  # `normalize` is what remains at the end
    longer = IDGNN(IN, HIDDEN, None, num_layers=2, normalize=False).eval()
    longer.load_state_dict(model.state_dict())
    raw = longer(data.x, data.edge_index)
    torch.testing.assert_close(out, torch.nn.functional.normalize(raw))
    assert not torch.allclose(raw.norm(dim=1), torch.ones(8))


@pytest.mark.parametrize("scale", ["counts", "log", "walk"])
def test_fast_is_the_plain_network_on_features_and_closed_walk_counts(scale):
    """Powers of the adjacency matrix, one after the other."""
    data = ladder()
    model = network("sage", "fast", cycle_length=5, cycle_scale=scale).double().eval()
    adjacency = torch.zeros(8, 8, dtype=torch.double)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    step = adjacency / adjacency.sum(1, keepdim=True) if scale == "walk" else adjacency
    counts = torch.stack([torch.linalg.matrix_power(step, power).diagonal() for power in range(1, 6)], dim=1)
    features = counts.log1p() if scale == "log" else counts

    plain = IDGNN(IN + 5, HIDDEN, OUT, conv="sage", identity="none").double().eval()
    plain.load_state_dict(model.state_dict())
    expected = plain(torch.cat([data.x.double(), features], dim=1), data.edge_index)
    torch.testing.assert_close(model(data.x.double(), data.edge_index), expected, atol=1e-6, rtol=1e-6)
    given = model(data.x.double(), data.edge_index, counts=features)
    torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("conv", CONVS)
def test_without_features_full_tells_apart_what_plain_cannot(conv):
    """A node of a triangle and one of a hexagon: equal to any plain GNN, Figure 1 of the paper."""
    around = [torch.stack([torch.arange(size), (torch.arange(size) + 1) % size]) for size in (3, 6)]
    graphs = [
        Data(x=torch.ones(edges.size(1), IN), edge_index=torch.cat([edges, edges.flip(0)], dim=1)) for edges in around
    ]
    batch = Batch.from_data_list(graphs)
    edge = {"edge_attr": torch.ones(18, 2)} if conv == "gine" else {}
    for identity, differs in (("none", False), ("fast", True), ("full", True)):
        model = network(conv, identity).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.abs_()  # lest ReLU hides the difference
        out = model(batch.x.double(), batch.edge_index, **{name: value.double() for name, value in edge.items()})
        assert ((out[0] - out[3]).abs().max() > 1e-8) == differs, identity


# --- Prebuilt identity graphs


@pytest.mark.parametrize("queries", [None, torch.tensor([1, 6, 1]), PAIRS], ids=["nodes", "roots", "pairs"])
@pytest.mark.parametrize("conv", CONVS)
def test_features_per_row_are_features_per_node(conv, queries):
    data = ladder()
    model = network(conv).eval()
    edge = edge_of(conv, data)
    graph = identity_graph(data, 3, queries)
    expected = model(data.x, data.edge_index, queries=queries, **edge)
    for engine in ("trimmed", "graph"):
        per_node = model(data.x, data.edge_index, graph=graph, engine=engine, **edge)
        per_row = model(graph.x, graph.edge_index, graph=graph, engine=engine, **edge_of(conv, graph))
        assert torch.equal(per_node, per_row)
        torch.testing.assert_close(per_node, expected)


def test_other_features_on_a_prebuilt_graph_are_taken():
    """The graph holds the features it was built with; those that are passed are what counts."""
    data, other = ladder(), torch.randn(8, IN)
    model = network().eval()
    graph = identity_graph(data, 3)
    expected = model(other, data.edge_index)
    torch.testing.assert_close(model(other, data.edge_index, graph=graph), expected)


def test_a_graph_built_for_more_rounds_serves_as_well():
    data = ladder()
    for conv in CONVS:
        model = network(conv, num_layers=2).eval()
        expected = model(data.x, data.edge_index, **edge_of(conv, data))
        for engine in ("trimmed", "graph"):
            graph = identity_graph(data, 4)
            out = model(data.x, data.edge_index, graph=graph, engine=engine, **edge_of(conv, data))
            torch.testing.assert_close(out, expected)


@pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
def test_a_graph_built_for_more_rounds_answers_what_lies_in_between():
    """Of six steps on a path, four layers see nothing, though the graph for six has rows for it."""
    edges = torch.stack([torch.arange(6), torch.arange(1, 7)])
    data = Data(x=torch.randn(7, IN), edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    pairs = torch.tensor([[6, 4], [0, 0]])
    model = network("gin", num_layers=4).eval()
    expected = model(data.x, data.edge_index, queries=pairs)
    for engine in ("trimmed", "graph"):
        out = model(data.x, data.edge_index, graph=identity_graph(data, 6, pairs), engine=engine)
        torch.testing.assert_close(out, expected)


def test_a_loader_of_identity_graphs_feeds_a_model():
    graphs = [ladder(rungs, seed=rungs) for rungs in (2, 3, 4)]
    model = network("gine").eval()
    transform = ToIdentityGraph(3)
    (batch,) = DataLoader([transform(data) for data in graphs], batch_size=3)
    out = model(batch.x, batch.edge_index, edge_attr=batch.edge_attr, graph=batch)
    single = [model(data.x, data.edge_index, edge_attr=data.edge_attr) for data in graphs]
    torch.testing.assert_close(out, torch.cat(single))


def test_warns_of_queries_out_of_reach():
    edges = torch.stack([torch.arange(6), torch.arange(1, 7)])
    x = torch.randn(7, IN)
    model = network(num_layers=2)
    with pytest.warns(UnreachedColorWarning, match="1 of 2 queries.*more than 2 steps"):
        model(x, edges, queries=torch.tensor([[6, 1], [0, 0]]))


# --- Layers that are not ours


LAYERS = {
    "GCNConv": GCNConv,
    "SAGEConv": SAGEConv,
    "GATv2Conv": lambda i, o: GATv2Conv(i, o // 2, heads=2),
    "GINConv": lambda i, o: GINConv(nn.Sequential(nn.Linear(i, o), nn.ReLU(), nn.Linear(o, o))),
    "GraphConv": lambda i, o: GraphConv(i, o, aggr="max"),
}


@pytest.mark.parametrize("name", LAYERS)
def test_any_pyg_layer_gives_the_same_on_identity_graph_and_ego_networks(name):
    data = ladder()
    model = network(LAYERS[name]).double().eval()
    x = data.x.double()
    for queries in (None, torch.tensor([4, 0]), PAIRS):
        graph = model(x, data.edge_index, queries=queries)
        torch.testing.assert_close(graph, model(x, data.edge_index, queries=queries, engine="ego"))
        built = identity_graph(data, 3, queries)
        torch.testing.assert_close(graph, model(x, data.edge_index, graph=built))
        torch.testing.assert_close(graph, model(x, built.edge_index.clone(), graph=built))
    assert model(x, data.edge_index, queries=PAIRS).shape == (5, OUT)


@pytest.mark.parametrize("identity", ["none", "fast"])
def test_any_pyg_layer_runs_plain(identity):
    data = ladder()
    model = network(GCNConv, identity).eval()
    named = network("gcn", identity).eval()
    for mine, other in zip(model.convs, named.convs, strict=True):
        mine.lin.load_state_dict(other.operator.lin.state_dict())
    named.load_state_dict({name: value for name, value in model.state_dict().items() if "convs" not in name}, False)
    torch.testing.assert_close(model(data.x, data.edge_index), named(data.x, data.edge_index))


def test_edge_weights_reach_a_layer_that_takes_them():
    data = ladder()
    weight = torch.rand(data.num_edges) + 0.5
    model = network(GCNConv).eval()
    graph = model(data.x, data.edge_index, edge_weight=weight)
    torch.testing.assert_close(graph, model(data.x, data.edge_index, edge_weight=weight, engine="ego"))
    assert not torch.allclose(graph, model(data.x, data.edge_index))


# --- A module among modules


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_every_parameter_learns(conv, identity):
    """Asked for pairs: a node's own color is back at the node only after two rounds, or over a self-loop, so that of
    the last round's colored weights node queries have no use."""
    data = ladder()
    model = network(conv, identity).train()
    out = model(data.x, data.edge_index, queries=PAIRS, **edge_of(conv, data))
    (out * torch.randn_like(out)).sum().backward()
    idle = [name for name, parameter in model.named_parameters() if not parameter.grad.abs().max() > 0]
    assert not idle, f"no gradient reaches {idle}"


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_one_node_alone_trains(conv, identity):
    """BatchNorm over a single row has no variance; it must neither fail nor give NaN."""
    model = network(conv, identity).train()
    edge = {"edge_attr": torch.empty(0, 2)} if conv == "gine" else {}
    out = model(torch.randn(1, IN), torch.empty(2, 0, dtype=torch.long), **edge)
    out.sum().backward()
    assert out.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    assert all(buffer.isfinite().all() for buffer in model.buffers())


def test_training_takes_statistics_and_evaluation_leaves_them():
    data = ladder()
    model = network()
    before = model.norms[0].module.running_mean.clone()
    model.eval()(data.x, data.edge_index)
    assert torch.equal(model.norms[0].module.running_mean, before)
    model.train()(data.x, data.edge_index)
    assert not torch.equal(model.norms[0].module.running_mean, before)


def test_a_repeated_query_weighs_in_the_answers_not_in_the_statistics():
    data = ladder()
    one, more = network(), network()
    more.load_state_dict(one.state_dict())
    one.train()(data.x, data.edge_index, queries=torch.tensor([0, 5]))
    more.train()(data.x, data.edge_index, queries=torch.tensor([0, 5, 5, 5]))
    for mine, other in zip(one.buffers(), more.buffers(), strict=True):
        assert torch.equal(mine, other)


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", [*CONVS, GCNConv])
def test_state_dict_goes_round(conv, identity):
    data = ladder()
    first, second = network(conv, identity), network(conv, identity)
    first.train()(data.x, data.edge_index, **edge_of(conv, data))  # statistics of its own
    second.load_state_dict(first.state_dict())
    ours, theirs = (model.eval()(data.x, data.edge_index, **edge_of(conv, data)) for model in (first, second))
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("conv", CONVS)
def test_a_copy_is_the_same_model_and_another_one(conv, duplicate):
    data = ladder()
    model = network(conv).eval()
    expected = model(data.x, data.edge_index, **edge_of(conv, data))
    other = duplicate(model)  # after the model has seen a graph
    assert torch.equal(other(data.x, data.edge_index, **edge_of(conv, data)), expected)
    with torch.no_grad():
        other.lin_in.weight.add_(1)
    assert torch.equal(model(data.x, data.edge_index, **edge_of(conv, data)), expected)
    assert not torch.equal(other(data.x, data.edge_index, **edge_of(conv, data)), expected)


@pytest.mark.parametrize("identity", IDENTITIES)
def test_inference_mode_with_graphs_made_in_it(identity):
    """`@torch.inference_mode()` around an evaluation loop: the loader makes its batches inside."""
    model = network("gin", identity).eval()
    expected = model(ladder().x, ladder().edge_index)
    with torch.inference_mode():
        (batch,) = DataLoader([ladder()], batch_size=1)
        assert batch.edge_index.is_inference()
        found = model(batch.x, batch.edge_index)
        if identity == "full":
            again = model(batch.x, batch.edge_index, graph=identity_graph(batch, 3))
    torch.testing.assert_close(found.clone(), expected)
    if identity == "full":
        torch.testing.assert_close(again.clone(), expected)


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_autocast_to_bfloat16_trains_and_stays_close(conv, identity):
    data = ladder()
    model = network(conv, identity).eval()
    exact = model(data.x, data.edge_index, **edge_of(conv, data))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(data.x, data.edge_index, **edge_of(conv, data))
    assert (out - exact).abs().max() <= 0.05 * exact.abs().max().clamp(min=1)

    model.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(data.x, data.edge_index, queries=PAIRS, **edge_of(conv, data)).float().pow(2).sum()
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.dtype == torch.float32, name
        assert parameter.grad.isfinite().all(), name


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("conv", CONVS)
def test_a_network_of_half_precision_runs(conv, dtype):
    data = ladder()
    edge = edge_of(conv, data)
    model = network(conv).eval()
    exact = model(data.x, data.edge_index, **edge)
    out = model.to(dtype)(data.x.to(dtype), data.edge_index, **{name: each.to(dtype) for name, each in edge.items()})
    assert out.dtype == dtype and (out - exact).abs().max() <= 0.05 * exact.abs().max().clamp(min=1)


def test_autocast_with_edge_weights():
    data = ladder()
    model = network("gcn").eval()
    weight = torch.rand(data.num_edges, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        model(data.x, data.edge_index, edge_weight=weight).float().sum().backward()
    assert weight.grad.abs().max() > 0


@pytest.mark.parametrize("conv", CONVS)
def test_no_nodes_give_no_rows(conv):
    """As PyG's layers do; a filter can leave nothing of a graph."""
    edge = {"edge_attr": torch.empty(0, 2)} if conv == "gine" else {}
    for identity in IDENTITIES:
        model = network(conv, identity).eval()
        assert model(torch.empty(0, IN), torch.empty(2, 0, dtype=torch.long), **edge).shape == (0, OUT)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_edge_index_may_hold_any_whole_numbers(conv, identity, dtype):
    data = ladder()
    model = network(conv, identity).eval()
    expected = model(data.x, data.edge_index, **edge_of(conv, data))
    assert torch.equal(model(data.x, data.edge_index.to(dtype), **edge_of(conv, data)), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_a_gpu_gives_the_same_answers_and_gradients(conv, identity):
    data = ladder()
    model = network(conv, identity).double().eval()
    on_gpu = copy.deepcopy(model).cuda()
    for queries in (None, PAIRS):
        gradients = []
        for one, place in ((model, "cpu"), (on_gpu, "cuda")):
            moved = data.clone().to(place)
            moved.edge_attr = moved.edge_attr.double()
            asked = None if queries is None else queries.to(place)
            out = one(moved.x.double(), moved.edge_index, queries=asked, **edge_of(conv, moved))
            found = torch.autograd.grad(out.pow(2).sum(), list(one.parameters()), materialize_grads=True)
            gradients.append([value.detach().cpu() for value in (out, *found)])
        for ours, theirs in zip(*gradients, strict=True):
            torch.testing.assert_close(ours, theirs, atol=1e-9, rtol=1e-9)
