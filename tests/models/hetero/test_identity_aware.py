"""Models over several node types, whichever way they are written, as ID-GNN-Full."""

import copy
import io

import pytest
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Batch, HeteroData
from torch_geometric.nn import (
    FastRGCNConv,
    GATConv,
    GraphConv,
    HANConv,
    HeteroConv,
    HGTConv,
    MessagePassing,
    NNConv,
    RGATConv,
    RGCNConv,
    SAGEConv,
    to_hetero,
    to_hetero_with_bases,
)
from torch_geometric.utils import degree

from idgnn import identity_aware, identity_graph
from tests.models.hetero.races import ROOTS, races

pytestmark = [
    pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning"),
    pytest.mark.usefixtures("double"),
]
WIDTH = 4


class Rounds(nn.Module):
    """A linear layer for each type, then K layers over dictionaries."""

    def __init__(self, make, num_layers: int = 4) -> None:
        super().__init__()
        self.start = nn.ModuleDict({kind: nn.Linear(3, WIDTH) for kind in races().node_types})
        self.convs = nn.ModuleList(make() for _ in range(num_layers))

    def forward(self, x_dict, edge_index_dict, **kwargs):
        x = {kind: self.start[kind](x) for kind, x in x_dict.items()}
        for conv in self.convs:
            x = {kind: h.tanh() for kind, h in conv(x, edge_index_dict, **kwargs).items()}
        return x


class Homogeneous(nn.Module):
    """What PyG's transformations are given."""

    def __init__(self, num_layers: int = 4) -> None:
        super().__init__()
        self.convs = nn.ModuleList(SAGEConv(WIDTH if k else 3, WIDTH) for k in range(num_layers))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).tanh()
        return x


class OwnModule(nn.Module):
    """Written by hand over dictionaries, returning one type only."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = nn.ModuleDict({"__".join(kind): SAGEConv((-1, -1), WIDTH) for kind in races().edge_types})
        self.again = nn.ModuleDict({"__".join(kind): SAGEConv((-1, -1), WIDTH) for kind in races().edge_types})

    def forward(self, x_dict, edge_index_dict):
        for convs in (self.convs, self.again):
            out = {}
            for kind, edges in edge_index_dict.items():
                h = convs["__".join(kind)]((x_dict[kind[0]], x_dict[kind[2]]), edges)
                out[kind[2]] = out.get(kind[2], 0) + h
            x_dict = out
        return x_dict["driver"]


class Typed(nn.Module):
    """Takes a HeteroData, as many examples of PyG do."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = Rounds(lambda: HeteroConv({kind: SAGEConv(WIDTH, WIDTH) for kind in races().edge_types}))

    def forward(self, data: HeteroData):
        return self.rounds(data.x_dict, data.edge_index_dict)


MODELS = {
    "SAGEConv": lambda: Rounds(lambda: HeteroConv({kind: SAGEConv(WIDTH, WIDTH) for kind in races().edge_types})),
    "GATConv": lambda: Rounds(
        lambda: HeteroConv(
            {kind: GATConv(WIDTH, WIDTH, add_self_loops=False) for kind in races().edge_types}, aggr="mean"
        )
    ),
    "lazy": lambda: Rounds(lambda: HeteroConv({kind: SAGEConv((-1, -1), WIDTH) for kind in races().edge_types})),
    "HGTConv": lambda: Rounds(lambda: HGTConv(WIDTH, WIDTH, races().metadata(), heads=2)),
    "HANConv": lambda: Rounds(lambda: HANConv(WIDTH, WIDTH, races().metadata(), heads=2)),
    "to_hetero": lambda: to_hetero(Homogeneous(), races().metadata()),
    "to_hetero_with_bases": lambda: to_hetero_with_bases(Homogeneous(), races().metadata(), num_bases=2),
}


def wrapped(name: str):
    data = races()
    module = MODELS[name]()
    with torch.no_grad():
        module(data.x_dict, data.edge_index_dict)  # weights without a width get theirs
    model = identity_aware(module)
    return data, module, model


def draw(model) -> None:
    for weight in model.colors.parameters():
        nn.init.normal_(weight)


def colored_by_hand(model, data, read: str, nodes, colors) -> Tensor:
    every = torch.arange(data["driver"].num_nodes)
    return torch.stack(
        [
            model(data.x_dict, data.edge_index_dict, colored={"driver": every == color})[read][node]
            for node, color in zip(nodes, colors, strict=True)
        ]
    )


@pytest.mark.parametrize("name", MODELS)
def test_queries_equal_one_colored_copy_each(name):
    data, module, model = wrapped(name)
    plain = module(data.x_dict, data.edge_index_dict)
    none = {"driver": torch.zeros(data["driver"].num_nodes, dtype=torch.bool)}
    same = model(data.x_dict, data.edge_index_dict, colored=none)
    assert all(torch.equal(plain[kind], same[kind]) for kind in plain)
    circuits = torch.tensor([0, 1, 2, 0])
    for read, nodes in (("circuit", circuits), ("driver", ROOTS)):
        asked = ((read, nodes), ("driver", ROOTS))
        out = model(data.x_dict, data.edge_index_dict, queries=asked)
        torch.testing.assert_close(out, plain[read][nodes], rtol=0, atol=1e-10)  # equal weights
    assert model.num_layers == 4
    draw(model)
    for read, nodes in (("circuit", circuits), ("driver", ROOTS)):
        out = model(data.x_dict, data.edge_index_dict, queries=((read, nodes), ("driver", ROOTS)))
        expected = colored_by_hand(model, data, read, nodes, ROOTS)
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)
        assert (out - plain[read][nodes]).abs().max() > 1e-6


TWO = [("result", "of", "driver"), ("driver", "rev_of", "result")]  # one relation into each type: HANConv weighs none
LAYERS = {
    "HGTConv": lambda: HGTConv(3, WIDTH, (["driver", "result"], TWO), heads=2),
    "HANConv": lambda: HANConv(3, WIDTH, (["driver", "result"], TWO), heads=2),
    "HeteroConv": lambda: HeteroConv({kind: GATConv(3, WIDTH, add_self_loops=False) for kind in TWO}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_colored_node_sends_the_mapped_state_and_receives_as_itself(name):
    """An oracle that knows nothing of sources and targets: elsewhere a layer gives what it gives on mapped features,
    and at the colored node, which has no edge to itself, what it gives without any color."""
    data, layer = races(), LAYERS[name]()
    x = {kind: data[kind].x for kind in ("driver", "result")}
    edges = {kind: data[kind].edge_index for kind in TWO}
    model = identity_aware(layer)
    model(x, edges, queries="driver")
    draw(model)
    of_drivers = [color for path, color in model.colors.named_modules() if path.endswith("driver")]
    color = of_drivers[0] if of_drivers else list(model.color_maps())[1]  # the one of ("driver", "rev_of", "result")
    root = torch.arange(5) == 3
    mapped = x | {
        "driver": torch.where(root[:, None], x["driver"] @ (torch.eye(3) + color.delta).t() + color.bias, x["driver"])
    }
    out, plain, elsewhere = model(x, edges, colored={"driver": root}), layer(x, edges), layer(mapped, edges)
    torch.testing.assert_close(out["result"], elsewhere["result"])
    torch.testing.assert_close(out["driver"], plain["driver"])
    assert (out["result"] - plain["result"]).abs().max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_those_of_colored_copies(name):
    data, _, model = wrapped(name)
    model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS))
    draw(model)
    found = []
    for out in (
        model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS)),
        colored_by_hand(model, data, "driver", ROOTS, ROOTS),
    ):
        weights = torch.linspace(-1, 1, out.numel()).view_as(out)
        found.append(torch.autograd.grad((out * weights).sum(), list(model.parameters()), allow_unused=True))
    used = 0
    for ours, theirs in zip(*found, strict=True):
        if ours is not None and theirs is not None:
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
            used += 1
    assert used > 10


@pytest.mark.parametrize("name", MODELS)
def test_graphs_built_before_and_batches_of_them(name):
    data, _, model = wrapped(name)
    model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS))
    draw(model)
    expected = model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS))
    graph, other = identity_graph(data, 4, ("driver", ROOTS)), identity_graph(data, 4, ("driver", ROOTS[:2]))
    for x, edges in ((data.x_dict, data.edge_index_dict), (graph.x_dict, graph.edge_index_dict)):
        torch.testing.assert_close(model(x, edges, graph=graph), expected, rtol=0, atol=1e-10)
    batch = Batch.from_data_list([other, graph])
    if name != "HANConv":  # which weighs relations by the nodes of all graphs
        out = model(batch.x_dict, batch.edge_index_dict, graph=batch)
        torch.testing.assert_close(out, torch.cat([expected[:2], expected]), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["SAGEConv", "HGTConv", "to_hetero_with_bases"])
def test_copies_pickles_and_files_hold_the_same_model(name, tmp_path):
    data, _, model = wrapped(name)
    model(data.x_dict, data.edge_index_dict, queries="driver")
    draw(model)
    expected = model(data.x_dict, data.edge_index_dict, queries="driver")
    torch.testing.assert_close(copy.deepcopy(model)(data.x_dict, data.edge_index_dict, queries="driver"), expected)
    if name == "HGTConv":
        stream = io.BytesIO()
        torch.save(model, stream)
        stream.seek(0)
        again = torch.load(stream, weights_only=False)
        torch.testing.assert_close(again(data.x_dict, data.edge_index_dict, queries="driver"), expected)
    model.save(tmp_path / "model.safetensors")
    fresh = wrapped(name)[2].load(tmp_path / "model.safetensors")
    torch.testing.assert_close(fresh(data.x_dict, data.edge_index_dict, queries="driver"), expected)


def test_own_module_that_returns_one_type():
    data, module = races(), OwnModule()
    module(data.x_dict, data.edge_index_dict)
    model = identity_aware(module)
    model(data.x_dict, data.edge_index_dict, queries="driver")
    draw(model)
    out = model(data.x_dict, data.edge_index_dict, queries="driver")
    every = torch.arange(data["driver"].num_nodes)
    expected = [model(data.x_dict, data.edge_index_dict, colored={"driver": every == v})[v] for v in every]
    torch.testing.assert_close(out, torch.stack(expected), rtol=0, atol=1e-10)
    with pytest.raises(ValueError, match=r"returned a tensor of shape .* rows of 'result'"):
        model(data.x_dict, data.edge_index_dict, queries=(("result", [0]), ("driver", [0])))


def test_dictionaries_are_known_by_name_or_hint():
    class Unnamed(OwnModule):
        def forward(self, x, edges):
            return super().forward(x, edges)

    class Hinted(OwnModule):
        def forward(self, x: dict[str, Tensor], edges):
            return super().forward(x, edges)

    data = races()
    with pytest.raises(ValueError, match="known by the names x_dict and edge_index_dict"):
        identity_aware(Unnamed())(data.x_dict, data.edge_index_dict)
    assert identity_aware(Hinted())(data.x_dict, data.edge_index_dict, queries="driver").shape == (5, WIDTH)


def test_a_model_that_takes_a_hetero_data():
    data, module = races(), Typed()
    model = identity_aware(module)
    model(data, queries="driver")
    draw(model)
    out = model(data, queries="driver")
    inner = identity_aware(module.rounds)
    inner.load_state_dict({key.replace("rounds.", ""): value for key, value in model.state_dict().items()})
    torch.testing.assert_close(out, inner(data.x_dict, data.edge_index_dict, queries="driver"), rtol=0, atol=1e-10)


def test_edge_attributes_follow_their_edges():
    data = races()
    net = nn.Linear(2, WIDTH * WIDTH)
    module = Rounds(
        lambda: HeteroConv({kind: NNConv((WIDTH, WIDTH), WIDTH, copy.deepcopy(net)) for kind in data.edge_types}), 2
    )
    attributes = {kind: torch.randn(data[kind].num_edges, 2) for kind in data.edge_types}
    model = identity_aware(module)
    given = data.x_dict, data.edge_index_dict
    model(*given, edge_attr_dict=attributes, queries="driver")
    draw(model)
    out = model(*given, edge_attr_dict=attributes, queries="driver")
    every = torch.arange(data["driver"].num_nodes)
    expected = [model(*given, edge_attr_dict=attributes, colored={"driver": every == v})["driver"][v] for v in every]
    torch.testing.assert_close(out, torch.stack(expected), rtol=0, atol=1e-10)


@pytest.mark.parametrize("conv", [RGCNConv, FastRGCNConv, RGATConv])
def test_relations_as_numbers(conv):
    """Models of one node type that take the relation of each edge: the homogeneous wrapper."""

    class Relational(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.convs = nn.ModuleList(conv(3, 3, num_relations=6) for _ in range(3))

        def forward(self, x, edge_index, edge_type):
            for layer in self.convs:
                x = layer(x, edge_index, edge_type).tanh()
            return x

    data = races().to_homogeneous()
    model = identity_aware(Relational())
    given = data.x, data.edge_index, data.edge_type
    model(*given)
    draw(model)
    nodes = torch.arange(4)
    every = torch.arange(data.num_nodes)
    expected = torch.stack([model(*given, colored=every == v)[v] for v in nodes])
    torch.testing.assert_close(model(*given, queries=nodes), expected, rtol=0, atol=1e-10)


class WithSkip(Homogeneous):
    """The input is added to the output, so that a round needs all rows."""

    def __init__(self) -> None:
        super().__init__(3)
        self.skip = nn.Linear(3, WIDTH)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.skip(x) + super().forward(x, edge_index)


def test_what_is_tried_out_prints_nothing(capfd):
    data = races()
    model = identity_aware(to_hetero(WithSkip(), data.metadata()))
    model(data.x_dict, data.edge_index_dict, queries="driver")
    assert capfd.readouterr() == ("", "")
    draw(model)
    nodes = ROOTS.tolist()
    out = model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS))
    torch.testing.assert_close(out, colored_by_hand(model, data, "driver", nodes, nodes), rtol=0, atol=1e-10)


def test_a_graph_without_edges_does_not_count_as_a_comparison():
    """The model mixes rows: that is found at the first call in which a color goes anywhere."""
    data = races()

    class Mixing(Typed):
        def forward(self, data: HeteroData):
            return {kind: h - h.mean(0) for kind, h in super().forward(data).items()}

    empty = data.clone()
    for kind in empty.edge_types:
        empty[kind].edge_index = empty[kind].edge_index[:, :0]
    model = identity_aware(Mixing())
    with pytest.raises(ValueError, match="mixes rows"):
        model(empty, queries="driver")
        model(data, queries="driver")


def test_recomputation_in_the_backward_pass():
    class Checkpointed(Rounds):
        def forward(self, x_dict, edge_index_dict):
            x = {kind: self.start[kind](x) for kind, x in x_dict.items()}
            for conv in self.convs:
                x = checkpoint(conv, x, edge_index_dict, use_reentrant=False)
                x = {kind: h.tanh() for kind, h in x.items()}
            return x

    data = races()
    plain = MODELS["SAGEConv"]()
    module = Checkpointed(lambda: HeteroConv({kind: SAGEConv(WIDTH, WIDTH) for kind in data.edge_types}))
    module.load_state_dict(plain.state_dict())
    models = identity_aware(plain), identity_aware(module)
    models[0](data.x_dict, data.edge_index_dict, queries="driver")
    draw(models[0])
    models[1].load_state_dict(models[0].state_dict())
    for model in models:
        model(data.x_dict, data.edge_index_dict, queries="driver").square().sum().backward()
    for ours, theirs in zip(models[1].parameters(), models[0].parameters(), strict=True):
        if theirs.grad is not None:
            torch.testing.assert_close(ours.grad, theirs.grad)


class Mixing(Rounds):
    def forward(self, x_dict, edge_index_dict):
        x = super().forward(x_dict, edge_index_dict)
        return {kind: h - h.mean(0) for kind, h in x.items()}


class OwnEdges(Rounds):
    def forward(self, x_dict, edge_index_dict):
        return super().forward(x_dict, {kind: edges.clone() for kind, edges in edge_index_dict.items()})


class OneMore(Rounds):
    """Sends messages without a layer."""

    def forward(self, x_dict, edge_index_dict):
        x = super().forward(x_dict, edge_index_dict)
        source, target = edge_index_dict["result", "of", "driver"]
        return x | {"driver": x["driver"].index_add(0, target, x["result"][source])}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Mixing, "mixes rows somewhere"),
        (OwnEdges, "edges that the model made itself"),
        (OneMore, "sends messages of its own"),
    ],
)
def test_what_is_not_exact_is_refused(kind, words):
    data = races()
    model = identity_aware(kind(lambda: HeteroConv({k: SAGEConv(WIDTH, WIDTH) for k in data.edge_types}), 2))
    with pytest.raises(ValueError, match=words):
        model(data.x_dict, data.edge_index_dict, queries="driver")


def test_bad_input_gets_a_sentence():
    data, _, model = wrapped("SAGEConv")
    given = data.x_dict, data.edge_index_dict
    with pytest.raises(ValueError, match="without queries, expected a node type"):
        model(*given)
    without = {kind: x for kind, x in data.x_dict.items() if kind != "race"}
    with pytest.raises(ValueError, match=r"without features of the node type 'race', which the edge type .* names"):
        model(without, data.edge_index_dict, queries="driver")
    with pytest.raises(ValueError, match="more than one of queries, graph and colored"):
        model(*given, queries="driver", colored={})
    with pytest.raises(ValueError, match="the node type 'pilot', but the graph has 'driver'"):
        model(*given, queries="pilot")
    with pytest.raises(ValueError, match=r"name node 99 of 'driver', which has 5 nodes"):
        model(*given, queries=("driver", [99]))
    with pytest.raises(ValueError, match="colored names the node type 'pilot'"):
        model(*given, colored={"pilot": torch.ones(1, dtype=torch.bool)})
    with pytest.raises(ValueError, match=r"colored of 'driver' is torch.bool \[2\], expected bool \[5\]"):
        model(*given, colored={"driver": torch.ones(2, dtype=torch.bool)})
    with pytest.raises(ValueError, match="expected a dictionary"):
        model(data["driver"].x, data["result", "of", "driver"].edge_index, queries="driver")
    with pytest.raises(ValueError, match="identity-aware already"):
        identity_aware(model)
    with pytest.raises(ValueError, match="built for fewer layers"):
        model(*given, graph=identity_graph(data, 2, "driver"))
    with pytest.raises(ValueError, match="per_node, per_edge and shared are for models of one node type"):
        identity_aware(MODELS["SAGEConv"](), per_node="z")
    short = identity_aware(Rounds(lambda: HeteroConv({k: SAGEConv(WIDTH, WIDTH) for k in data.edge_types}), 2))
    with pytest.raises(ValueError, match=r"3 message steps from 'driver' in the schema .* Use at least 3 layers"):
        short(*given, queries=(("circuit", [0]), ("driver", [0])))


@pytest.mark.parametrize(("channels", "color"), [(3, "message"), (3, "message+update"), ((-1, -1), "message")])
def test_parameters_can_be_counted_after_one_call(channels, color):
    """Before it, maps of the own update and of layers without a given width have no size."""
    data = races()
    convs = {kind: SAGEConv(channels, WIDTH) for kind in data.edge_types}
    model = identity_aware(HeteroConv(convs), color=color)
    assert any(map(is_lazy, model.parameters())) == (channels != 3 or color != "message")
    model(data.x_dict, data.edge_index_dict, queries=("driver", ROOTS))
    # Weights of both sides and a bias, then a map with a bias for messages and perhaps one for the own update.
    each = 2 * 3 * WIDTH + WIDTH + 3 * 3 + 3 + (3 * WIDTH if color == "message+update" else 0)
    assert sum(weight.numel() for weight in model.parameters()) == each * len(data.edge_types)


class Scaled(MessagePassing):
    """A layer that is given a vector of the model, which may be as long as there are edges."""

    def __init__(self) -> None:
        super().__init__(aggr="sum")
        self.lin = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, edge_index, scale):
        return self.lin(x[1]) + self.propagate(edge_index, x=x, scale=scale, size=(x[0].size(0), x[1].size(0)))

    def message(self, x_j, scale):
        return x_j * scale


class BackAndForth(nn.Module):
    """Two rounds between two types; with `degrees` edges have weights that the model makes."""

    def __init__(self, degrees: bool) -> None:
        super().__init__()
        self.degrees, self.scale = degrees, nn.Parameter(torch.randn(WIDTH))
        make = (lambda: GraphConv((WIDTH, WIDTH), WIDTH)) if degrees else Scaled
        self.convs = nn.ModuleList(make() for _ in range(4))

    def forward(self, x_dict, edge_index_dict):
        a, b = x_dict["a"], x_dict["b"]
        there, back = edge_index_dict["a", "to", "b"], edge_index_dict["b", "to", "a"]
        given = self.scale, self.scale
        if self.degrees:
            given = tuple(
                (1 + degree(other[1], x.size(0), dtype=x.dtype)[edges[0]]).rsqrt()
                for x, edges, other in ((a, there, back), (b, back, there))
            )
        for first, second in (self.convs[:2], self.convs[2:]):
            a, b = second((b, a), back, given[1]).tanh(), first((a, b), there, given[0]).tanh()
        return {"a": a, "b": b}


@pytest.mark.parametrize("degrees", [False, True])
def test_trimmed_rounds_keep_what_belongs_to_no_edge_and_weights_of_all_edges(degrees):
    generator = torch.Generator().manual_seed(0)

    def bipartite(size: int, edges: int):
        x = {kind: torch.randn(size, WIDTH) for kind in "ab"}
        ends = torch.randint(0, size, (2, edges), generator=generator)
        return x, {("a", "to", "b"): ends, ("b", "to", "a"): ends.flip(0)}

    model = identity_aware(BackAndForth(degrees).eval())
    model(*(bipartite(1, 1) if degrees else bipartite(6, 15)), queries=(("b", [0]), ("a", [0])))
    draw(model)
    for edges in range(2, 8):
        for _ in range(5):
            x, edge_index = bipartite(4, edges)
            source, target = (int(end[0]) for end in edge_index["a", "to", "b"])
            expected = model(x, edge_index, colored={"a": torch.arange(4) == source})["b"][target]
            found = model(x, edge_index, queries=(("b", [target]), ("a", [source])))
            torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-10)
