"""HeteroIDGNN equals its equations on one colored copy of the graph per query, in every form of its rounds."""

from dataclasses import replace

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch.nn.functional import layer_norm
from torch_geometric.data import HeteroData

from idgnn import HeteroConfig, HeteroIDGNN
from idgnn.identity.hetero.forward import ForwardSearch
from idgnn.identity.schedule_builder import make_schedule
from idgnn.layers.gin import IdentityGINE
from idgnn.models.hetero.layer import FusedLayer
from tests.laws import brute_force
from tests.laws.hetero_graphs import as_typed_pairs, hetero_graphs, typed_queries

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
WIDTH = 3


def copy_of_graph(model: HeteroIDGNN, data: HeteroData, root: str, colored: Tensor) -> dict[str, Tensor]:
    """The encoder on one copy of the graph, in dense matrices: nothing here calls the library's rounds."""
    kinds = data.node_types
    h = {}
    for number, kind in enumerate(kinds):
        h[kind] = model.constant[number].expand(data[kind].num_nodes, -1)
        if kind in model.lin_in:
            h[kind] = h[kind] + data[kind].x @ model.lin_in[kind].weight.t() + model.lin_in[kind].bias
        if kind in model.embedding:
            h[kind] = h[kind] + model.embedding[kind].weight[: data[kind].num_nodes]
    marks = {kind: colored if kind == root else torch.zeros(len(h[kind]), dtype=torch.bool) for kind in kinds}
    for layer in model.layers:
        attention = getattr(layer, "attention", None)
        total = {}
        for kind in kinds:
            arriving = []  # (whether any message arrives at each node, what does, its score)
            for number, edge_type in enumerate(data.edge_types):
                if edge_type[2] != kind:
                    continue
                value = one_edge_type(model, layer, number, data, h, marks)
                degree = torch.bincount(data[edge_type].edge_index[1], minlength=len(h[kind]))
                score = 0 if attention is None else (value.tanh() * attention[number]).sum(-1, keepdim=True)
                arriving.append((degree[:, None] > 0, value, score))
            total[kind] = h[kind].new_zeros(h[kind].shape)
            if attention is None:
                for _, value, _ in arriving:
                    total[kind] = total[kind] + value
            elif arriving:
                weight = torch.cat([s.exp() * there for there, _, s in arriving], dim=1)
                weight = weight / weight.sum(1, keepdim=True).clamp(min=1e-300)
                for place, (_, value, _) in enumerate(arriving):
                    total[kind] = total[kind] + weight[:, place, None] * value
        after = {}
        for number, kind in enumerate(kinds):
            out = h[kind] @ layer.weight_self[number].t() + total[kind] + layer.bias[number]
            if layer.update_colored is not None:
                own = h[kind] @ layer.update_colored[layer.update_place[number]].t()
                out = torch.where(marks[kind][:, None], out + own, out)
            out = layer_norm(out, (WIDTH,), layer.scale[number], layer.shift[number]).relu()
            after[kind] = out + h[kind] if layer.residual else out
        h = after
    return {kind: value @ model.lin_out.weight.t() + model.lin_out.bias for kind, value in h.items()}


def one_edge_type(
    model, layer, number: int, data: HeteroData, h: dict[str, Tensor], marks: dict[str, Tensor]
) -> Tensor:
    """What the messages of one edge type come to at each node of its target type."""
    edge_type = data.edge_types[number]
    source, _, target = edge_type
    edges = data[edge_type].edge_index
    if model.config.conv == "linear":
        if isinstance(layer, FusedLayer):
            plain, second = layer.weight[number], layer.weight_colored
            second = None if second is None else second[layer.place[number]]
        else:
            plain, second = layer.operators[number].weight, layer.operators[number].weight_colored
        sent = h[source] @ plain.t()
        if second is not None:
            sent = torch.where(marks[source][:, None], h[source] @ second.t(), sent)
        adjacency = torch.zeros(len(h[target]), len(sent), dtype=torch.double)
        for one, other in edges.t().tolist():
            adjacency[other, one] += 1
        return adjacency @ sent / (adjacency.sum(1, keepdim=True).clamp(min=1) if model.config.aggr == "mean" else 1)
    # The nodes of all types as one graph, with the edges of this type alone.
    first, start = {}, 0
    for kind in data.node_types:
        first[kind], start = start, start + len(h[kind])
    pairs = [(one + first[source], other + first[target]) for one, other in edges.t().tolist()]
    joint, colored = torch.cat(list(h.values())), torch.cat([marks[kind] for kind in data.node_types])
    operator = layer.operators[number]
    if model.config.conv == "gat":
        out = attended(operator, joint, pairs, colored)
    elif isinstance(operator, IdentityGINE):
        out = brute_force.gine(operator, joint, pairs, colored, data[edge_type].edge_attr)
    else:
        equation = brute_force.sage if model.config.conv == "sage" else brute_force.gin
        out = equation(operator, joint, pairs, colored)
    return out[first[target] : first[target] + len(h[target])]


def attended(operator, h: Tensor, edges: list[tuple[int, int]], colored: Tensor) -> Tensor:
    """GAT over the messages of an edge type: a node is not among its own neighbors unless an edge says so."""
    messages = brute_force.sent(operator, h, colored).view(len(h), operator.heads, -1)
    asking = brute_force.linear(operator.lin, h).view(len(h), operator.heads, -1)
    out = []
    for node in range(len(h)):
        sources = [source for source, target in edges if target == node]
        parts = []
        for head in range(operator.heads):
            theirs = messages[sources, head]
            score = theirs @ operator.att_source[head] + asking[node, head] @ operator.att_target[head]
            score = torch.where(score > 0, score, operator.negative_slope * score)
            parts.append(torch.softmax(score, 0) @ theirs)
        out.append(torch.cat(parts))
    return torch.stack(out) + operator.bias


KINDS = [
    {"conv": "linear", "aggr": "mean"},
    {"conv": "linear", "aggr": "sum"},
    {"conv": "linear", "aggr": "mean", "combine": "attention"},
    {"conv": "sage", "aggr": "max"},
    {"conv": "sage", "aggr": "mean", "combine": "attention"},
    {"conv": "gat", "heads": 3},
    {"conv": "gin"},
    {"conv": "gine"},
]


def network(data: HeteroData, num_layers: int, draw, kinds=KINDS) -> HeteroIDGNN:
    without = draw(st.sampled_from([None, *data.node_types]))
    if without is not None:
        data[without].num_nodes = data[without].num_nodes
        del data[without].x
    sizes = {data.node_types[-1]: data[data.node_types[-1]].num_nodes + 1} if draw(st.booleans()) else {}
    chosen = draw(st.sampled_from(kinds))
    if chosen["conv"] == "gine":  # some edge types have features, others have none
        for kind in data.edge_types[:: draw(st.integers(1, 2))]:
            data[kind].edge_attr = torch.randn(data[kind].edge_index.size(1), 2, dtype=torch.double)
        if not data.edge_types:
            chosen = {"conv": "gin"}
    config = HeteroConfig(
        hidden_channels=WIDTH,
        out_channels=2,
        num_layers=num_layers,
        color=draw(st.sampled_from(["message", "message+update"])),
        residual=draw(st.booleans()),
        num_embeddings=sizes,
        **chosen,
    )
    model = HeteroIDGNN.for_data(data, config).double()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    return model


def gradients(model: HeteroIDGNN, out: Tensor) -> list[Tensor]:
    weights = torch.linspace(-1, 1, out.numel(), dtype=torch.double).view_as(out)
    found = torch.autograd.grad((out * weights).sum(), list(model.parameters()), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for g, p in zip(found, model.parameters(), strict=True)]


def in_form(model: HeteroIDGNN, data: HeteroData, asked, exchange: bool, forward: bool = False) -> Tensor:
    """The answers where every round exchanges messages, or none does; with rows found by a search from the colors."""
    index = model.index(data)
    queries = index.queries(asked)
    joined, found = queries.joined(index.typed), (None, None)
    if forward:
        found = ForwardSearch.of(index.graph, index.typed, queries.read, model.num_layers).run(joined)
    rounds = make_schedule(
        index.graph, joined, model.num_layers, exchange=exchange, gradients=False, cone=found[0], changed=found[1]
    )
    return model.run(index.ready(rounds))


@pytest.mark.parametrize("chosen", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
@settings(max_examples=12)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 5))
def test_every_form_equals_colored_copies(chosen, data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, root, pairs = as_typed_pairs(graph, asked)
    model = network(graph, num_layers, data.draw, [chosen])
    nodes = torch.arange(graph[root].num_nodes)
    expected = torch.stack([copy_of_graph(model, graph, root, nodes == color)[read][node] for node, color in pairs])
    theirs = gradients(model, expected)
    outs = [model(graph, asked), in_form(model, graph, asked, False)]
    if model.sums:
        outs.append(in_form(model, graph, asked, True))
        outs.append(in_form(model, graph, asked, True, forward=True))
    outs.append(in_form(model, graph, asked, False, forward=True))
    for out in outs:
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)
        for ours, other in zip(gradients(model, out), theirs, strict=True):
            torch.testing.assert_close(ours, other, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model.embed(graph, asked), expected.detach(), rtol=0, atol=1e-10)


@settings(max_examples=25)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 4))
def test_equal_weights_give_back_the_plain_network(data, graph, num_layers):
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, _, pairs = as_typed_pairs(graph, asked)
    model = network(graph, num_layers, data.draw)
    plain = HeteroIDGNN.for_data(graph, replace(model.config, identity="none")).double()
    state = model.state_dict()
    for name in [name for name in state if "colored" in name]:
        if "update" in name:
            state[name].zero_()
            continue
        twin = name.replace("_colored", "")
        if twin in state:
            state[name].copy_(state[twin])
        else:  # GINE's plain message is the state itself
            torch.nn.init.eye_(state[name])
    plain.load_state_dict({name: value for name, value in state.items() if "colored" not in name})
    expected = plain(graph, (read, [node for node, _ in pairs]))
    torch.testing.assert_close(model(graph, asked), expected, rtol=0, atol=1e-10)


@settings(max_examples=25)
@given(data=st.data(), graph=hetero_graphs(), num_layers=st.integers(1, 4))
def test_the_future_never_changes_an_answer(data, graph, num_layers):
    """Nodes and edges of the future, and the features of such nodes, may be anything."""
    asked = data.draw(typed_queries(graph, num_layers))
    if asked is None:
        return
    read, root, _ = as_typed_pairs(graph, asked)
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 100)))
    strict, now = data.draw(st.booleans()), 5
    for kind in graph.edge_types:  # every other edge is of the future; at the very time it depends on `strict`
        edges = graph[kind].edge_index.size(1)
        graph[kind].time = torch.where(torch.arange(edges) % 2 == 0, now - 1, now if strict else now + 1)
    late = data.draw(st.sampled_from([None, *(kind for kind in graph.node_types if kind not in (read, root))]))
    if late is not None:
        graph[late].time = torch.full((graph[late].num_nodes,), now if strict else now + 1)
    model = network(graph, num_layers, data.draw)
    options = {"query_time": now, "strict": strict}
    before = model(graph, asked, **options)
    other = graph.clone()
    for kind in other.edge_types:
        future = (other[kind].time >= now if strict else other[kind].time > now).nonzero().flatten()
        for row, name in ((0, kind[0]), (1, kind[2])):
            if other[name].num_nodes:
                other[kind].edge_index[row, future] = torch.randint(
                    other[name].num_nodes, (future.numel(),), generator=generator
                )
    if late is not None and "x" in other[late]:
        other[late].x = torch.randn(other[late].x.shape, generator=generator, dtype=torch.double)
    assert torch.equal(model(other, asked, **options), before)
    # At the end of time everything is there.
    full = model(graph, asked, query_time=now + 2)
    torch.testing.assert_close(full, model(graph, asked), rtol=0, atol=1e-12)
