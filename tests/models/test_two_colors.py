"""Two colors of wrapped models, of layers that are not ours, in files, budgets and settings."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GIN, GraphConv, GraphSAGE

from idgnn import (
    IDGNN,
    IdentityConv,
    RootLoader,
    ToIdentityGraph,
    identity_aware,
    identity_cost,
    identity_graph,
    match_budget,
)
from idgnn.identity import cost
from idgnn.models.budget import num_parameters
from idgnn.models.embedding_memory import as_bytes
from idgnn.models.large_graph import LargeGraph
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.settings import ModelSettings
from tests.models.wrapped import EDGES, NUM_NODES, features

TRIPLES = torch.tensor([[0, 1, 2, 2, 6, 3, 0], [0, 3, 2, 2, 6, 4, 5], [1, 0, 3, 2, 0, 2, 1]])
pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def drawn(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.4)
    return model.double().eval()


def colors_of(first: int, second: int) -> Tensor:
    colored = torch.zeros(NUM_NODES, dtype=torch.long)
    colored[second], colored[first] = 2, 1
    return colored


def neighbors(node: int) -> list[int]:
    """In either direction; the node itself if it has none."""
    found = {b for a, b in EDGES.t().tolist() if a == node} | {a for a, b in EDGES.t().tolist() if b == node}
    return sorted(found - {node}) or [node]


def pooled(h: list[Tensor], pool: str) -> Tensor:
    stack = torch.stack(h)
    return {"sum": stack.sum(0), "mean": stack.mean(0), "max": stack.amax(0)}[pool]


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_a_wrapped_model_starts_as_what_it_was_or_as_its_sum_over_second_nodes(pool: str) -> None:
    plain, x = drawn(GIN(4, 8, num_layers=3)), features().double()
    found = identity_aware(plain, colors=2, pool=pool)(x, EDGES)
    times = torch.tensor([len(neighbors(node)) if pool == "sum" else 1 for node in range(NUM_NODES)])
    assert times.max() > 1 or pool != "sum"
    torch.testing.assert_close(found, times[:, None] * plain(x, EDGES))


def test_a_wrapped_layer_is_its_equation() -> None:
    """GraphConv: W_0 h_u + W_1 sum over s of (h_s + D_c h_s + b_c), where c is the color of s; updates add W_c h_u."""
    layer = identity_aware(GraphConv(3, 4), color="message+update", colors=2)
    x, colored = torch.randn(NUM_NODES, 3, dtype=torch.double), torch.tensor([0, 1, 2, 0, 2, 1, 0])
    layer.double()(x, EDGES, colored=colored)  # update maps get their widths
    drawn(layer)
    maps = {1: layer.color, 2: layer.color.second}
    sent = x.clone()
    for node, color in enumerate(colored.tolist()):
        if color:
            sent[node] = x[node] + maps[color].delta @ x[node] + maps[color].bias
    total = torch.zeros_like(x)
    for source, target in EDGES.t().tolist():
        total[target] += sent[source]
    conv = layer.module
    expected = total @ conv.lin_rel.weight.t() + conv.lin_rel.bias + x @ conv.lin_root.weight.t()
    for node, color in enumerate(colored.tolist()):
        if color:
            expected[node] = expected[node] + maps[color].update.weight @ x[node]
    torch.testing.assert_close(layer(x, EDGES, colored=colored), expected)
    assert torch.equal(layer(x, EDGES, colored=torch.zeros(NUM_NODES, dtype=torch.long)), conv(x, EDGES))


@pytest.mark.parametrize("color", ["message", "message+update"])
@pytest.mark.parametrize("kind", [GIN, GAT, GraphSAGE])
def test_a_wrapped_model_is_a_copy_for_each_query(kind, color: str) -> None:
    x = features().double()
    model = identity_aware(kind(4, 8, num_layers=3, out_channels=2), color=color, colors=2).double()
    model(x, EDGES)  # maps of unknown width get theirs
    drawn(model)

    def state(read: int, first: int, second: int) -> Tensor:
        return model(x, EDGES, colored=colors_of(first, second))[read]

    expected = torch.stack([state(*triple) for triple in TRIPLES.t().tolist()])
    torch.testing.assert_close(model(x, EDGES, queries=TRIPLES), expected)
    graph = identity_graph(Data(x=x, edge_index=EDGES), 3, TRIPLES)
    torch.testing.assert_close(model(x, EDGES, graph=graph), expected)
    data = Data(x=x, edge_index=EDGES)
    torch.testing.assert_close(model.embed(data, TRIPLES), expected)
    for pool in ("sum", "mean", "max"):
        model.pool = pool
        every = torch.stack([pooled([state(v, v, w) for w in neighbors(v)], pool) for v in range(NUM_NODES)])
        torch.testing.assert_close(model(x, EDGES), every)
        torch.testing.assert_close(model.embed(data), every)
        torch.testing.assert_close(model.run(model.prepare(x, EDGES)), every)
        pair = pooled([state(2, 2, 4), state(4, 4, 2)], pool).unsqueeze(0)
        torch.testing.assert_close(model(x, EDGES, queries=torch.tensor([[2], [4]])), pair)
        torch.testing.assert_close(model.run(LargeGraph(model, data).prepare(torch.tensor([3, 0]))), every[[3, 0]])


def test_layers_of_the_users_own_are_pooled_by_an_mlp() -> None:
    model = drawn(IDGNN(4, 8, 2, 3, GraphConv, colors=2, normalize=False))
    x = features().double()

    def state(read: int, first: int, second: int) -> Tensor:
        h = model.lin_in(x).relu()
        for conv, norm in zip(model.convs, model.norms, strict=True):
            h = norm(conv(h, EDGES, colored=colors_of(first, second))).relu()
        return model.before_pool(h[read])

    expected = torch.stack([pooled([state(v, v, w) for w in neighbors(v)], "sum") for v in range(NUM_NODES)])
    expected = model.lin_out(expected)
    for found in (model(x, EDGES), model(x, EDGES, engine="ego"), model.embed(Data(x=x, edge_index=EDGES))):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("second", ["neighbors", "all"])
def test_in_training_every_second_node_has_a_gradient(second: str) -> None:
    model = IDGNN(4, 8, 2, 3, "gin", colors=2, second=second).train()
    model(features(), EDGES).square().sum().backward()
    for name, parameter in model.named_parameters():
        if name == "convs.2.operator.update_second":
            continue  # the rows that answer have the first color
        assert parameter.grad is not None and (parameter.grad != 0).any(), name


def test_a_saved_model_gives_the_same(tmp_path: Path) -> None:
    model = IDGNN(
        4, 8, 2, 2, "gcn", colors=2, second="ball", radius=3, pool="max", with_self=True, directed=True
    ).eval()
    model.save(tmp_path)
    again, x = IDGNN.load(tmp_path), features()
    assert again.config == model.config
    assert torch.equal(again(x, EDGES), model(x, EDGES))


@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
@pytest.mark.parametrize("level", ["node", "pair", "graph"])
def test_networks_of_two_colors_match_the_budget(conv: str, level: str) -> None:
    one = ModelSettings(conv=conv, budget=64)  # type: ignore[arg-type]
    single = make_predictor(one, level, 3, 4, None)  # type: ignore[arg-type]
    double = make_predictor(replace(one, colors=2), level, 3, 4, None)  # type: ignore[arg-type]
    assert double.width < single.width
    assert abs(num_parameters(double) / num_parameters(single) - 1) < 0.2


def test_the_width_of_a_network_with_two_colors_is_found() -> None:
    gcn = IDGNN(1, 128, 10, identity="none")
    width = match_budget(lambda width: IDGNN(1, width, 10, colors=2), gcn, tolerance=0.02)
    assert width < match_budget(lambda width: IDGNN(1, width, 10), gcn, tolerance=0.02)


def test_links_without_direction_need_no_second_reading(tmp_path: Path) -> None:
    settings = ModelSettings(colors=2, width=8, layers=2)
    model = make_predictor(settings, "pair", 4, 1, None, symmetric=True).eval()
    assert not model.reads_both and not model.encoder.config.directed
    assert make_predictor(settings, "pair", 4, 1, None, symmetric=False).encoder.config.directed
    x, pairs = features(), torch.tensor([[0, 3], [2, 1]])
    ahead, back = (model(model.prepare(x, EDGES, queries=each), pairs[0], 1) for each in (pairs, pairs.flip(0)))
    torch.testing.assert_close(ahead, back)
    model.save(tmp_path)
    again = Predictor.load(tmp_path)
    torch.testing.assert_close(again(again.prepare(x, EDGES, queries=pairs), pairs[0], 1), ahead)


def test_what_does_not_fit_is_refused_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "free_memory", lambda device: 20_000)
    model, x = IDGNN(4, 8, 2, 3, colors=2), features()
    with pytest.raises(ValueError, match=r"two colors would have more than \d+ rows.*fewer layers.*second='neighbors'"):
        model(x, EDGES)
    assert IDGNN(4, 8, 2, 1)(x, EDGES).shape == (NUM_NODES, 2)


def test_an_embedding_that_does_not_fit_is_refused() -> None:
    spokes = torch.stack([torch.zeros(400, dtype=torch.long), torch.arange(1, 401)])
    star = Data(x=torch.ones(401, 1), edge_index=torch.cat([spokes, spokes.flip(0)], dim=1))
    model = IDGNN(1, 8, 2, 3, colors=2).eval()
    with pytest.raises(ValueError, match=r"one embedding alone has [\d,]+ states.*Networks with one color or fewer"):
        model.embed(star, memory="2MiB")
    ball = IDGNN(1, 8, 2, 3, colors=2, second="ball").eval()
    with pytest.raises(ValueError, match=r"one embedding alone has [\d,]+ states.*second='neighbors', one color"):
        ball.embed(star, memory="2MiB")
    spokes = torch.tensor([(401 + hub, leaf) for hub in range(4) for leaf in range(100 + 100 * hub)]).T
    hubs = Data(x=torch.ones(405, 1), edge_index=torch.cat([spokes, spokes.flip(0)], dim=1))
    given = as_bytes("4MiB", torch.device("cpu"))
    with pytest.raises(ValueError, match="one embedding alone") as refusal:
        model.embed(hubs, memory=given)
    more = re.search(r"Give ([\d.]+ [KMG]iB) more", str(refusal.value))
    assert more is not None
    model.embed(hubs, memory=given + as_bytes(more[1], torch.device("cpu")))
    leaves = torch.arange(1, 20)
    found = model.embed(star, leaves, memory="2MiB")
    torch.testing.assert_close(found, model(star.x, star.edge_index, queries=leaves))


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_a_graph_without_nodes_has_no_embeddings(pool) -> None:
    model = IDGNN(1, 8, 4, conv="gin", colors=2, pool=pool).eval()
    assert model(torch.ones(0, 1), torch.empty(2, 0, dtype=torch.long)).shape == (0, 4)


def test_batches_of_triples_are_those_of_the_whole_graph() -> None:
    model = drawn(IDGNN(features().size(1), 8, 4, conv="gin", colors=2))
    x = features().double()
    loader = RootLoader(Data(x=x, edge_index=EDGES), model, TRIPLES, batch_size=3)
    found = {int(i): row for batch in loader for i, row in zip(batch.index, model.run(batch.ready), strict=True)}
    assert len(found) == TRIPLES.size(1)
    for i, query in enumerate(TRIPLES.t()):
        torch.testing.assert_close(found[i], model(x, EDGES, queries=query.view(3, 1))[0])


@pytest.mark.parametrize("option", [{"second": "ball"}, {"radius": 3}, {"pool": "max"}, {"with_self": True}])
def test_options_of_two_colors_are_refused_with_one(option) -> None:
    [(name, value)], one = option.items(), r"no effect on a single color. Add colors=2 \(--colors 2\), or leave it out"
    made = [
        lambda: IDGNN(4, 8, 2, **option),
        lambda: ModelSettings(**option),
        lambda: identity_aware(GIN(4, 8, 3), **option),
        lambda: ToIdentityGraph(3, **option),
    ]
    for make in made[: 3 if name == "pool" else 4]:
        with pytest.raises(ValueError, match=f"{name}={value!r} has {one}"):
            make()
    option = {"second": "ball", **option} if name == "radius" else option
    settings = ModelSettings(colors=2, **option)  # the plain GCN that its budget is counted with has one color
    assert make_predictor(settings, "node", 4, 2, None).encoder.colors == 2


def test_bad_input_is_refused() -> None:
    x = features()
    with pytest.raises(ValueError, match="colors is 3, expected 1 or 2"):
        IDGNN(4, 8, 2, colors=3)
    with pytest.raises(ValueError, match="colors is 2, but identity is 'fast'"):
        IDGNN(4, 8, 2, identity="fast", colors=2)
    with pytest.raises(ValueError, match="colors is 2, but identity is 'none'"):
        ModelSettings(identity="none", colors=2)
    with pytest.raises(ValueError, match="pool is 'median', expected one of 'sum', 'mean', 'max'"):
        IDGNN(4, 8, 2, colors=2, pool="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"GraphConv is a layer, .* reads no second nodes"):
        identity_aware(GraphConv(4, 8), colors=2, pool="mean")
    for model in (IDGNN(4, 8, 2, colors=2), identity_aware(GIN(4, 8, 3), colors=2)):
        with pytest.raises(ValueError, match="the queried nodes are a list, expected an integer tensor"):
            model(x, EDGES, queries=[1, 2])
    with pytest.raises(ValueError, match=r"the model has one color.*colors=2"):
        IDGNN(4, 8, 2)(x, EDGES, queries=TRIPLES)
    with pytest.raises(ValueError, match=r"the model has one color.*colors=2"):
        IDGNN(4, 8, 2).embed(Data(x=x, edge_index=EDGES), TRIPLES)
    graph = identity_graph(Data(x=x, edge_index=EDGES), 3, TRIPLES)
    for model in (IDGNN(4, 8, 2), identity_aware(GIN(4, 8, 3))):
        with pytest.raises(ValueError, match="two colors, but the model has one"):
            model(x, EDGES, graph=graph)
    one = identity_graph(Data(x=x, edge_index=EDGES), 3)
    for model in (IDGNN(4, 8, 2, colors=2), identity_aware(GIN(4, 8, 3), colors=2)):
        with pytest.raises(ValueError, match=r"one color, but the model has two.*ToIdentityGraph\(3, colors=2"):
            model(x, EDGES, graph=one)
    with pytest.raises(ValueError, match=r"names color 2, expected 0 for none up to 1.*colors=2"):
        IdentityConv("gcn", 4, 8)(x, EDGES, colored=torch.full((NUM_NODES,), 2))
    with pytest.raises(ValueError, match="two colors are given to a module with one"):
        identity_aware(GraphConv(4, 8))(x, EDGES, colored=torch.full((NUM_NODES,), 2))


def test_one_color_by_numbers_is_one_color_by_truth_values() -> None:
    layer, x = IdentityConv("gin", 4, 8, color="message+update"), features()
    mask = torch.tensor([True, False, False, True, False, False, False])
    assert torch.equal(layer(x, EDGES, colored=mask.long()), layer(x, EDGES, colored=mask))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
@pytest.mark.parametrize("second", ["neighbors", "ball", "all"])
def test_a_gpu_gives_the_same(conv: str, second: str) -> None:
    model, x = drawn(IDGNN(4, 8, 2, 3, conv, colors=2, second=second)), features().double()  # type: ignore[arg-type]
    data = Data(x=x, edge_index=EDGES)
    graph, cost_here = identity_graph(data, 3, TRIPLES), identity_cost(data, 3, TRIPLES)
    there = data.clone().to("cuda")
    graph_there = identity_graph(there, 3, TRIPLES.to("cuda"))
    for key in ("edge_index", "node", "colored", "arrival", "before", "query_row"):
        assert torch.equal(graph_there[key].cpu(), graph[key]), key
    assert identity_cost(there, 3, TRIPLES.to("cuda")) == cost_here
    expected, listed = model(x, EDGES), model(x, EDGES, queries=TRIPLES)
    model.to("cuda")
    torch.testing.assert_close(model(there.x, there.edge_index).cpu(), expected)
    torch.testing.assert_close(model(there.x, there.edge_index, queries=TRIPLES.to("cuda")).cpu(), listed)
    torch.testing.assert_close(model.embed(data), expected)
