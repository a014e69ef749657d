"""Every conv class that PyG exports is either made identity-aware exactly, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn
from torch_geometric.nn import MLP, GCNConv, MessagePassing
from torch_geometric.nn.conv import __all__ as EVERY_CONV

from idgnn.models.identity_aware import identity_aware

WIDTH = 4
NUM_NODES = 6
# A triangle with a tail, one-way edges, a doubled edge, two self-loops, and a node that nothing reaches.
EDGES = torch.tensor([[0, 1, 2, 1, 2, 3, 3, 4, 0, 0, 2, 5, 4], [1, 2, 0, 0, 3, 2, 4, 3, 3, 1, 2, 0, 4]])

Make = Callable[[], nn.Module]


def mlp(*channels: int) -> MLP:
    return MLP(list(channels), norm=None, act="tanh")


def degrees() -> Tensor:
    return torch.bincount(torch.bincount(EDGES[1], minlength=NUM_NODES))


def inputs() -> dict[str, Tensor]:
    """Something for every argument that a PyG layer knows beside `x` and `edge_index`."""
    edges = EDGES.size(1)
    return {
        "edge_attr": torch.rand(edges, WIDTH),
        "edge_coordinates": torch.rand(edges, 2),
        "edge_weight": torch.rand(edges),
        "edge_type": torch.randint(3, (edges,)),
        "edge_is_positive": torch.arange(edges) % 2 == 0,
        "node_type": torch.randint(2, (NUM_NODES,)),
        "pos": torch.rand(NUM_NODES, 3),
        "normal": nn.functional.normalize(torch.rand(NUM_NODES, 3), dim=-1),
    }


class Stack(nn.Module):
    """Three layers with a nonlinearity between; `names` are the arguments of the layer after `edge_index`."""

    def __init__(self, make: Make, names: str = "") -> None:
        super().__init__()
        self.convs = nn.ModuleList(make() for _ in range(3))
        self.names = names.split()

    def forward(self, x: Tensor, edge_index: Tensor, **given: Tensor) -> Tensor:
        start = x
        for conv in self.convs:
            x = self.call(conv, x, edge_index, {**given, "x_0": start}).tanh()
        return x

    def call(self, conv: nn.Module, x: Tensor, edge_index: Tensor, given: dict[str, Tensor]) -> Tensor:
        return conv(x, edge_index, *[given[name] for name in self.names])


class BeforeEdges(Stack):
    """For layers with arguments in front of `edge_index`."""

    def call(self, conv: nn.Module, x: Tensor, edge_index: Tensor, given: dict[str, Tensor]) -> Tensor:
        return conv(x, *[given[name] for name in self.names], edge_index)


class Signed(nn.Module):
    """Two SignedConv: the edges of both signs are one edge_index, told apart by `edge_is_positive`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pyg.SignedConv(WIDTH, WIDTH, first_aggr=True)
        self.second = pyg.SignedConv(WIDTH, WIDTH, first_aggr=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_is_positive: Tensor, **_: Tensor) -> Tensor:
        edges = edge_index[:, edge_is_positive], edge_index[:, ~edge_is_positive]
        return self.second(self.first(x, *edges).tanh(), *edges)


class Memory(Stack):
    """DNAConv looks back at the states of all rounds before."""

    def forward(self, x: Tensor, edge_index: Tensor, **given: Tensor) -> Tensor:
        states = [x]
        for conv in self.convs:
            states.append(conv(torch.stack(states, dim=1), edge_index, given["edge_weight"]).tanh())
        return states[-1]


class MixHop(nn.Module):
    """MixHopConv puts its powers side by side, so the widths grow."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = (pyg.MixHopConv(w, WIDTH, powers=[0, 1]) for w in (WIDTH, 2 * WIDTH))

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, **_: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index, edge_weight).tanh(), edge_index, edge_weight)


PNA = {"aggregators": ["mean", "min", "max", "std"], "scalers": ["identity", "amplification", "attenuation"]}

EXACT: dict[str, Make] = {
    "AGNNConv": lambda: Stack(pyg.AGNNConv),
    "AntiSymmetricConv": lambda: Stack(lambda: pyg.AntiSymmetricConv(WIDTH, num_iters=2)),
    "CGConv": lambda: Stack(lambda: pyg.CGConv(WIDTH, dim=WIDTH, batch_norm=True), "edge_attr"),
    "ClusterGCNConv": lambda: Stack(lambda: pyg.ClusterGCNConv(WIDTH, WIDTH, diag_lambda=0.5)),
    "DNAConv": lambda: Memory(lambda: pyg.DNAConv(WIDTH, heads=2)),
    "EGConv": lambda: Stack(lambda: pyg.EGConv(WIDTH, WIDTH, ["symnorm", "max", "var"], num_heads=2, num_bases=2)),
    "EdgeConv": lambda: Stack(lambda: pyg.EdgeConv(mlp(2 * WIDTH, WIDTH))),
    "FAConv": lambda: BeforeEdges(lambda: pyg.FAConv(WIDTH, eps=0.3), "x_0"),
    "FastRGCNConv": lambda: Stack(lambda: pyg.FastRGCNConv(WIDTH, WIDTH, num_relations=3), "edge_type"),
    "FeaStConv": lambda: Stack(lambda: pyg.FeaStConv(WIDTH, WIDTH, heads=2)),
    "FiLMConv": lambda: Stack(lambda: pyg.FiLMConv(WIDTH, WIDTH, num_relations=3), "edge_type"),
    "GATConv": lambda: Stack(lambda: pyg.GATConv(WIDTH, 2, heads=2, edge_dim=WIDTH, residual=True), "edge_attr"),
    "GATv2Conv": lambda: Stack(lambda: pyg.GATv2Conv(WIDTH, 2, heads=2, edge_dim=WIDTH, residual=True), "edge_attr"),
    "GCN2Conv": lambda: BeforeEdges(lambda: pyg.GCN2Conv(WIDTH, alpha=0.3, theta=0.5, layer=1), "x_0"),
    "GCNConv": lambda: Stack(lambda: GCNConv(WIDTH, WIDTH), "edge_weight"),
    "GENConv": lambda: Stack(lambda: pyg.GENConv(WIDTH, WIDTH, edge_dim=WIDTH, msg_norm=True), "edge_attr"),
    "GINConv": lambda: Stack(lambda: pyg.GINConv(mlp(WIDTH, WIDTH, WIDTH), train_eps=True)),
    "GINEConv": lambda: Stack(lambda: pyg.GINEConv(mlp(WIDTH, WIDTH), edge_dim=WIDTH), "edge_attr"),
    "GMMConv": lambda: Stack(lambda: pyg.GMMConv(WIDTH, WIDTH, dim=2, kernel_size=3), "edge_coordinates"),
    "GeneralConv": lambda: Stack(lambda: pyg.GeneralConv(WIDTH, WIDTH, WIDTH, attention=True, heads=2), "edge_attr"),
    "GraphConv": lambda: Stack(lambda: pyg.GraphConv(WIDTH, WIDTH), "edge_weight"),
    "HEATConv": lambda: Stack(
        lambda: pyg.HEATConv(WIDTH, 2, 2, 3, edge_type_emb_dim=2, edge_dim=WIDTH, edge_attr_emb_dim=2, heads=2),
        "node_type edge_type edge_attr",
    ),
    "LEConv": lambda: Stack(lambda: pyg.LEConv(WIDTH, WIDTH), "edge_weight"),
    "LGConv": lambda: Stack(pyg.LGConv, "edge_weight"),
    "MFConv": lambda: Stack(lambda: pyg.MFConv(WIDTH, WIDTH, max_degree=3)),
    "NNConv": lambda: Stack(lambda: pyg.NNConv(WIDTH, WIDTH, nn.Linear(WIDTH, WIDTH * WIDTH)), "edge_attr"),
    "PDNConv": lambda: Stack(lambda: pyg.PDNConv(WIDTH, WIDTH, edge_dim=WIDTH, hidden_channels=3), "edge_attr"),
    "PNAConv": lambda: Stack(
        lambda: pyg.PNAConv(WIDTH, WIDTH, **PNA, deg=degrees(), edge_dim=WIDTH, towers=2), "edge_attr"
    ),
    "PPFConv": lambda: BeforeEdges(lambda: pyg.PPFConv(mlp(WIDTH + 4, WIDTH), mlp(WIDTH, WIDTH)), "pos normal"),
    "PointGNNConv": lambda: BeforeEdges(
        lambda: pyg.PointGNNConv(mlp(WIDTH, 3), mlp(WIDTH + 3, WIDTH), mlp(WIDTH, WIDTH)), "pos"
    ),
    "PointNetConv": lambda: BeforeEdges(lambda: pyg.PointNetConv(mlp(WIDTH + 3, WIDTH), mlp(WIDTH, WIDTH)), "pos"),
    "PointTransformerConv": lambda: BeforeEdges(lambda: pyg.PointTransformerConv(WIDTH, WIDTH), "pos"),
    "RGATConv": lambda: Stack(
        lambda: pyg.RGATConv(WIDTH, 2, num_relations=3, heads=2, edge_dim=WIDTH), "edge_type edge_attr"
    ),
    "RGCNConv": lambda: Stack(lambda: pyg.RGCNConv(WIDTH, WIDTH, num_relations=3, num_bases=2), "edge_type"),
    "ResGatedGraphConv": lambda: Stack(lambda: pyg.ResGatedGraphConv(WIDTH, WIDTH, edge_dim=WIDTH), "edge_attr"),
    "SAGEConv": lambda: Stack(lambda: pyg.SAGEConv(WIDTH, WIDTH, aggr="max", project=True, normalize=True)),
    "SignedConv": Signed,
    "SimpleConv": lambda: Stack(lambda: pyg.SimpleConv("mean", combine_root="self_loop"), "edge_weight"),
    "SuperGATConv": lambda: Stack(lambda: pyg.SuperGATConv(WIDTH, 2, heads=2)),
    "TransformerConv": lambda: Stack(
        lambda: pyg.TransformerConv(WIDTH, 2, heads=2, edge_dim=WIDTH, beta=True), "edge_attr"
    ),
    "WLConvContinuous": lambda: Stack(pyg.WLConvContinuous, "edge_weight"),
    # These see as many hops as they are told; with one they are a round like any other.
    "APPNP": lambda: Stack(lambda: pyg.APPNP(K=1, alpha=0.3), "edge_weight"),
    "ARMAConv": lambda: Stack(lambda: pyg.ARMAConv(WIDTH, WIDTH, num_stacks=2, num_layers=1), "edge_weight"),
    "GatedGraphConv": lambda: Stack(lambda: pyg.GatedGraphConv(WIDTH, num_layers=1), "edge_weight"),
    "MixHopConv": MixHop,
    "SGConv": lambda: Stack(lambda: pyg.SGConv(WIDTH, WIDTH, K=1), "edge_weight"),
    "SSGConv": lambda: Stack(lambda: pyg.SSGConv(WIDTH, WIDTH, alpha=0.3, K=1), "edge_weight"),
    "TAGConv": lambda: Stack(lambda: pyg.TAGConv(WIDTH, WIDTH, K=1), "edge_weight"),
}


# What PyG cannot make without a compiled extension is stood in for by an empty class of the same name.
REFUSED: dict[str, tuple[Make | None, str]] = {
    "APPNP": (lambda: pyg.APPNP(K=2, alpha=0.1), "sees 2 hops at once"),
    "ARMAConv": (lambda: pyg.ARMAConv(WIDTH, WIDTH, num_layers=2), "sees 2 hops at once"),
    "GatedGraphConv": (lambda: pyg.GatedGraphConv(WIDTH, num_layers=4), "sees 4 hops at once"),
    "MixHopConv": (lambda: pyg.MixHopConv(WIDTH, WIDTH), "sees 2 hops at once"),
    "SGConv": (lambda: pyg.SGConv(WIDTH, WIDTH, K=3), "sees 3 hops at once"),
    "SSGConv": (lambda: pyg.SSGConv(WIDTH, WIDTH, alpha=0.1, K=2), "sees 2 hops at once"),
    "TAGConv": (lambda: pyg.TAGConv(WIDTH, WIDTH), "sees 3 hops at once"),
    "ChebConv": (lambda: pyg.ChebConv(WIDTH, WIDTH, K=2), "edges that leave a node"),
    "PANConv": (lambda: pyg.PANConv(WIDTH, WIDTH, filter_size=2), "several hops"),
    "DirGNNConv": (lambda: pyg.DirGNNConv(GCNConv(WIDTH, WIDTH)), "against the direction"),
    "DynamicEdgeConv": (None, "in feature space while it runs"),
    "GravNetConv": (None, "in feature space while it runs"),
    "XConv": (None, "in feature space while it runs"),
    "HypergraphConv": (lambda: pyg.HypergraphConv(WIDTH, WIDTH), "hyperedges"),
    "GPSConv": (lambda: pyg.GPSConv(WIDTH, GCNConv(WIDTH, WIDTH)), "attend to every other"),
    "MeshCNNConv": (lambda: pyg.MeshCNNConv(WIDTH, WIDTH), "exactly four neighbors"),
    "MessagePassing": (None, "no forward of its own"),  # making one changes the class, and all that derive from it
    "WLConv": (pyg.WLConv, "no weights"),
    "CuGraphGATConv": (None, "compiled extension"),
    "CuGraphRGCNConv": (None, "compiled extension"),
    "CuGraphSAGEConv": (None, "compiled extension"),
    "FusedGATConv": (None, "compiled extension"),
    "SplineConv": (None, "compiled extension"),
}


# These take dictionaries of node types: tests/models/hetero/test_identity_aware.py.
TYPED = {"HANConv", "HGTConv", "HeteroConv"}


@pytest.fixture(autouse=True)
def double() -> Any:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def draw(module: nn.Module) -> None:
    """Moves the color maps away from the identity, so that the color matters."""
    for weight in module.parameters():
        nn.init.normal_(weight)


def test_no_class_is_left_out() -> None:
    assert set(EXACT) | set(REFUSED) | TYPED == set(EVERY_CONV)


@pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
@pytest.mark.parametrize("name", sorted(EXACT))
def test_identity_graph_equals_one_colored_copy_per_query(name: str) -> None:
    model = EXACT[name]().eval()
    assert any(type(module).__name__ == name for module in model.modules())
    x, given = torch.randn(NUM_NODES, WIDTH), inputs()
    ours = identity_aware(model)
    ours(x, EDGES, **given)  # the widths of all color maps are known after this
    draw(ours.colors)
    copies = []
    for v in range(NUM_NODES):
        colored = torch.zeros(NUM_NODES, dtype=torch.bool)
        colored[v] = True
        copies.append(ours(x, EDGES, colored=colored, **given))
    states = torch.stack(copies)  # [v, u, channels]: the state of u when v is colored
    every = torch.arange(NUM_NODES)
    found = ours(x, EDGES, **given)
    torch.testing.assert_close(found, states[every, every], rtol=0, atol=1e-10)
    pairs = torch.cartesian_prod(every, every).t()
    torch.testing.assert_close(ours(x, EDGES, queries=pairs, **given), states[pairs[1], pairs[0]], rtol=0, atol=1e-10)
    plain = model(x, EDGES, **given)
    assert torch.equal(ours(x, EDGES, colored=torch.zeros(NUM_NODES, dtype=torch.bool), **given), plain)
    assert (found - plain).abs().amax() > 1e-3


@pytest.mark.parametrize("name", sorted(EXACT))
def test_a_colored_node_sends_the_mapped_state_and_receives_as_itself(name: str) -> None:
    """An oracle that knows nothing of sources and targets: at every node but the colored one a layer gives what it
    gives on mapped features, and at the colored one, which has no loop here, what it gives without any color."""
    model = EXACT[name]().eval()
    layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
    adds_loops = any(getattr(m, "add_self_loops", False) or hasattr(m, "combine_root") for m in layers)
    x, given = torch.randn(NUM_NODES, WIDTH), inputs()
    seen: list[tuple[MessagePassing, tuple[Any, ...]]] = []
    handles = [layer.register_forward_pre_hook(lambda layer, args: seen.append((layer, args))) for layer in layers]
    model(x, EDGES, **given)
    for handle in handles:
        handle.remove()
    for layer, args in seen[:2]:
        ours, state = identity_aware(layer), args[0]
        colored = torch.arange(NUM_NODES) == 0
        ours(*args, colored=colored)
        draw(ours.color)
        mapped = torch.where(colored.view(-1, *[1] * (state.dim() - 1)), ours.color(state), state)
        found, plain, other = ours(*args, colored=colored), layer(*args), layer(mapped, *args[1:])
        torch.testing.assert_close(found[~colored], other[~colored], rtol=0, atol=1e-10)
        assert (found[~colored] - plain[~colored]).abs().amax() > 1e-3
        if not adds_loops:
            torch.testing.assert_close(found[0], plain[0], rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(EXACT))
def test_all_routes_of_coloring_agree(name: str) -> None:
    """By the colored rows alone, exact for all of them; by all rows; and by pairs where the layer takes them."""
    model = EXACT[name]().eval()
    layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
    seen: list[tuple[MessagePassing, tuple[Any, ...]]] = []
    for layer in layers:
        layer.register_forward_pre_hook(lambda layer, args: seen.append((layer, args)))
    model(torch.randn(NUM_NODES, WIDTH), EDGES, **inputs())
    for layer, args in list(seen):
        ours = identity_aware(layer)
        colored = torch.arange(NUM_NODES) < 3
        ours(*args, colored=colored)
        draw(ours.color)
        expected = ours(*args, colored=colored)
        route = ours._hooks.route
        assert route is not None and route.roles is not None
        for kind in ("rows", "whole", *(["pairs"] if route.pairs else [])):
            ours._hooks.route = replace(route, kind=kind)
            torch.testing.assert_close(ours(*args, colored=colored), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refused_by_name_with_a_reason(name: str) -> None:
    make, words = REFUSED[name]
    if make is None:
        base = getattr(pyg, name, None) or getattr(pyg.conv, name)
        layer = object.__new__(type(name, (base,), {"__module__": base.__module__}))
        nn.Module.__init__(layer)
    else:
        layer = make()
    for module in (layer, nn.Sequential(layer)):
        with pytest.raises(ValueError, match=words) as refusal:
            identity_aware(module)
        assert name in str(refusal.value)
