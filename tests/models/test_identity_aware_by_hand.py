"""`identity_aware` computes the equations, written out by hand."""

from __future__ import annotations

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.nn import GCNConv, SAGEConv
from torch_geometric.utils import scatter, softmax

from idgnn.models.identity_aware import identity_aware
from tests.models.wrapped import EDGES, NUM_NODES, PNA, features

pytestmark = pytest.mark.usefixtures("double")


def test_gcn_colors_all_messages_also_that_of_the_loop_it_adds() -> None:
    layer, x = GCNConv(4, 3), features()
    ours = identity_aware(layer)
    for weight in ours.color.parameters():
        nn.init.normal_(weight)
    colored = torch.arange(NUM_NODES) == 0
    sent = torch.where(colored[:, None], x @ (torch.eye(4) + ours.color.delta).t() + ours.color.bias, x)
    loops = EDGES[:, EDGES[0] != EDGES[1]].size(1)
    assert loops < EDGES.size(1)  # there are loops already, which GCN keeps once
    adjacency = torch.zeros(NUM_NODES, NUM_NODES)
    for source, target in EDGES.t().tolist():
        adjacency[target, source] += source != target
    adjacency += torch.eye(NUM_NODES)
    scale = adjacency.sum(1).rsqrt()
    expected = (scale[:, None] * adjacency * scale) @ sent @ layer.lin.weight.t() + layer.bias
    torch.testing.assert_close(ours(x, EDGES, colored=colored), expected, rtol=0, atol=1e-12)


def test_sage_colors_its_messages_and_not_the_state_of_the_receiver() -> None:
    layer, x = SAGEConv(4, 3), features()
    ours = identity_aware(layer)
    for weight in ours.color.parameters():
        nn.init.normal_(weight)
    colored = torch.arange(NUM_NODES) == 2  # node 2 has a loop: that is a message, and colored
    sent = torch.where(colored[:, None], x + x @ ours.color.delta.t() + ours.color.bias, x)
    mean = scatter(sent[EDGES[0]], EDGES[1], dim_size=NUM_NODES, reduce="mean")
    expected = mean @ layer.lin_l.weight.t() + layer.lin_l.bias + x @ layer.lin_r.weight.t()
    torch.testing.assert_close(ours(x, EDGES, colored=colored), expected, rtol=0, atol=1e-12)


def test_pna_colors_the_sending_half_of_its_messages() -> None:
    layer = pyg.PNAConv(4, 3, ["sum"], ["identity"], PNA["deg"])
    x = features()
    ours = identity_aware(layer)
    for weight in ours.color.parameters():
        nn.init.normal_(weight)
    colored = torch.arange(NUM_NODES) == 2
    sent = torch.where(colored[:, None], ours.color(x), x)
    message = layer.pre_nns[0](torch.cat([x[EDGES[1]], sent[EDGES[0]]], dim=-1))
    gathered = scatter(message, EDGES[1], dim_size=NUM_NODES, reduce="sum")
    expected = layer.lin(layer.post_nns[0](torch.cat([x, gathered], dim=-1)))
    torch.testing.assert_close(ours(x, EDGES, colored=colored), expected, rtol=0, atol=1e-12)


def test_rgat_colors_attention_on_the_sending_side() -> None:
    """The edge update of a layer without pairs: its `_j` half comes from the colored states."""
    layer, x, edge_type = pyg.RGATConv(4, 3, num_relations=2), features(), torch.arange(EDGES.size(1)) % 2
    ours = identity_aware(layer)
    for weight in ours.color.parameters():
        nn.init.normal_(weight)
    colored = torch.arange(NUM_NODES) == 2
    sent = torch.where(colored[:, None], ours.color(x), x)
    received = torch.einsum("ef,efo->eo", x[EDGES[1]], layer.weight[edge_type])
    sending = torch.einsum("ef,efo->eo", sent[EDGES[0]], layer.weight[edge_type])
    alpha = nn.functional.leaky_relu(received @ layer.q + sending @ layer.k, 0.2)
    alpha = softmax(alpha, EDGES[1], num_nodes=NUM_NODES)
    expected = scatter(alpha * sending, EDGES[1], dim_size=NUM_NODES, reduce="sum") + layer.bias
    torch.testing.assert_close(ours(x, EDGES, edge_type, colored=colored), expected, rtol=0, atol=1e-12)
