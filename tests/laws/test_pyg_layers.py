"""Without color, each named layer is the layer of PyG whose formula it shares."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, GINEConv, SAGEConv

from idgnn import IdentityConv
from tests.laws.graphs import CHANNELS, EDGE_DIM
from tests.laws.networks import KINDS, assert_same_function, layer


@torch.no_grad()
def pyg_twin(ours: IdentityConv) -> nn.Module:
    """PyG's layer with the weights of ours."""
    mine = ours.operator
    if ours.conv == "gcn":
        twin = GCNConv(CHANNELS, ours.out_channels).double()
        twin.lin.weight.copy_(mine.lin.weight)
        twin.bias.copy_(mine.bias)
    elif ours.conv == "sage":
        # PyG's projection keeps the width, so the formulas coincide for out_channels = in_channels.
        twin = SAGEConv(CHANNELS, CHANNELS, aggr=mine.aggr, project=True).double()
        twin.lin.load_state_dict(mine.lin.state_dict())
        twin.lin_l.weight.copy_(mine.lin_out.weight[:, :CHANNELS])
        twin.lin_r.weight.copy_(mine.lin_out.weight[:, CHANNELS:])
        twin.lin_l.bias.copy_(mine.lin_out.bias)
    elif ours.conv == "gat":
        twin = GATConv(CHANNELS, ours.out_channels // mine.heads, heads=mine.heads).double()
        twin.lin.weight.copy_(mine.lin.weight)
        twin.att_src.copy_(mine.att_source[None])
        twin.att_dst.copy_(mine.att_target[None])
        twin.bias.copy_(mine.bias)
    elif ours.conv == "gin":
        twin = GINConv(nn.Sequential(mine.lin, nn.ReLU(), mine.lin_out)).double()
        twin.eps.fill_(mine.eps)
    else:
        twin = GINEConv(nn.Sequential(mine.lin_in, nn.ReLU(), mine.lin_out), edge_dim=EDGE_DIM).double()
        twin.eps.fill_(mine.eps)
        twin.lin.load_state_dict(mine.lin_edge.state_dict())
    return twin


@pytest.mark.parametrize("identity", [True, False])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
@settings(max_examples=15)
@given(data=st.data())
def test_an_uncolored_layer_is_that_of_pyg(kind, identity, data):
    graph = data.draw(kind.graphs())
    ours = layer(kind, identity, out_channels=CHANNELS if kind.conv == "sage" else 4)
    twin = pyg_twin(ours)
    names = list(kind.edge(graph))
    inputs = [graph.x, *kind.edge(graph).values()]

    def run(conv):
        return lambda x, *edge: conv(x, graph.edge_index, **dict(zip(names, edge, strict=True)))

    assert_same_function(run(ours), run(twin), inputs, [], 1e-12)
