"""The networks that the laws are checked on: every named layer and option, float64, nothing left at its default."""

from dataclasses import dataclass, field
from typing import Any

import torch
from hypothesis.strategies import SearchStrategy
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn import IDGNN, IdentityConv
from tests.laws.graphs import CHANNELS, EDGE_DIM, graphs

WIDTH = 8
OUT = 2


@dataclass(frozen=True)
class Kind:
    """A layer by name, its options, and what it takes of the edges."""

    conv: str
    options: dict[str, Any] = field(default_factory=dict)
    takes: str | None = None

    def graphs(self) -> SearchStrategy[Data]:
        return graphs(repeated_loops=self.takes != "edge_weight")

    def edge(self, data: Data) -> dict[str, Tensor]:
        return {} if self.takes is None else {self.takes: data[self.takes]}


KINDS = {
    "gcn": Kind("gcn"),
    "gcn-weighted": Kind("gcn", takes="edge_weight"),
    "sage-max": Kind("sage", {"aggr": "max"}),
    "sage-mean": Kind("sage", {"aggr": "mean"}),
    "sage-sum": Kind("sage", {"aggr": "sum"}),
    "gat": Kind("gat"),
    "gat-2-heads": Kind("gat", {"heads": 2}),
    "gin": Kind("gin"),
    "gine": Kind("gine", {"edge_dim": EDGE_DIM}, takes="edge_attr"),
}


COLORS = ("message", "message+update")
ACTS = ("relu", "gelu", "silu")


def encoder(
    kind: Kind,
    num_layers: int,
    identity: str = "full",
    color: str = "message+update",
    residual: bool = False,
    act: str = "relu",
) -> IDGNN:
    """In evaluation mode, with random running statistics."""
    options = {"color": color, "residual": residual, "act": act, **kind.options}
    model = IDGNN(CHANNELS, WIDTH, OUT, num_layers, kind.conv, identity, cycle_length=4, **options)
    return randomized(model).eval()


def layer(
    kind: Kind, identity: bool = True, out_channels: int = WIDTH, color: str = "message+update", colors: int = 1
) -> IdentityConv:
    options = {"identity": identity, "color": color, "colors": colors, **kind.options}
    return randomized(IdentityConv(kind.conv, CHANNELS, out_channels, **options))


def randomized(module: nn.Module) -> nn.Module:
    """Biases that are not zero, norms that are not the identity, an epsilon that counts."""
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
        for part in module.modules():
            if isinstance(part, nn.BatchNorm1d):
                part.running_mean.normal_(std=0.3)
                part.running_var.uniform_(0.5, 2)
                part.weight.uniform_(0.5, 1.5)
                part.bias.uniform_(0.5, 1)  # or ReLU would leave little to compare
            if hasattr(part, "eps") and part.__class__.__name__.startswith("IdentityGIN"):
                part.eps = 0.3
    return module


def with_plain_weights(module: nn.Module, names: tuple[str, ...] = ("colored", "second")) -> nn.Module:
    """Gives the messages of colors the weights of plain ones, and colored updates none. Changes `module`."""
    with torch.no_grad():
        for part in module.modules():
            for name in names:
                if getattr(part, f"update_{name}", None) is not None:
                    getattr(part, f"update_{name}").zero_()
                if (lin := getattr(part, f"lin_{name}", None)) is not None:
                    if hasattr(part, "lin"):
                        lin.weight.copy_(part.lin.weight)
                        if lin.bias is not None:
                            lin.bias.copy_(part.lin.bias)
                    else:  # GINE: the plain message takes the state as it is
                        lin.weight.copy_(torch.eye(lin.in_features))
                        getattr(part, f"lin_edge_{name}").load_state_dict(part.lin_edge.state_dict())
    return module


def plain_twin(model: IDGNN) -> IDGNN:
    """The plain GNN with the weights that `model` gives to plain messages."""
    twin = IDGNN(**{**model.settings, "identity": "none"}).double().eval()
    missing, extra = twin.load_state_dict(model.state_dict(), strict=False)
    assert not missing
    assert all("colored" in name for name in extra)
    for mine, theirs in zip(model.convs, twin.convs, strict=True):
        if hasattr(mine.operator, "eps"):
            theirs.operator.eps = mine.operator.eps
    return twin


def assert_same(ours: Tensor, theirs: Tensor, tolerance: float = 1e-10) -> None:
    """Equal up to `tolerance`, relative to the largest number where that is above 1."""
    ours, theirs = ours.detach(), theirs.detach()
    assert ours.shape == theirs.shape, f"shapes {list(ours.shape)} and {list(theirs.shape)} differ"
    assert ours.isfinite().all(), "there are NaN or infinite numbers"
    if ours.numel():
        scale = max(1.0, float(theirs.abs().max()))
        difference = float((ours - theirs).abs().max())
        assert difference <= tolerance * scale, f"differ by {difference} where the largest number is {scale}"


def assert_engines_agree(model, graph, edge: dict[str, Tensor], asked, engines, reference) -> None:
    """Every engine gives the outputs of `reference(x, **edge)`, and its gradients of inputs and weights."""
    parameters, names, inputs = list(model.parameters()), list(edge), [graph.x, *edge.values()]

    def named(run):
        return lambda x, *values: run(x, **dict(zip(names, values, strict=True)))

    expected, expected_gradients = value_and_gradients(named(reference), inputs, parameters)
    for engine in engines:

        def ours(x, engine=engine, **edge):
            return model(x, graph.edge_index, queries=asked, engine=engine, **edge)

        out, gradients = value_and_gradients(named(ours), inputs, parameters)
        assert_same(out, expected, 1e-10)
        for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
            assert_same(gradient, expected_gradient, 1e-9)


def assert_same_function(ours, reference, inputs: list[Tensor], parameters: list[Tensor], tolerance=1e-10) -> Tensor:
    """Both give the same outputs, which are returned, and to ten times that tolerance the same gradients."""
    found, gradients = value_and_gradients(ours, inputs, parameters)
    expected, expected_gradients = value_and_gradients(reference, inputs, parameters)
    assert_same(found, expected, tolerance)
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        assert_same(gradient, expected_gradient, 10 * tolerance)
    return found


def value_and_gradients(run, inputs: list[Tensor], parameters: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """What `run(*inputs)` returns, and the gradients of a fixed weighted sum of it."""
    inputs = [value.detach().clone().requires_grad_() for value in inputs]
    out = run(*inputs)
    weights = torch.linspace(-1.3, 1.7, out.numel(), dtype=out.dtype).view_as(out)
    wanted = inputs + parameters
    return out.detach(), list(torch.autograd.grad((out * weights).sum(), wanted, materialize_grads=True))
