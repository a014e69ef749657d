r"""Proposition 1, first part. The ID-GNN version of GIN can differentiate any graph that GIN can differentiate:

.. math:: \textsc{Msg}_0^{(k)} = \textsc{Msg}_1^{(k)} \quad \text{makes of} \quad
    \mathbf{m}_s^{(k)} = \textsc{Msg}^{(k)}_{\mathbb{1}[s = v]}(\mathbf{h}_s^{(k-1)}) \text{ (Eq. 3)} \quad
    \text{the plain GNN} \quad \mathbf{m}_s^{(k)} = \textsc{Msg}^{(k)}(\mathbf{h}_s^{(k-1)}) \text{ (Eq. 1)}.

This holds for every architecture, and for every pair of a node that is read and a node that is colored. Numbers may be
added up in another order, so they agree to rounding in float64; the plain GNNs are those of PyG.
"""

import copy

import pytest
import torch
from torch import nn
from torch_geometric.nn import GAT, GCN, GIN, PNA, EdgeCNN, GATConv, GCNConv, GINConv, GINEConv, GraphSAGE, SAGEConv

from idgnn import IDGNN, IdentityConv, identity_aware, identity_graph
from tests.paper.awkward_graphs import AWKWARD, as_data, every_pair

WIDTH, EDGE_DIM, HEADS = 8, 3, 2
LAYERS = ["gcn", "sage max", "sage mean", "sage sum", "gat", "gin", "gine"]

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def identity_layer(name):
    conv, _, aggr = name.partition(" ")
    return IdentityConv(conv, WIDTH, WIDTH, aggr=aggr or "max", heads=HEADS, edge_dim=EDGE_DIM).double()


@torch.no_grad()
def with_equal_messages(module):
    """Gives colored messages the weights of plain ones."""
    for layer in module.modules():
        if isinstance(layer, IdentityConv):
            operator = layer.operator
            if layer.conv == "gine":  # its plain message takes the state as it is
                nn.init.eye_(operator.lin_colored.weight)
                operator.lin_edge_colored.load_state_dict(operator.lin_edge.state_dict())
            else:
                operator.lin_colored.load_state_dict(operator.lin.state_dict(), strict=operator.lin.bias is None)
    return module


@torch.no_grad()
def pyg_twin(layer):
    """The plain layer of PyG with the same weights."""
    operator = layer.operator
    if layer.conv == "gcn":
        twin = GCNConv(WIDTH, WIDTH)
        weights = {"lin.weight": operator.lin.weight, "bias": operator.bias}
    elif layer.conv == "sage":
        twin = SAGEConv(WIDTH, WIDTH, aggr=operator.aggr, project=True)
        aggregated, own = operator.lin_out.weight.split(WIDTH, dim=1)
        weights = {"lin.weight": operator.lin.weight, "lin.bias": operator.lin.bias, "lin_l.weight": aggregated}
        weights |= {"lin_l.bias": operator.lin_out.bias, "lin_r.weight": own}
    elif layer.conv == "gat":
        twin = GATConv(WIDTH, WIDTH // HEADS, heads=HEADS)
        weights = {"lin.weight": operator.lin.weight, "bias": operator.bias}
        weights |= {"att_src": operator.att_source[None], "att_dst": operator.att_target[None]}
    else:
        first = operator.lin_in if layer.conv == "gine" else operator.lin
        mlp = nn.Sequential(first, nn.ReLU(), operator.lin_out)
        weights = {f"nn.{name}": weight for name, weight in mlp.state_dict().items()} | {"eps": torch.zeros(1)}
        twin = GINConv(copy.deepcopy(mlp))  # a copy, because it draws new weights
        if layer.conv == "gine":
            twin = GINEConv(copy.deepcopy(mlp), edge_dim=EDGE_DIM)
            weights |= {"lin.weight": operator.lin_edge.weight, "lin.bias": operator.lin_edge.bias}
    twin = twin.double()
    twin.load_state_dict(weights)
    return twin


def random_data(graph):
    data = as_data(graph)
    data.x = torch.randn(data.num_nodes, WIDTH, dtype=torch.float64)
    data.edge_attr = torch.randn(data.num_edges, EDGE_DIM, dtype=torch.float64)
    return data


def edge_arguments(name, data):
    return {"edge_attr": data.edge_attr} if name == "gine" else {}


@pytest.mark.parametrize("graph", AWKWARD)
@pytest.mark.parametrize("name", LAYERS)
@torch.no_grad()
def test_equal_messages_give_back_the_layers_of_pyg(name, graph):
    data = random_data(AWKWARD[graph])
    pairs = every_pair(data.num_nodes)
    rows = identity_graph(data, num_layers=3, queries=pairs)
    h, plain = rows.x, data.x
    for _ in range(3):
        layer = with_equal_messages(identity_layer(name))
        h = layer(h, rows.edge_index, colored=rows.colored, **edge_arguments(name, rows)).relu()
        plain = pyg_twin(layer)(plain, data.edge_index, **edge_arguments(name, data)).relu()
    assert_same(h[rows.query_row], plain[pairs[0]])


@pytest.mark.parametrize("engine", ["trimmed", "graph", "ego"])
@pytest.mark.parametrize("name", LAYERS)
@torch.no_grad()
def test_equal_messages_make_of_id_gnn_full_the_plain_gnn(name, engine):
    conv, _, aggr = name.partition(" ")
    data = random_data(AWKWARD["random, doubled edges and self-loops"])
    made = {"conv": conv, "aggr": aggr or "max", "heads": HEADS, "edge_dim": EDGE_DIM}
    full, plain = (IDGNN(WIDTH, WIDTH, 4, identity=identity, **made).double().eval() for identity in ("full", "none"))
    with_equal_messages(full)
    shared = plain.state_dict().keys()
    plain.load_state_dict({key: weight for key, weight in full.state_dict().items() if key in shared})
    pairs = every_pair(data.num_nodes)
    expected = plain(data.x, data.edge_index, **edge_arguments(name, data))
    for queries, read in ((None, slice(None)), (pairs, pairs[0])):
        answers = full(data.x, data.edge_index, queries=queries, engine=engine, **edge_arguments(name, data))
        assert_same(answers, expected[read])


PYG_MODELS = {
    "GCN": lambda: GCN(WIDTH, 16, 3, 4),
    "GraphSAGE": lambda: GraphSAGE(WIDTH, 16, 2, 4, aggr="max", jk="lstm"),
    "GAT": lambda: GAT(WIDTH, 16, 3, 4, heads=2, norm="batch_norm"),
    "GATv2": lambda: GAT(WIDTH, 16, 2, 4, v2=True, jk="cat"),
    "GIN": lambda: GIN(WIDTH, 16, 3, 4, norm="batch_norm"),
    "PNA": lambda: PNA(WIDTH, 16, 2, 4, aggregators=["mean", "max"], scalers=["identity"], deg=torch.tensor([1, 4, 2])),
    "EdgeCNN": lambda: EdgeCNN(WIDTH, 16, 2, 4),
}


@pytest.mark.parametrize("name", PYG_MODELS)
@torch.no_grad()
def test_a_color_map_that_is_the_identity_gives_back_the_model(name):
    model = PYG_MODELS[name]().double().eval()
    aware = identity_aware(model)
    for graph in ("barbell", "random, directed", "isolated nodes", "no edges"):
        data = random_data(AWKWARD[graph])
        pairs = every_pair(data.num_nodes)
        expected = model(data.x, data.edge_index)
        assert_same(aware(data.x, data.edge_index), expected)
        assert_same(aware(data.x, data.edge_index, queries=pairs), expected[pairs[0]])


@pytest.mark.parametrize("name", [*LAYERS, *PYG_MODELS])
@torch.no_grad()
def test_messages_that_differ_do_not(name):
    data = random_data(AWKWARD["barbell"])
    if name in PYG_MODELS:
        model = PYG_MODELS[name]().double().eval()
        aware = identity_aware(model)
        aware(data.x, data.edge_index)  # some layers learn their width on the way
        for weight in aware.colors.parameters():
            nn.init.normal_(weight)
        found, expected = aware(data.x, data.edge_index), model(data.x, data.edge_index)
    else:
        layer, rows = identity_layer(name), identity_graph(data, num_layers=2)
        if name == "gine":
            nn.init.normal_(layer.operator.lin_colored.weight)
        found, expected = rows.x, data.x
        for _ in range(2):
            found = layer(found, rows.edge_index, colored=rows.colored, **edge_arguments(name, rows))
            expected = pyg_twin(layer)(expected, data.edge_index, **edge_arguments(name, data))
        found = found[rows.query_row]
    assert not torch.allclose(found, expected, rtol=1e-6, atol=1e-6)
