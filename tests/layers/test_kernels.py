"""The Triton kernels against their plain twins: on a GPU, or anywhere with Triton and TRITON_INTERPRET=1."""

import importlib
import os
from dataclasses import fields, is_dataclass, replace

import pytest
import torch
from torch_geometric.utils import erdos_renyi_graph, to_undirected

from idgnn import IDGNN
from idgnn.identity.schedule import HUB, Round
from idgnn.layers.aggregation import lists, maxima, sums, updates
from idgnn.layers.aggregation.attend import attend, attend_plain
from idgnn.layers.aggregation.lists import TwoLists
from idgnn.layers.aggregation.maxima import gather_max, gather_max_plain
from idgnn.layers.aggregation.sums import gather_sum, gather_sum_plain
from idgnn.layers.aggregation.updates import add_update, add_update_plain
from tests.layers.test_gather import messages

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("no GPU; set TRITON_INTERPRET=1 to run the kernels on the CPU", allow_module_level=True)

pytest.importorskip("triton", reason="Triton comes with PyTorch for CUDA")
kernels = pytest.importorskip("idgnn.layers.aggregation.kernels")
attend_module = importlib.import_module("idgnn.layers.aggregation.attend")  # of which the package has the function
# Of Triton's interpreter.
pytestmark = pytest.mark.filterwarnings("ignore:Conversion of an array with ndim > 0:DeprecationWarning")

# Sources, targets, messages and channels: nothing at all, no sources, more channels than a program has, hubs.
CASES = [
    (0, 0, 0, 2),
    (3, 0, 0, 2),
    (0, 4, 0, 2),
    (1, 1, 1, 1),
    (5, 7, 12, 3),
    (4, 6, 40, 20),
    (6, 5, 30, 300),
    (50, 1, 90, 9),
    (3, 2, 1100, 5),
]


@pytest.fixture(params=[False, True], ids=["", "in pieces"])
def hubs(request):
    """Whether targets are taken apart, which must change nothing."""
    return request.param


@pytest.fixture(params=CASES, ids=str)
def case(request):
    sources, targets, number, channels = request.param
    random = torch.Generator().manual_seed(number)
    ends = [torch.randint(max(size, 1), (number,), generator=random).tolist() for size in (sources, targets)]
    sent = messages(list(zip(*ends, strict=True)), sources, targets)
    x = torch.rand(sources, channels, generator=random) + 0.01
    return sent, x, torch.rand(targets, channels, generator=random), torch.rand(number, generator=random)


def there(*tensors):
    return [tensor.to(DEVICE) for tensor in tensors]


def moved(value, device):
    """Messages, or a round of them, on a device."""
    if is_dataclass(value):
        return replace(value, **{each.name: moved(getattr(value, each.name), device) for each in fields(value)})
    return value.to(device) if torch.is_tensor(value) else value


def weights(*tensors):
    return kernels.Weights(*(None if tensor is None else tensor.to(DEVICE) for tensor in tensors))


def eighths(*tensors):
    """Rounded so that float32 sums a thousand of them, or of their products, without an error, in any order."""
    return [(8 * tensor).round() / 8 for tensor in tensors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weighted_sum(case, dtype, hubs):
    sent, x, _, weight = case
    x, weight = (each.to(dtype) for each in eighths(x, weight))
    for each in (weight, None):
        found = kernels.weighted_sum(*there(x, sent.source, sent.ptr), weights(each), hubs=hubs)
        assert torch.equal(found.cpu(), gather_sum_plain(x, sent, each))


def test_weighted_sum_of_weights_that_stand_elsewhere_onto_a_base(case, hubs):
    sent, *tensors = case
    x, base, weight, few = eighths(*tensors, torch.rand(3))
    order = torch.randperm(weight.numel(), generator=torch.Generator().manual_seed(1))
    place = torch.randint(3, (weight.numel(),), generator=torch.Generator().manual_seed(2))
    for given, expected in (
        ((weight, None, order), weight[order]),
        ((few, place, None), few[place]),
        ((few, place, order), few[place[order]]),
    ):
        found = kernels.weighted_sum(*there(x, sent.source, sent.ptr), weights(*given), *there(base), hubs=hubs)
        assert torch.equal(found.cpu(), gather_sum_plain(x, sent, expected, base=base))


def test_what_pieces_sum_up_to_is_not_rounded_in_between():
    """From 1024 on half precision has whole numbers alone; the second piece is -1635.5."""
    sent = messages([(0, 0)] * 256 + [(1, 0)] * 50 + [(2, 0)] * 206, num_sources=3, num_targets=1)
    x = torch.tensor([[8.0], [0.25], [-8.0]], dtype=torch.float16)
    found = kernels.weighted_sum(*there(x, sent.source, sent.ptr), hubs=True)
    assert found.dtype == torch.float16 and found.item() == 50 * 8 + 50 * 0.25


def test_products(case, hubs):
    sent, x, grad, _ = case
    found = kernels.products(*there(x, grad, sent.source, sent.ptr), hubs=hubs)
    torch.testing.assert_close(found.cpu(), (x[sent.source] * grad[sent.target]).sum(-1))


def test_maximum_and_its_gradients(case, hubs):
    sent, x, grad, _ = case
    value, winner = kernels.maximum(*there(x, sent.source, sent.ptr), hubs=hubs)
    expected = gather_max_plain(x.requires_grad_(), sent)
    assert torch.equal(value.cpu(), expected)
    back = sent.back
    found = kernels.from_winners(*there(grad), winner, there(back.neighbor, back.ptr, back.edge), hubs=hubs)
    torch.testing.assert_close(found.cpu(), torch.autograd.grad(expected, x, grad)[0])


def test_a_tie_gives_the_gradient_once():
    """Also where the same message is sent twice."""
    sent = messages([(0, 0), (0, 0), (1, 0)], num_sources=2, num_targets=1)
    _, winner = kernels.maximum(*there(torch.full((2, 1), 2.0), sent.source, sent.ptr))
    back = sent.back
    found = kernels.from_winners(*there(torch.ones(1, 1)), winner, there(back.neighbor, back.ptr, back.edge))
    assert found.sum() == 1


def test_the_maximum_of_something_unknown_is_unknown():
    sent = messages([(0, 0), (1, 0), (2, 0), (2, 1)], num_sources=3, num_targets=2)
    value, _ = kernels.maximum(*there(torch.tensor([[1.0], [float("nan")], [3.0]]), sent.source, sent.ptr))
    assert value[0].isnan() and value[1] == 3


@pytest.fixture
def behind_operators(monkeypatch):
    """The operators use the kernels, also where Triton interprets them."""
    if DEVICE == "cpu":
        for module in (attend_module, sums, maxima, updates):
            monkeypatch.setattr(module, "kernels_on", lambda device: kernels)
        for module in (attend_module, lists, maxima, updates):
            monkeypatch.setattr(module, "has_kernels", lambda device: True)


# Of plain and of colored messages: sources and messages. Targets that hear from one kind, from both, from none.
TWO = [((4, 0), (3, 0)), ((4, 9), (3, 0)), ((4, 0), (3, 5)), ((5, 25), (3, 9)), ((1, 1), (1, 1)), ((6, 600), (2, 300))]


@pytest.fixture(params=TWO, ids=str)
def two(request):
    """Two lists, rows of 12 channels and a row for each target."""
    random, found = torch.Generator().manual_seed(len(str(request.param))), []
    for sources, number in request.param:
        ends = [torch.randint(size, (number,), generator=random).tolist() for size in (sources, 7)]
        found.append(messages(list(zip(*ends, strict=True)), sources, 7))
    split, size = request.param[0][0], request.param[0][0] + request.param[1][0]
    x = torch.rand(size, 12, generator=random, dtype=torch.double) + 0.01
    return TwoLists(*found, split), x, torch.randint(size, (7,), generator=random)


def assert_twins_on(device, fast, plain, given: dict):
    """Equal values and equal gradients."""
    results = []
    for function, place in ((fast, device), (plain, "cpu")):
        leaves = {name: value.detach().to(place).requires_grad_() for name, value in given.items()}
        out = function(place, **leaves)
        towards = torch.linspace(-1, 2, out.numel(), dtype=out.dtype, device=place).view_as(out)
        gradients = torch.autograd.grad(out, list(leaves.values()), towards, materialize_grads=True)
        results.append([each.cpu() for each in (out.detach(), *gradients)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def of_two(function, two: TwoLists, hubs: bool, **options):
    """With hubs or without, on the device that it is given."""

    def run(device, **leaves):
        lists = [replace(moved(each, device), hubs=hubs) for each in two[:2]]
        placed = {
            name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in options.items()
        }
        return function(messages=TwoLists(*lists, two.split), **leaves, **placed)

    return run


@pytest.mark.parametrize("weighted", ["", "edges", "messages", "heads"])
def test_sums_over_two_lists(behind_operators, two, weighted, hubs):
    lists, x, own = two
    number = sum(each.source.numel() for each in lists[:2])
    sizes = {"edges": (number + 1,), "messages": (number,), "heads": (number, 3)}
    given = {"x": x, "base": torch.rand(7, 12, dtype=torch.double)}
    if weighted:
        name = "edge_weight" if weighted == "edges" else "weight"
        given[name] = torch.rand(sizes[weighted], dtype=torch.double)
    twins = (of_two(gather, lists, hubs, own=own, own_weight=1.3) for gather in (gather_sum, gather_sum_plain))
    assert_twins_on(DEVICE, *twins, given)


# The sources that are the own states of five targets, and the first colored one of six.
PREVIOUS = {"one color": ([0, 5, 1, 3, 2], 3), "two": ([5, 5, 0, 4, 5], 2), "none": ([0, 1, 2, 0, 1], 4)}


@pytest.mark.parametrize("previous", PREVIOUS)
@pytest.mark.parametrize("in_place", [True, False])
@pytest.mark.parametrize("twice", [False, True])
def test_updates_of_colored_targets(behind_operators, previous, in_place, twice):
    own, split = PREVIOUS[previous]
    given, results = [torch.randn(5, 20).double(), torch.randn(6 - split, 20).double()], []
    for function, device in ((add_update, DEVICE), (add_update_plain, "cpu")):
        empty, second = (messages([], 6 - split, 5), 4 if previous == "two" else None)
        round_ = Round(6, 5, split, empty, empty, torch.tensor(own, device=device), second=second)
        leaves = [each.to(device).requires_grad_() for each in given]
        total = 2 * leaves[0]
        options = {} if function is add_update_plain else {"in_place": in_place}
        out = function(total, leaves[1], round_, **options)
        if function is add_update:
            assert (out is total) == in_place
        found = torch.autograd.grad(out.pow(3).sum(), leaves, create_graph=twice)
        if twice:
            found = torch.autograd.grad(sum(each.pow(2).sum() for each in found), leaves)
        results.append([each.detach().cpu() for each in (out, *found)])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_maxima_over_two_lists(behind_operators, two, hubs):
    lists, x, _ = two
    assert_twins_on(DEVICE, *(of_two(gather, lists, hubs) for gather in (gather_max, gather_max_plain)), {"x": x})


@pytest.mark.parametrize("heads", [1, 3])
def test_attention_over_two_lists(behind_operators, two, heads, hubs):
    lists, x, own = two
    given = {"sent": x, "scores": 3 * torch.randn(x.size(0), 2 * heads, dtype=torch.double)}
    twins = (of_two(function, lists, hubs, own=own, slope=0.2) for function in (attend, attend_plain))
    assert_twins_on(DEVICE, *twins, given)


@pytest.mark.parametrize("channels", [1, 300])
def test_attention_over_one_list_of_few_or_many_channels(behind_operators, channels):
    sent = messages([(0, 0), (1, 0), (1, 2), *[(i % 4, 3) for i in range(19)], (2, 4)], num_sources=4, num_targets=5)
    given = {"sent": torch.randn(4, channels).double(), "scores": torch.randn(4, 2).double()}

    def of(function):
        return lambda device, **leaves: function(
            messages=moved(sent, device), own=torch.tensor([0, 0, 1, 3, 2], device=device), slope=0.2, **leaves
        )

    assert_twins_on(DEVICE, of(attend), of(attend_plain), given)


@pytest.mark.parametrize("gather", ["sum", "weighted sum", "maximum"])
def test_operators(behind_operators, case, gather, hubs):
    sent, x, base, weight = case
    fast, plain = (gather_max, gather_max_plain) if gather == "maximum" else (gather_sum, gather_sum_plain)
    given = (
        {"x": x} | ({"weight": weight} if "weighted" in gather else {}) | ({"base": base} if "sum" in gather else {})
    )
    given = {name: value.double() for name, value in given.items()}

    def of(function):
        return lambda device, **leaves: function(messages=replace(moved(sent, device), hubs=hubs), **leaves)

    assert_twins_on(DEVICE, of(fast), of(plain), given)


@pytest.mark.parametrize("channels", [3, 300])
def test_states_are_the_base_of_their_own_sum(behind_operators, channels, hubs):
    sent = messages([(0, 0), (1, 0), (1, 2), (1, 2), (2, 2)], 4, 4)
    x, weight = torch.rand(4, channels, dtype=torch.double), torch.rand(5, dtype=torch.double)

    def of(gather):
        def run(device, x, weight):
            return gather(x, replace(moved(sent, device), hubs=hubs), weight, base=x)

        return run

    assert_twins_on(DEVICE, of(gather_sum), of(gather_sum_plain), {"x": x, "weight": weight})


@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
def test_networks_can_be_compiled_with_kernels(behind_operators, conv):
    torch.manual_seed(0)
    model = IDGNN(3, 6, 2, num_layers=2, conv=conv).double().to(DEVICE)
    ready = model.prepare(torch.rand(9, 3, dtype=torch.double).to(DEVICE), erdos_renyi_graph(9, 0.4).to(DEVICE))
    torch._dynamo.reset()
    results = []
    for run in (model.run, torch.compile(model.run, backend="aot_eager", dynamic=True)):
        out = run(ready)
        gradients = torch.autograd.grad(out.pow(2).sum(), list(model.parameters()), materialize_grads=True)
        results.append([out.detach(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("wanted", ["sent", "scores"])
def test_attention_of_which_one_part_alone_is_differentiated_twice(behind_operators, two, wanted):
    lists, x, own = two
    given = {"sent": x.to(DEVICE), "scores": torch.randn(x.size(0), 2).double().to(DEVICE)}
    given[wanted].requires_grad_()
    results = []
    for function in (attend, attend_plain):
        out = of_two(function, lists, False, own=own, slope=0.2)(DEVICE, **given)
        (gradient,) = torch.autograd.grad(out.pow(3).sum(), given[wanted], create_graph=True)
        results.append(torch.autograd.grad(gradient.pow(2).sum(), given[wanted])[0])
    torch.testing.assert_close(*results)


@pytest.mark.skipif(DEVICE == "cpu", reason="no GPU")
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
@pytest.mark.parametrize("hub", [False, True])
def test_networks_compute_on_a_gpu_what_they_do_on_a_cpu(conv, hub):
    torch.manual_seed(0)
    model = IDGNN(3, 20, 5, num_layers=3, conv=conv).double()
    num_nodes, queries = 30, None
    edge_index = erdos_renyi_graph(num_nodes, 0.15)
    if hub:
        num_nodes, queries = HUB + 100, torch.tensor([0, 7, HUB])
        leaves = torch.arange(1, num_nodes)
        spokes = to_undirected(torch.stack([torch.zeros_like(leaves), leaves]))
        edge_index = torch.cat([edge_index, spokes], dim=1)
    # Of both signs: among sums of a thousand positive ones BatchNorm's second derivatives would be mostly rounding.
    x = torch.randn(num_nodes, 3, dtype=torch.double)
    results = []
    for device in ("cpu", DEVICE):
        model = model.to(device)
        asked = None if queries is None else queries.to(device)
        out = model(x.to(device), edge_index.to(device), queries=asked)
        penalty = torch.autograd.grad(out.pow(2).sum(), list(model.parameters()), create_graph=True, allow_unused=True)
        twice = sum(gradient.pow(2).sum() for gradient in penalty if gradient is not None)
        again = torch.autograd.grad(twice, list(model.parameters()), allow_unused=True)
        results.append([each.cpu() for each in (out.detach(), *penalty, *again) if each is not None])
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-8, rtol=1e-6)
