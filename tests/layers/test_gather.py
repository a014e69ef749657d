"""The fast aggregations against their twins that go message by message."""

from functools import partial
from itertools import product

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor

from idgnn.identity.adjacency import Adjacency
from idgnn.identity.schedule import Messages
from idgnn.layers.aggregation.lists import TwoLists, merged
from idgnn.layers.aggregation.maxima import _max_and_winner, gather_max, gather_max_plain
from idgnn.layers.aggregation.sums import gather_sum, gather_sum_plain

CHANNELS = 3


def messages(listed: list[tuple[int, int]], num_sources: int, num_targets: int) -> Messages:
    """Messages (source, target), with both orders worked out the slow way."""
    listed = sorted(listed, key=lambda message: message[1])
    backwards = sorted(range(len(listed)), key=lambda number: listed[number][0])
    return Messages(
        source=_long([source for source, _ in listed]),
        ptr=_starts([target for _, target in listed], num_targets),
        edge=torch.arange(len(listed)) // 2,  # two messages share one, as copies of a row do
        back=Adjacency(
            ptr=_starts([source for source, _ in listed], num_sources),
            neighbor=_long([listed[number][1] for number in backwards]),
            edge=_long(backwards),
        ),
        hubs=False,
    )


def _long(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.long)


def _starts(groups: list[int], size: int) -> Tensor:
    return _long([sum(group < start for group in groups) for start in range(size + 1)])


@st.composite
def rounds(draw) -> tuple[Messages, int, int]:
    """No sources, no messages, targets that hear nothing, and the same message twice among them."""
    num_sources, num_targets = draw(st.integers(0, 4)), draw(st.integers(0, 5))
    listed = []
    if num_sources and num_targets:
        message = st.tuples(st.integers(0, num_sources - 1), st.integers(0, num_targets - 1))
        listed = draw(st.lists(message, max_size=10))
    return messages(listed, num_sources, num_targets), num_sources, num_targets


def assert_twins(fast, plain, inputs: list[Tensor], tolerance: float) -> None:
    """Equal values and equal gradients of every input."""
    results = []
    for function in (fast, plain):
        leaves = [value.clone().requires_grad_() for value in inputs]
        out = function(*leaves)
        towards = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
        gradients = torch.autograd.grad(out, leaves, towards, materialize_grads=True)
        results.append([out.detach(), *gradients])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("weighted", [True, False])
@settings(max_examples=60)
@given(case=rounds())
def test_the_sum_is_its_plain_twin(weighted, dtype, tolerance, case):
    sent, num_sources, _ = case
    x = torch.randn(num_sources, CHANNELS, dtype=dtype)
    weight = [torch.randn(sent.source.numel(), dtype=dtype)] if weighted else []
    assert_twins(
        lambda x, *weight: gather_sum(x, sent, *weight),
        lambda x, *weight: gather_sum_plain(x, sent, *weight),
        [x, *weight],
        tolerance,
    )


@pytest.mark.parametrize("weighted", [True, False])
@settings(max_examples=60)
@given(case=rounds())
def test_the_sum_of_weights_of_edges_onto_a_base_is_its_plain_twin(weighted, case):
    sent, num_sources, num_targets = case
    x = torch.randn(num_sources, CHANNELS, dtype=torch.double)
    base = torch.randn(num_targets, CHANNELS, dtype=torch.double)
    edges = int(sent.edge.max()) + 2 if sent.edge.numel() else 1
    weight = [torch.randn(edges, dtype=torch.double)] if weighted else []

    def of(gather):
        return lambda x, base, *weight: gather(x, sent, edge_weight=weight[0] if weight else None, base=base)

    assert_twins(of(gather_sum), of(gather_sum_plain), [x, base, *weight], 1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("listed", [[], [(0, 0), (1, 0), (1, 2), (1, 2), (2, 2)]], ids=["no messages", "messages"])
def test_states_are_the_base_of_their_own_sum(weighted, listed):
    """Of sources that are the targets, as in GIN; gradients are taken twice as well."""
    sent, x = messages(listed, 3, 3), torch.randn(3, CHANNELS, dtype=torch.double)
    weight = [torch.randn(len(listed), dtype=torch.double)] if weighted else []
    assert_twins(
        lambda x, *weight: gather_sum(x, sent, *weight, base=x),
        lambda x, *weight: gather_sum_plain(x, sent, *weight) + x,
        [x, *weight],
        1e-12,
    )
    leaves = [each.requires_grad_() for each in (x, *weight)]
    assert torch.autograd.gradgradcheck(lambda x, *weight: gather_sum(x, sent, *weight, base=x).square(), leaves)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=60)
@given(case=rounds())
def test_the_maximum_is_its_plain_twin(dtype, case):
    sent, num_sources, _ = case
    x = torch.rand(num_sources, CHANNELS, dtype=dtype) + 0.01  # what ReLU lets through, and no two alike
    assert_twins(lambda x: gather_max(x, sent), lambda x: gather_max_plain(x, sent), [x], 1e-6)


@st.composite
def two_lists(draw) -> tuple[TwoLists, int]:
    """Plain and colored messages to the same targets, and the number of sources."""
    plain, num_plain, num_targets = draw(rounds())
    num_colored, listed = draw(st.integers(0, 3)), []
    if num_colored and num_targets:
        message = st.tuples(st.integers(0, num_colored - 1), st.integers(0, num_targets - 1))
        listed = draw(st.lists(message, max_size=6))
    return TwoLists(plain, messages(listed, num_colored, num_targets), num_plain), num_plain + num_colored


@settings(max_examples=60)
@given(case=two_lists(), heads=st.integers(1, 2))
def test_merged_lists_have_the_messages_of_both(case, heads):
    """The sum with a base, with own rows and with weights of edges or messages, and the maximum."""
    two, num_sources = case
    one = merged(*two)
    num_targets = one.ptr.numel() - 1
    x = torch.rand(num_sources, 2 * CHANNELS, dtype=torch.double) + 0.01
    base = torch.randn(num_targets, 2 * CHANNELS, dtype=torch.double)
    own = torch.randint(num_sources, (num_targets,)) if num_sources else None

    def of(gather, lists):
        return lambda x, base, weight: gather(x, lists, edge_weight=weight, base=base, own=own, own_weight=1.3)

    inputs = [x, base, torch.randn(20, dtype=torch.double)]
    assert_twins(of(gather_sum, one), of(gather_sum_plain, two), inputs, 1e-12)
    assert_twins(lambda x: gather_max(x, one), lambda x: gather_max_plain(x, two), [x], 1e-12)
    weight = torch.randn(one.source.numel(), heads, dtype=torch.double)
    twins = (lambda x, weight, gather=gather: gather(x, one, weight) for gather in (gather_sum, gather_sum_plain))
    assert_twins(*twins, [x, weight], 1e-12)


@settings(max_examples=60)
@given(case=two_lists(), numbers=st.tuples(st.integers(0, 2), st.integers(0, 2)))
def test_padding_of_merged_lists_changes_nothing(case, numbers):
    """Messages behind the last pointers; the last row of each kind is padding, too."""
    two, num_sources = case
    one = merged(*(padded(each, number) for each, number in zip(two[:2], numbers, strict=True)), two.split + 1)
    weight = torch.randn(20, dtype=torch.double)

    def of_padded(gather, **weights):
        def run(x):
            row = x.new_ones(1, CHANNELS)
            return gather(torch.cat([x[: two.split], row, x[two.split :], row]), one, **weights)[:-1]

        return run

    x = torch.rand(num_sources, CHANNELS, dtype=torch.double) + 0.01
    expected = partial(gather_sum_plain, messages=two, edge_weight=weight)
    assert_twins(of_padded(gather_sum, edge_weight=weight), lambda x: expected(x), [x], 1e-12)
    assert_twins(of_padded(gather_max), lambda x: gather_max_plain(x, two), [x], 1e-12)


def padded(sent: Messages, number: int) -> Messages:
    """With one more source, one more target, and messages from that source to that target behind the last pointers."""
    more, size = torch.arange(number), sent.source.numel()
    source = torch.cat([sent.source, torch.full((number,), sent.back.ptr.numel() - 1)])
    target = torch.cat([sent.back.neighbor, torch.full((number,), sent.ptr.numel() - 1)])
    ptr, back_ptr = (torch.cat([each, each[-1:]]) for each in (sent.ptr, sent.back.ptr))
    back = Adjacency(back_ptr, target, torch.cat([sent.back.edge, more + size]))
    return Messages(source, ptr, torch.cat([sent.edge, more]), back, sent.hubs)


@settings(max_examples=60)
@given(case=rounds())
def test_the_winner_of_a_maximum_is_the_message_that_it_came_in(case):
    """Without a kernel and off the CPU, which the other tests do not see."""
    sent, num_sources, num_targets = case
    x = torch.rand(num_sources, CHANNELS)
    value, winner = _max_and_winner(x, sent.source, sent.ptr)
    assert torch.equal(value, gather_max_plain(x, sent))
    for target in range(num_targets):
        for channel in range(CHANNELS):
            message = int(winner[target, channel])
            if sent.ptr[target] == sent.ptr[target + 1]:
                assert message == sent.source.numel()  # nobody
            else:
                assert sent.ptr[target] <= message < sent.ptr[target + 1]
                assert x[sent.source[message], channel] == value[target, channel]


def test_a_target_without_messages_gets_zero_and_gives_no_gradient():
    sent = messages([(0, 1)], num_sources=2, num_targets=3)
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    for gather in (gather_sum, gather_max):
        out = gather(x, sent)
        assert out.tolist() == [[0, 0], [1, 2], [0, 0]]
        (gradient,) = torch.autograd.grad(out, x, torch.tensor([[9.0, 9.0], [5.0, 6.0], [9.0, 9.0]]))
        assert gradient.tolist() == [[5, 6], [0, 0]]


def test_the_maximum_gives_its_gradient_to_the_winner_of_each_channel():
    sent = messages([(0, 0), (1, 0), (1, 1)], num_sources=2, num_targets=2)
    x = torch.tensor([[1.0, 8.0], [3.0, 4.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(gather_max(x, sent), x, torch.tensor([[1.0, 10.0], [100.0, 1000.0]]))
    assert gradient.tolist() == [[0, 10], [101, 1000]]


def test_a_tie_gives_the_gradient_once():
    """Any split between equal messages is a subgradient; giving it to each of them is not."""
    sent = messages([(0, 0), (1, 0), (2, 0)], num_sources=3, num_targets=1)
    x = torch.full((3, 1), 2.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(gather_max(x, sent), x, torch.ones(1, 1))
    assert (gradient >= 0).all()
    assert gradient.sum() == 1


@pytest.mark.parametrize("gather", [gather_sum, gather_max])
def test_noncontiguous_states_are_read_right(gather):
    sent = messages([(0, 0), (1, 0), (1, 2)], num_sources=2, num_targets=3)
    x = torch.rand(CHANNELS, 2, dtype=torch.double)
    assert torch.equal(gather(x.t(), sent), gather(x.t().contiguous(), sent))
    weights = torch.rand(CHANNELS, 3, dtype=torch.double).t()  # a gradient that is not contiguous either
    first, second = (value.requires_grad_() for value in (x.t().clone(), x.t().contiguous()))
    for leaf, towards in ((first, weights), (second, weights.contiguous())):
        gather(leaf, sent).backward(towards)
    assert torch.equal(first.grad, second.grad)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("weighted", ["weight", "edge_weight", None])
def test_the_sum_can_be_differentiated_twice(weighted, based):
    """Forces in molecules and gradient penalties need it."""
    sent = messages([(2, 0), (0, 0), (1, 0), (2, 1), (0, 1)], num_sources=3, num_targets=2)
    given = {"x": torch.randn(3, CHANNELS, dtype=torch.double)}
    if weighted:
        given[weighted] = torch.rand(5, dtype=torch.double) + 0.5
    if based:
        given["base"] = torch.randn(2, CHANNELS, dtype=torch.double)
    assert_twins_twice(gather_sum, gather_sum_plain, sent, given)
    own = {"own": torch.tensor([2, 2]), "own_weight": 1.3}
    assert_twins_twice(partial(gather_sum, **own), partial(gather_sum_plain, **own), sent, given)


def test_the_maximum_can_be_differentiated_twice():
    sent = messages([(2, 0), (0, 0), (1, 0), (2, 1), (0, 1)], num_sources=3, num_targets=2)
    assert_twins_twice(gather_max, gather_max_plain, sent, {"x": torch.rand(3, CHANNELS, dtype=torch.double) + 0.1})


def assert_twins_twice(fast, plain, sent, given):
    """Equal gradients of a penalty on gradients."""
    results = []
    for gather in (fast, plain):
        leaves = {name: value.clone().requires_grad_() for name, value in given.items()}
        out = gather(messages=sent, **leaves)
        gradients = torch.autograd.grad(out.pow(3).sum(), list(leaves.values()), create_graph=True)
        penalty = sum(gradient.pow(2).sum() for gradient in gradients)
        results.append(torch.autograd.grad(penalty, list(leaves.values())))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=1e-10)


FLOATS = (torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtypes", list(product(FLOATS, FLOATS, FLOATS)), ids=str)
def test_types_that_differ_are_summed_in_the_one_that_holds_all(dtypes):
    sent = messages([(0, 0), (1, 0), (1, 2)], num_sources=2, num_targets=3)
    shapes = ((2, CHANNELS), (3,), (3, CHANNELS))
    x, weight, base = (torch.rand(shape).to(dtype) for shape, dtype in zip(shapes, dtypes, strict=True))
    largest = max(dtypes, key=FLOATS.index)
    for edge_weight in (False, True):
        weights = {"edge_weight" if edge_weight else "weight": weight}
        out = gather_sum(x, sent, **weights, base=base)
        assert out.dtype == largest
        expected = gather_sum_plain(x.double(), sent, **{k: v.double() for k, v in weights.items()}, base=base.double())
        torch.testing.assert_close(out.double(), expected, atol=0.05, rtol=0.05)
    assert gather_max(x, sent).dtype == dtypes[0]


@pytest.mark.parametrize("listed", [[], [(0, 0), (1, 0), (1, 2)]])
def test_torch_compile_takes_them_as_they_are(listed):
    """In one graph, with the same values and gradients."""
    sent = messages(listed, num_sources=2, num_targets=3)
    own, weight = torch.tensor([0, 1, 1]), torch.rand(len(listed), 3, dtype=torch.double)

    def both(x, base, weight):
        return gather_sum(x, sent, weight, base=base, own=own) + gather_max(x, sent)

    torch._dynamo.reset()
    inputs = [torch.rand(2, CHANNELS, dtype=torch.double), torch.rand(3, CHANNELS, dtype=torch.double), weight]
    assert_twins(torch.compile(both, backend="aot_eager", fullgraph=True), both, inputs, 1e-12)


@pytest.mark.parametrize("listed", [[], [(0, 0), (1, 0), (1, 2)]])
def test_pytorch_finds_no_fault_with_the_operators(listed):
    """Fake tensors, schema, autograd registration and AOT dispatch, as PyTorch itself checks custom operators."""
    sent, ops = messages(listed, num_sources=2, num_targets=3), torch.ops.idgnn
    x = torch.rand(2, CHANNELS, requires_grad=True)
    weight, turned = torch.rand(len(listed), requires_grad=True), torch.rand(CHANNELS, 3).t()
    back, none = sent.back, (None,) * 6
    backwards = back.neighbor, back.ptr, back.edge
    for one, place, base in (weight, None, turned), (weight, torch.arange(len(listed)), None), (None, None, None):
        lists = (sent.source, sent.ptr, place, *backwards, *none)
        torch.library.opcheck(ops.gather_sum, (x, one, base, None, 1.0, False, 2, False, *lists))
    torch.library.opcheck(ops.gather_max, (x, 2, False, sent.source, sent.ptr, *backwards, *none[:5]))
    torch.library.opcheck(ops.products, (x.detach(), turned.contiguous(), sent.source, sent.ptr, 1, False))


def test_half_precision_messages_are_summed_in_single_precision_when_weighted():
    sent = messages([(0, 0)] * 1000, num_sources=1, num_targets=1)
    x = torch.ones(1, 1, dtype=torch.bfloat16)
    out = gather_sum(x, sent, torch.ones(1000))
    assert out.dtype == torch.float32
    assert out.item() == 1000


def test_half_precision_messages_are_summed_right_without_weights():
    """bfloat16 itself stops counting at 256."""
    sent = messages([(0, 0)] * 1000, num_sources=1, num_targets=1)
    out = gather_sum(torch.ones(1, 1, dtype=torch.bfloat16), sent)
    assert abs(out.item() - 1000) <= 4
