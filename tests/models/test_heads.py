"""From embeddings to predictions."""

from functools import partial

import pytest
import torch
from torch_geometric.data import Batch

from idgnn import GraphHead, IdentityConv, NodeHead, PairHead
from tests.models.small_graphs import PAIRS, ladder, network


def linears(module: torch.nn.Module) -> list[tuple[int, int]]:
    return [(part.in_features, part.out_features) for part in module.modules() if isinstance(part, torch.nn.Linear)]


def test_the_node_head_is_one_linear_layer():
    head = NodeHead(4, 3)
    x = torch.randn(5, 4)
    torch.testing.assert_close(head(x), x @ head.weight.t() + head.bias)


def test_the_pair_head_takes_what_the_encoder_gives():
    data = ladder()
    for identity in ("none", "fast", "full"):
        model = network("gin", identity)
        head = PairHead(model.pair_channels, 2)
        assert head(model(data.x, data.edge_index, queries=PAIRS)).shape == (5, 2)
    assert linears(PairHead(8, 2)) == [(8, 256), (256, 2)]
    assert linears(PairHead(8, 2, hidden_channels=None)) == [(8, 2)]


@pytest.mark.parametrize("make", [PairHead, GraphHead, partial(IdentityConv, "gin"), partial(IdentityConv, "sage")])
def test_an_unknown_nonlinearity_is_refused(make):
    with pytest.raises(ValueError, match="act is 'tanh', expected one of 'relu', 'gelu', 'silu'"):
        make(4, 4, act="tanh")


def test_the_graph_head_sums_the_nodes_of_each_graph():
    batch = Batch.from_data_list([ladder(2), ladder(3)])
    model, head = network().eval(), GraphHead(4, 2)
    h = model(batch.x, batch.edge_index)
    out = head(h, batch.batch)
    torch.testing.assert_close(out, head.mlp(torch.stack([h[:4].sum(0), h[4:].sum(0)])))
    assert linears(head) == [(4, 4), (4, 4), (4, 2)]
    assert linears(GraphHead(4, 2, hidden_channels=7)) == [(4, 7), (7, 7), (7, 2)]
    torch.testing.assert_close(head(h[:4], None), out[:1])


def test_the_graph_head_counts_graphs_without_nodes():
    head = GraphHead(4, 2)
    out = head(torch.randn(3, 4), torch.tensor([0, 0, 2]), batch_size=4)
    assert out.shape == (4, 2)
    torch.testing.assert_close(out[1], out[3])
