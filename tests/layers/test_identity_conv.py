"""One round of heterogeneous message passing: what the laws do not say, and what it refuses."""

import pytest
import torch
from torch import nn

from idgnn import IdentityConv

OPTIONS = {
    "gcn": {},
    "sage": {},
    "gat": {"heads": 2},
    "gin": {},
    "gine": {"edge_dim": 2},
}
EDGE_INDEX = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 2]])
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(1))
COLORED = torch.tensor([False, True, False, False])


def layer(conv: str, **options) -> IdentityConv:
    return IdentityConv(conv, 3, 4, **(OPTIONS[conv] | options))


def edge_of(conv: str) -> dict[str, torch.Tensor]:
    return {"edge_attr": torch.linspace(-1, 1, 10).view(5, 2)} if conv == "gine" else {}


@pytest.mark.parametrize("conv", OPTIONS)
def test_the_plain_layer_has_one_set_of_message_weights(conv):
    plain = {name for name, _ in layer(conv, identity=False).named_parameters()}
    both = {name for name, _ in layer(conv).named_parameters()}
    assert plain < both
    assert all("colored" in name for name in both - plain)


@pytest.mark.parametrize("conv", OPTIONS)
def test_the_bias_can_be_left_out(conv):
    with_bias = sum(parameter.numel() for parameter in layer(conv).parameters())
    without = layer(conv, bias=False)
    assert sum(parameter.numel() for parameter in without.parameters()) == with_bias - 4
    assert without(X, EDGE_INDEX, colored=COLORED, **edge_of(conv)).shape == (4, 4)


@pytest.mark.parametrize("conv", OPTIONS)
def test_the_color_changes_those_it_reaches_and_nobody_else(conv):
    """Node 1 sends to 0 and 2, and where there are self-loops to itself."""
    conv_ = layer(conv)
    nn.init.normal_(conv_.operator.lin_colored.weight)
    change = conv_(X, EDGE_INDEX, colored=COLORED, **edge_of(conv)) - conv_(X, EDGE_INDEX, **edge_of(conv))
    changed = (change.abs() > 1e-6).any(1).tolist()
    assert changed == [True, conv in ("gcn", "gat"), True, False]


@pytest.mark.parametrize("conv", OPTIONS)
def test_the_plain_layer_sees_no_color(conv):
    plain = layer(conv, identity=False)
    colored = plain(X, EDGE_INDEX, colored=COLORED, **edge_of(conv))
    torch.testing.assert_close(colored, plain(X, EDGE_INDEX, **edge_of(conv)))


@pytest.mark.parametrize("conv", ["sage", "gin"])
def test_only_messages_are_colored_not_the_state_a_node_brings_itself(conv):
    conv_ = layer(conv)
    alone, no_edges = X[:1], torch.empty(2, 0, dtype=torch.long)
    assert torch.equal(conv_(alone, no_edges, colored=torch.tensor([True])), conv_(alone, no_edges))
    loop = torch.zeros(2, 1, dtype=torch.long)  # a self-loop's message is a message
    assert not torch.allclose(conv_(alone, loop, colored=torch.tensor([True])), conv_(alone, loop))


@pytest.mark.parametrize("conv", OPTIONS)
def test_everybody_may_be_colored(conv):
    """No plain source is left, so that the plain weights are unused where no state of one's own needs them."""
    conv_ = layer(conv)
    everybody = torch.ones(4, dtype=torch.bool)
    out = conv_(X, EDGE_INDEX, colored=everybody, **edge_of(conv))
    out.sum().backward()
    assert out.shape == (4, 4)
    assert conv_.operator.lin_colored.weight.grad.abs().max() > 0


@pytest.mark.parametrize("conv", OPTIONS)
def test_reset_parameters_draws_all_weights_anew(conv):
    conv_ = layer(conv)
    with torch.no_grad():
        for parameter in conv_.parameters():
            parameter.fill_(7.0)
    conv_.reset_parameters()
    for name, parameter in conv_.named_parameters():
        assert not (parameter == 7).any(), name
    before = {name: parameter.clone() for name, parameter in conv_.named_parameters()}
    conv_.reset_parameters()
    drawn = [name for name, parameter in conv_.named_parameters() if not torch.equal(parameter, before[name])]
    matrices = [name for name, parameter in conv_.named_parameters() if parameter.dim() == 2]
    # The colored message of GINE starts as the plain one, which takes the state as it is.
    assert set(matrices) - set(drawn) <= {"operator.lin_colored.weight"}


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.int8, torch.uint8])
@pytest.mark.parametrize("conv", OPTIONS)
def test_edge_index_may_hold_any_whole_numbers(conv, dtype):
    """Three nodes and three edges: PyTorch would take uint8 ids for a mask of the right length."""
    edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    edge = {"edge_attr": torch.randn(3, 2)} if conv == "gine" else {}
    conv_ = layer(conv)
    expected = conv_(X[:3], edge_index, colored=COLORED[:3], **edge)
    assert torch.equal(conv_(X[:3], edge_index.to(dtype), colored=COLORED[:3], **edge), expected)


@pytest.mark.parametrize("conv", OPTIONS)
def test_no_nodes_give_no_rows(conv):
    edge = {"edge_attr": torch.empty(0, 2)} if conv == "gine" else {}
    assert layer(conv)(torch.empty(0, 3), torch.empty(2, 0, dtype=torch.long), **edge).shape == (0, 4)


def test_edge_weights_of_gcn_that_cancel_give_numbers():
    """A weight of -1 and the self-loop's 1 make a degree of 0, a weight of -3 one below: PyG calls those scales 0."""
    conv = layer("gcn").double()
    x = X.double()
    weight = torch.tensor([-1.0, 1.0, -3.0, 1.0, 0.5], dtype=torch.double, requires_grad=True)
    out = conv(x, EDGE_INDEX, edge_weight=weight)
    assert out.isfinite().all()
    (gradient,) = torch.autograd.grad(out.sum(), weight)
    assert gradient.isfinite().all()


def test_the_gradient_of_repeated_self_loops_is_that_of_what_was_computed():
    """GCN keeps one self-loop per node. Whichever weight it takes, the gradient is that of the result."""
    conv = layer("gcn").double()
    edge_index = torch.tensor([[0, 0, 0, 1], [0, 0, 1, 0]])
    weight = torch.tensor([0.5, 0.5, 1.0, 2.0], dtype=torch.double, requires_grad=True)
    x = X[:2].double()
    assert torch.autograd.gradcheck(lambda weight: conv(x, edge_index, edge_weight=weight), weight)


@pytest.mark.parametrize("conv", OPTIONS)
def test_gradcheck(conv):
    conv_ = layer(conv).double()
    x = X.double().requires_grad_()
    edge = {name: value.double() for name, value in edge_of(conv).items()}
    assert torch.autograd.gradcheck(lambda x: conv_(x, EDGE_INDEX, colored=COLORED, **edge), x)


def test_edge_weights_of_one_are_no_weights():
    conv = layer("gcn")
    weighted = conv(X, EDGE_INDEX, colored=COLORED, edge_weight=torch.ones(5))
    torch.testing.assert_close(weighted, conv(X, EDGE_INDEX, colored=COLORED))


@pytest.mark.parametrize("conv", OPTIONS)
def test_state_dict_goes_round(conv):
    first, second = layer(conv), layer(conv)
    second.load_state_dict(first.state_dict())
    ours = first(X, EDGE_INDEX, colored=COLORED, **edge_of(conv))
    assert torch.equal(ours, second(X, EDGE_INDEX, colored=COLORED, **edge_of(conv)))


REFUSED = {
    "a name that is no layer": (lambda: IdentityConv("gcnn", 3, 4), r"'gcnn'.*expected one of gcn.*identity_aware"),
    "a layer instead of a name": (lambda: IdentityConv(nn.Linear(3, 4), 3, 4), r"expected one of gcn"),
    "an unknown aggregation": (lambda: IdentityConv("sage", 3, 4, aggr="min"), r"'min'.*expected 'max', 'mean'"),
    "heads that do not share the channels": (lambda: IdentityConv("gat", 3, 4, heads=3), r"is 4 and heads is 3"),
    "no heads": (lambda: IdentityConv("gat", 3, 4, heads=0), r"heads is 0.*at least one head"),
    "gine without edge_dim": (lambda: IdentityConv("gine", 3, 4), r"needs edge_dim"),
    "no x": (lambda: layer("gcn")(None, EDGE_INDEX), r"x is a NoneType.*expected"),
    "x as a list": (lambda: layer("gcn")(X.tolist(), EDGE_INDEX), r"x is a list.*expected"),
    "x of one dimension": (lambda: layer("gcn")(X[:, 0], EDGE_INDEX), r"x has shape \[4\].*expected \[num_nodes, 3\]"),
    "x too narrow": (lambda: layer("sage")(X[:, :2], EDGE_INDEX), r"x has shape \[4, 2\].*expected \[num_nodes, 3\]"),
    "x of whole numbers": (lambda: layer("gin")(X.long(), EDGE_INDEX), r"x has dtype torch.int64.*expected.*float"),
    "x with NaN": (
        lambda: layer("gcn")(torch.cat([X[:2], torch.full((2, 3), torch.nan)]), EDGE_INDEX),
        r"2 rows, the first is row 2.*finite.*nan_to_num",
    ),
    "x with inf": (lambda: layer("sage")(X / 0.0, EDGE_INDEX), r"NaN or infinite features in 4 rows"),
    "no edge_index": (lambda: layer("gcn")(X, None), r"edge_index is a NoneType.*expected an integer tensor"),
    "edge_index as a list": (lambda: layer("gcn")(X, [[0], [1]]), r"edge_index is a list.*torch.as_tensor"),
    "edge_index of floats": (lambda: layer("gcn")(X, EDGE_INDEX.float()), r"dtype torch.float32.*edge_index.long\(\)"),
    "edge_index of truth values": (lambda: layer("gcn")(X, EDGE_INDEX.bool()), r"dtype torch.bool.*whole numbers"),
    "edge_index lying down": (
        lambda: layer("gcn")(X, EDGE_INDEX.t()),
        r"shape \[5, 2\].*expected \[2, num_edges\].*\.t",
    ),
    "edge_index of one dimension": (lambda: layer("gcn")(X, EDGE_INDEX[0]), r"shape \[5\].*expected \[2, num_edges\]"),
    "a node that is not there": (lambda: layer("gcn")(X, EDGE_INDEX + 1), r"names node 4.*4 nodes.*from 0 to 3"),
    "a negative node": (lambda: layer("gat")(X, EDGE_INDEX - 1), r"names node -1.*4 nodes.*from 0 to 3"),
    "too few rows of x": (lambda: layer("gin")(X[:2], EDGE_INDEX), r"names node 3.*2 nodes"),
    "a color as a list": (
        lambda: layer("gcn")(X, EDGE_INDEX, colored=COLORED.tolist()),
        r"colored is a list.*expected",
    ),
    "a color as node ids": (
        lambda: layer("gcn")(X, EDGE_INDEX, colored=torch.tensor([1])),
        r"shape \[1\] and dtype torch.int64, expected \[4\] and torch.bool",
    ),
    "a color as numbers": (
        lambda: layer("gcn")(X, EDGE_INDEX, colored=COLORED.float()),
        r"dtype torch.float32, expected \[4\] and torch.bool",
    ),
    "a color too short": (
        lambda: layer("gcn")(X, EDGE_INDEX, colored=COLORED[:2]),
        r"shape \[2\].*expected \[4\]",
    ),
    "gine without edge_attr": (lambda: layer("gine")(X, EDGE_INDEX), r"'gine' needs edge_attr"),
    "edge_attr too short": (lambda: layer("gine")(X, EDGE_INDEX, edge_attr=torch.ones(4, 2)), r"edge_attr has 4 rows"),
    "edge_attr too narrow": (
        lambda: layer("gine")(X, EDGE_INDEX, edge_attr=torch.ones(5, 1)),
        r"edge_attr has shape \[5, 1\].*expected \[num_edges, 2\]",
    ),
    "edge_attr of one dimension": (
        lambda: layer("gine")(X, EDGE_INDEX, edge_attr=torch.ones(5)),
        r"edge_attr has shape \[5\].*expected \[num_edges, 2\]",
    ),
    "edge_attr with NaN": (
        lambda: layer("gine")(X, EDGE_INDEX, edge_attr=torch.full((5, 2), torch.nan)),
        r"edge_attr holds NaN or infinite",
    ),
    "edge_attr nobody uses": (lambda: layer("gcn")(X, EDGE_INDEX, edge_attr=torch.ones(5, 2)), r"'gcn' has no use for"),
    "edge_weight nobody uses": (
        lambda: layer("gat")(X, EDGE_INDEX, edge_weight=torch.ones(5)),
        r"'gat' has no use for",
    ),
    "edge_weight too long": (lambda: layer("gcn")(X, EDGE_INDEX, edge_weight=torch.ones(6)), r"edge_weight has 6 rows"),
    "edge_weight as a column": (
        lambda: layer("gcn")(X, EDGE_INDEX, edge_weight=torch.ones(5, 1)),
        r"edge_weight has shape \[5, 1\].*expected \[num_edges\]",
    ),
    "edge_weight as one number": (
        lambda: layer("gcn")(X, EDGE_INDEX, edge_weight=torch.tensor(1.0)),
        r"edge_weight has shape \[\].*expected",
    ),
    "edge_weight as a list": (
        lambda: layer("gcn")(X, EDGE_INDEX, edge_weight=[1.0] * 5),
        r"edge_weight is a list.*expected",
    ),
    "edge_weight with NaN": (
        lambda: layer("gcn")(X, EDGE_INDEX, edge_weight=torch.full((5,), torch.nan)),
        r"edge_weight holds NaN or infinite",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_a_sentence_that_helps(name):
    call, says = REFUSED[name]
    with pytest.raises(ValueError, match=says):
        call()
