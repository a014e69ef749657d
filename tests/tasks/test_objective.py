"""Loss, metrics and readable outputs of each objective, against a computation by hand."""

import json
import math
from itertools import product

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from idgnn.tasks.link_prediction import LinkObjective
from idgnn.tasks.objective import Binary, Classes, Quantity
from idgnn.tasks.problem import objective_from_dict
from idgnn.tasks.quantities import Quantities

OBJECTIVES = (Classes(3), Binary(), LinkObjective(), Quantity(5.0, 2.5))


def graph_of(target: Tensor) -> Tensor:
    return torch.zeros_like(target, dtype=torch.long)


@pytest.mark.parametrize(
    "objective", [*OBJECTIVES, Classes(3, class_weights=(1.0, 2.0, 0.5)), Quantities(("a",), (1.0,), (3.0,), (1.0,))]
)
def test_a_loss_has_the_digits_of_the_outputs_and_at_least_those_of_float32(objective):
    out = torch.rand(4, objective.num_outputs, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 1, 0])
    target = target.unsqueeze(-1).float() if isinstance(objective, Quantities) else target
    real = torch.tensor([True, True, True, False])
    exact, padded = objective.loss(out, target), objective.loss(out, target, real)
    assert exact.dtype == padded.dtype == torch.float64
    assert math.isclose(objective.loss(out[:3], target[:3]).item(), padded.item(), rel_tol=1e-14)
    for dtype in (torch.float32, torch.bfloat16):
        found = objective.loss(out.to(dtype), target)
        assert found.dtype == torch.float32 and math.isclose(found.item(), exact.item(), rel_tol=1e-2)


@st.composite
def yes_or_no(draw, both: bool = True) -> tuple[Tensor, Tensor]:
    """Logits `[queries, 1]` with ties among them, and targets of both classes."""
    target = draw(st.lists(st.integers(0, 1), min_size=1, max_size=12))
    if both:
        target = draw(st.permutations([0, 1, *target]))
    logits = draw(st.lists(st.integers(-4, 4), min_size=len(target), max_size=len(target)))
    return torch.tensor(logits).float().unsqueeze(-1) / 2, torch.tensor(target)


def area_by_hand(logits: list[float], target: list[int]) -> float:
    """How often a positive is above a negative; a tie counts half."""
    yes = [score for score, truth in zip(logits, target, strict=True) if truth]
    no = [score for score, truth in zip(logits, target, strict=True) if not truth]
    return sum((a > b) + (a == b) / 2 for a, b in product(yes, no)) / (len(yes) * len(no))


def average_precision_by_hand(logits: list[float], target: list[int]) -> float:
    """For every threshold, the precision above it times what it adds to the recall."""
    total, before = 0.0, 0
    for threshold in sorted(set(logits), reverse=True):
        above = [truth for score, truth in zip(logits, target, strict=True) if score >= threshold]
        total += (sum(above) - before) / sum(target) * sum(above) / len(above)
        before = sum(above)
    return total


@given(yes_or_no())
def test_binary_loss_and_metrics_by_hand(given_):
    out, target = given_
    logits, truth = out.squeeze(-1).tolist(), target.tolist()
    loss = [math.log1p(math.exp(-x if y else x)) for x, y in zip(logits, truth, strict=True)]
    assert math.isclose(float(Binary().loss(out, target)), sum(loss) / len(loss), rel_tol=1e-5)
    found = Binary().measure(out, target, graph_of(target))
    right = [(x > 0) == bool(y) for x, y in zip(logits, truth, strict=True)]
    assert math.isclose(found["accuracy"], sum(right) / len(right), rel_tol=1e-5)
    assert math.isclose(found["roc_auc"], area_by_hand(logits, truth), rel_tol=1e-5, abs_tol=1e-6)
    assert math.isclose(found["average_precision"], average_precision_by_hand(logits, truth), rel_tol=1e-5)


@pytest.mark.parametrize("objective", [Binary(), LinkObjective()])
@pytest.mark.parametrize("only", [0, 1])
def test_one_class_alone_has_no_curve_and_gives_no_warning(objective, only):
    target = torch.full((4,), only)
    found = objective.measure(torch.tensor([[-1.0], [2.0], [0.5], [1.0]]), target, graph_of(target))
    assert math.isnan(found["roc_auc"]) and math.isnan(found["average_precision"])
    assert found["accuracy"] == (0.75 if only else 0.25)


def test_confident_answers_keep_their_order():
    """Logits 20 and 30 are both 1 after a sigmoid in float32, but one of them is above the other."""
    out, target = torch.tensor([[20.0], [30.0], [25.0], [35.0]]), torch.tensor([0, 1, 0, 1])
    found = Binary().measure(out, target, graph_of(target))
    assert found["roc_auc"] == 1 and found["average_precision"] == 1


@given(st.lists(st.tuples(*[st.integers(-3, 3)] * 3, st.integers(0, 2)), min_size=1, max_size=12))
def test_classes_loss_and_accuracy_by_hand(rows):
    rows = [(a + 0.1, b + 0.2, c + 0.3, truth) for a, b, c, truth in rows]  # no ties
    out, target = torch.tensor([row[:3] for row in rows]), torch.tensor([row[3] for row in rows])
    loss = [math.log(sum(math.exp(x) for x in row[:3])) - row[row[3]] for row in rows]
    assert math.isclose(float(Classes(3).loss(out, target)), sum(loss) / len(loss), rel_tol=1e-4, abs_tol=1e-6)
    right = [max(row[:3]) == row[row[3]] for row in rows]
    accuracy = Classes(3).measure(out, target, graph_of(target))["accuracy"]
    assert math.isclose(accuracy, sum(right) / len(right), rel_tol=1e-6)


SPREAD = st.floats(-1000, 1000, width=32).map(lambda value: value if abs(value) > 1e-30 else 0.0)


@given(st.lists(SPREAD, min_size=2, max_size=12))
def test_a_quantity_is_standardized_for_the_loss_and_read_in_its_own_unit(values):
    target = torch.tensor(values)
    objective = Quantity.of(target)
    # The answer that is exactly right costs nothing and reads as the target.
    right = ((target.double() - objective.mean) / objective.scale).float().unsqueeze(-1)
    size = max(1.0, float(target.abs().max()))
    assert float(objective.loss(right, target)) < 1e-6 * max(1.0, (size / objective.scale) ** 2 * 1e-6)
    assert torch.allclose(objective.read(right)["value"], target, atol=1e-5 * size)
    # An error of one standard deviation costs 1 and is one standard deviation long.
    if objective.scale > 1e-2 * size:
        assert math.isclose(float(objective.loss(right + 1, target)), 1, rel_tol=1e-3)
        error = objective.measure(right + 1, target, graph_of(target))["mae"]
        assert math.isclose(error, objective.scale, rel_tol=1e-3)
    if target.unique().numel() > 1:
        standard = (target.double() - objective.mean) / objective.scale
        assert abs(float(standard.mean())) < 1e-6 * size / objective.scale
        assert math.isclose(float(standard.std()), 1, rel_tol=1e-6)


def test_a_spread_that_float32_cannot_hold_is_none():
    target = torch.tensor([0.0, 0.0, 1e-45])
    objective = Quantity.of(target)
    assert objective.scale == 1
    assert float(objective.loss(torch.zeros(3, 1), target)) == 0


@pytest.mark.parametrize("target", [torch.tensor([3.0]), torch.tensor([3.0, 3.0]), torch.tensor([3, 3, 3])])
def test_a_quantity_that_is_always_the_same_is_not_divided_by_zero(target):
    objective = Quantity.of(target)
    assert (objective.mean, objective.scale) == (3.0, 1.0)
    assert float(objective.loss(torch.zeros(len(target), 1), target)) == 0


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_an_objective_survives_json(objective):
    again = objective_from_dict(json.loads(json.dumps(objective.as_dict())))
    assert again == objective and type(again) is type(objective)
    out = torch.randn(4, objective.num_outputs)
    assert again.read(out).keys() == objective.read(out).keys()
    assert all(torch.equal(a, b) for a, b in zip(again.read(out).values(), objective.read(out).values(), strict=True))


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_the_metric_that_counts_is_measured_and_better_answers_score_better(objective):
    target = torch.tensor([0, 1, 1, 0]) if objective.num_outputs == 1 else torch.tensor([0, 1, 2, 1])
    if isinstance(objective, Quantity):
        target = torch.tensor([0.0, 3.0, 5.0, 9.0])
        right = ((target - 5) / 2.5).unsqueeze(-1)
    elif isinstance(objective, Classes):
        right = torch.nn.functional.one_hot(target, 3).float()
    else:
        right = target.float().unsqueeze(-1) - 0.5
    good, bad = (objective.measure(out, target, graph_of(target))[objective.metric] for out in (right, -right - 1))
    assert (good > bad) == objective.higher_is_better and good != bad
    assert float(objective.loss(right, target)) < float(objective.loss(-right - 1, target))


def test_the_columns_for_people():
    logits = torch.tensor([[-1.0], [0.5]])
    assert list(Binary().read(logits)) == ["class", "probability_1"]
    assert Binary().read(logits)["class"].tolist() == [0, 1]
    assert torch.allclose(Binary().read(logits)["probability_1"], 1 / (1 + (-logits.squeeze(-1)).exp()))
    assert list(LinkObjective().read(logits)) == ["probability"]
    columns = Classes(3).read(torch.tensor([[0.0, 2.0, 1.0]]))
    assert list(columns) == ["class", "probability_0", "probability_1", "probability_2"]
    assert columns["class"].tolist() == [1]
    assert math.isclose(sum(columns[f"probability_{i}"].item() for i in range(3)), 1, rel_tol=1e-6)
    assert math.isclose(columns["probability_1"].item() / columns["probability_0"].item(), math.exp(2), rel_tol=1e-5)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda each: type(each).__name__)
def test_answers_in_bfloat16_are_measured_in_float32(objective):
    target = torch.tensor([0, 1, 1, 0])
    out = torch.randn(4, objective.num_outputs).bfloat16()
    assert objective.loss(out, target).dtype == torch.float32
    assert all(column.dtype in (torch.float32, torch.long) for column in objective.read(out).values())


def class_metrics_by_hand(answer: list[int], truth: list[int], num_classes: int) -> tuple[float, float]:
    """Macro F1 and balanced accuracy."""
    pairs = list(zip(answer, truth, strict=True))
    f1, recall = [], []
    for each in range(num_classes):
        right = sum(a == t == each for a, t in pairs)
        predicted, there = answer.count(each), truth.count(each)
        if predicted + there:
            f1.append(2 * right / (predicted + there))
        if there:
            recall.append(right / there)
    return sum(f1) / len(f1), sum(recall) / len(recall)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=12), st.integers(0, 2))
def test_metrics_of_classes_by_hand(pairs, majority):
    answer, truth = map(list, zip(*pairs, strict=True))
    out = torch.nn.functional.one_hot(torch.tensor(answer), 3).float()
    target = torch.tensor(truth)
    found = Classes(3, majority=majority).measure(out, target, graph_of(target))
    f1, balanced = class_metrics_by_hand(answer, truth, 3)
    assert math.isclose(found["macro_f1"], f1, abs_tol=1e-6)
    assert math.isclose(found["balanced_accuracy"], balanced, abs_tol=1e-6)
    assert math.isclose(found["majority_accuracy"], truth.count(majority) / len(truth), abs_tol=1e-6)


@given(yes_or_no(), st.floats(0.1, 10), st.floats(0.1, 10))
def test_weighted_losses_by_hand(given_, no, yes):
    out, target = given_
    each = [
        math.log1p(math.exp(-x if y else x)) for x, y in zip(out.squeeze(-1).tolist(), target.tolist(), strict=True)
    ]
    weight = [yes if y else no for y in target.tolist()]
    expected = sum(w * x for w, x in zip(weight, each, strict=True)) / sum(weight)
    assert math.isclose(float(Binary(class_weights=(no, yes)).loss(out, target)), expected, rel_tol=1e-4)
    both = torch.cat([torch.zeros_like(out), out], dim=1)  # the same two classes, with an output each
    assert math.isclose(float(Classes(2, class_weights=(no, yes)).loss(both, target)), expected, rel_tol=1e-4)


@pytest.mark.parametrize(
    "objective",
    [
        Classes(3),
        Classes(3, class_weights=(1.0, 2.0, 0.5)),
        Binary(),
        Binary(class_weights=(0.3, 4.0)),
        Quantity(1.0, 2.0),
        Quantity(1.0, 2.0, "absolute"),
        Quantities(("a", "b"), (0.0, 1.0), (1.0, 3.0), (1.0, 1.0), "absolute"),
    ],
    ids=str,
)
def test_padding_does_not_count_in_losses(objective):
    generator = torch.Generator().manual_seed(0)
    out = torch.randn(9, objective.num_outputs, generator=generator)
    target = torch.randint(2, (9,), generator=generator)
    if isinstance(objective, Quantities):
        target = torch.randn(9, 2, generator=generator)
    real = torch.tensor([True, True, False, True, False, True, True, True, False])
    padded, alone = (out.clone().requires_grad_() for _ in range(2))
    ours, theirs = objective.loss(padded, target, real), objective.loss(alone[real], target[real])
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-6)
    for loss in (ours, theirs):
        loss.backward()
    assert padded.grad is not None and alone.grad is not None
    assert torch.allclose(padded.grad, alone.grad, atol=1e-7)
    assert not padded.grad[~real].any()
