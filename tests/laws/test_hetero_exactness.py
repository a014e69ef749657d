"""Identity graph, one colored copy per query and ego networks agree, outputs and gradients, on any schema."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv

from idgnn import identity_aware, identity_graph
from tests.laws.hetero_graphs import CHANNELS, as_typed_pairs, hetero_graphs, typed_queries

pytestmark = pytest.mark.filterwarnings(
    "ignore::idgnn.identity.identity_graph.UnreachedColorWarning", "ignore:There exist node types"
)
WIDTH = 3


class Net(nn.Module):
    """K rounds of a mean over each edge type; types that receive nothing keep their states."""

    def __init__(self, data: HeteroData, num_layers: int) -> None:
        super().__init__()
        self.start = nn.ModuleDict({kind: nn.Linear(CHANNELS, WIDTH) for kind in data.node_types})
        self.convs = nn.ModuleList(
            HeteroConv({kind: SAGEConv(WIDTH, WIDTH) for kind in data.edge_types}) for _ in range(num_layers)
        )

    def forward(self, x_dict, edge_index_dict):
        x = {kind: self.start[kind](x) for kind, x in x_dict.items()}
        for conv in self.convs:
            x = x | {kind: h.tanh() for kind, h in conv(x, edge_index_dict).items()}
        return x


def copy_of_graph(model, data: HeteroData, root: str, colored: Tensor) -> dict[str, Tensor]:
    """The network on one copy of the graph by its equations, in dense matrices: nothing here is the library's."""
    net = model.module
    x = {kind: data[kind].x @ net.start[kind].weight.t() + net.start[kind].bias for kind in data.node_types}
    for depth, conv in enumerate(net.convs):
        after: dict[str, list[Tensor]] = {}
        for kind in data.edge_types:
            source, _, target = kind
            layer, color = conv.convs[kind], color_of(model, depth, kind)
            sent = x[source]
            if source == root:
                sent = torch.where(colored[:, None], sent + sent @ color.delta.t() + color.bias, sent)
            adjacency = torch.zeros(x[target].size(0), sent.size(0), dtype=torch.double)
            for one, other in data[kind].edge_index.t().tolist():
                adjacency[other, one] += 1
            mean = adjacency @ sent / adjacency.sum(1, keepdim=True).clamp(min=1)
            out = mean @ layer.lin_l.weight.t() + layer.lin_l.bias + x[target] @ layer.lin_r.weight.t()
            after.setdefault(target, []).append(out)
        x = x | {kind: torch.stack(parts).sum(0).tanh() for kind, parts in after.items()}
    return x


def color_of(model, depth: int, kind):
    names = {name: index for index, name in enumerate(model.module.convs[depth].convs.keys())}
    maps = list(model.colors.convs.get_submodule(str(depth)).convs.children())
    return maps[names[kind]]


def ego(data: HeteroData, read: str, node: int, num_layers: int) -> tuple[HeteroData, dict[str, dict[int, int]]]:
    """The nodes that reach one node in K steps, and the edges between them, with numbers of their own."""
    near = {(read, node)}
    for _ in range(num_layers):
        near = near | {
            (kind[0], one)
            for kind in data.edge_types
            for one, other in data[kind].edge_index.t().tolist()
            if (kind[2], other) in near
        }
    number = {kind: {u: i for i, u in enumerate(sorted(u for k, u in near if k == kind))} for kind in data.node_types}
    small = HeteroData()
    for kind in data.node_types:
        small[kind].x = data[kind].x[list(number[kind])]
    for kind in data.edge_types:
        kept = [
            (number[kind[0]][one], number[kind[2]][other])
            for one, other in data[kind].edge_index.t().tolist()
            if one in number[kind[0]] and other in number[kind[2]]
        ]
        small[kind].edge_index = torch.tensor(kept, dtype=torch.long).view(-1, 2).t()
    return small, number


def wrapped(data: HeteroData, num_layers: int):
    torch.manual_seed(num_layers)
    model = identity_aware(Net(data, num_layers).double())
    for weight in model.colors.parameters():
        nn.init.normal_(weight)
    return model


def gradients(model, out: Tensor) -> list[Tensor]:
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.double).view_as(out)
    found = torch.autograd.grad((out * weights).sum(), list(model.parameters()), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, model.parameters(), strict=True)]


@settings(max_examples=40)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 5))
def test_identity_graph_equals_colored_copies_and_ego_networks(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, root, pairs = as_typed_pairs(graph, asked)
    model = wrapped(graph, num_layers)
    out = model(graph.x_dict, graph.edge_index_dict, queries=asked)
    nodes = torch.arange(graph[root].num_nodes)
    expected = torch.stack([copy_of_graph(model, graph, root, nodes == color)[read][node] for node, color in pairs])
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(gradients(model, out), gradients(model, expected), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-10)

    egos = []
    for node, color in pairs:
        small, number = ego(graph, read, node, num_layers)
        there = torch.tensor([u == color for u in number[root]], dtype=torch.bool)
        egos.append(copy_of_graph(model, small, root, there)[read][number[read][node]])
    torch.testing.assert_close(out, torch.stack(egos), rtol=0, atol=1e-10)

    by_hand = [
        model(graph.x_dict, graph.edge_index_dict, colored={root: nodes == color})[read][node] for node, color in pairs
    ]
    torch.testing.assert_close(out, torch.stack(by_hand), rtol=0, atol=1e-10)


@settings(max_examples=15)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 4))
def test_equal_weights_give_back_the_plain_network(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, _, pairs = as_typed_pairs(graph, asked)
    torch.manual_seed(0)
    net = Net(graph, num_layers).double()
    model = identity_aware(net)
    plain = net(graph.x_dict, graph.edge_index_dict)
    out = model(graph.x_dict, graph.edge_index_dict, queries=asked)
    torch.testing.assert_close(out, plain[read][[node for node, _ in pairs]], rtol=0, atol=1e-10)
    none = {kind: torch.zeros(graph[kind].num_nodes, dtype=torch.bool) for kind in graph.node_types}
    same = model(graph.x_dict, graph.edge_index_dict, colored=none)
    assert all(torch.equal(plain[kind], same[kind]) for kind in plain)


@settings(max_examples=15)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 4))
def test_a_graph_built_before_gives_the_same(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    model = wrapped(graph, num_layers)
    out = model(graph.x_dict, graph.edge_index_dict, queries=asked)
    built = identity_graph(graph, num_layers, asked)
    for x, edges in ((graph.x_dict, graph.edge_index_dict), (built.x_dict, built.edge_index_dict)):
        torch.testing.assert_close(model(x, edges, graph=built), out, rtol=0, atol=1e-10)
