"""Objectives: the loss that a network is trained with, the metrics, and its outputs in readable form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, l1_loss, mse_loss

from idgnn.choices import ErrorName

_IGNORED = -100  # the class that PyTorch leaves out of a cross-entropy


class Objective(ABC):
    """Everything that depends only on the kind of the target. Objectives are frozen dataclasses."""

    kind: ClassVar[str]
    """Its name in files."""
    metric: str
    """The metric that the best epoch is chosen by."""
    metrics: ClassVar[tuple[str, ...]]
    """The metrics that it may be chosen by."""
    higher_is_better: ClassVar[bool] = True

    @property
    def num_outputs(self) -> int:
        """The number of outputs of the network for each query."""
        return 1

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file; :func:`idgnn.tasks.problem.objective_from_dict` reads them."""
        return {"kind": self.kind, **vars(self)}

    @abstractmethod
    def loss(self, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """From outputs `[queries, num_outputs]` and targets `[queries]`, the mean over the queries.

        `real` `[queries]` says which of them count; the others are padding.
        """

    @abstractmethod
    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """All metrics. `graph` `[queries]` is the graph that each query belongs to."""

    @abstractmethod
    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The outputs as columns of a table: classes, probabilities, quantities."""

    def labels(self, target: Tensor) -> dict[str, Tensor]:
        """The targets as columns of a table."""
        return {"label": target}


@dataclass(frozen=True)
class Classes(Objective):
    """One of several classes: cross-entropy, accuracy."""

    num_classes: int
    metric: str = "accuracy"
    majority: int | None = None
    """The most frequent class of the training part; the accuracy of always predicting it is measured as well."""
    class_weights: tuple[float, ...] | None = None
    """What an error in each class counts in the loss; all count the same by default."""
    kind = "classes"
    metrics = ("accuracy", "macro_f1", "balanced_accuracy")

    def __post_init__(self) -> None:
        if self.class_weights is not None:  # a list if it was read from a file
            object.__setattr__(self, "class_weights", tuple(self.class_weights))

    @property
    def num_outputs(self) -> int:
        """One for each class."""
        return self.num_classes

    def loss(self, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Cross-entropy, the weighted mean over the queries."""
        out = wide(out)
        weights = None if self.class_weights is None else on_device(self.class_weights, out.device).to(out.dtype)
        target = target if real is None else torch.where(real, target, _IGNORED)
        return cross_entropy(out, target, weights, ignore_index=_IGNORED)

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """See :func:`class_metrics`."""
        return class_metrics(out.argmax(-1), target, self.num_classes, self.majority)

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The most probable class, and the probability of each."""
        probability = out.float().softmax(-1)
        return {"class": out.argmax(-1)} | {
            f"probability_{i}": column for i, column in enumerate(probability.unbind(1))
        }


@dataclass(frozen=True)
class Binary(Objective):
    """Two classes: logistic loss, area under the ROC curve, average precision, accuracy."""

    metric: str = "roc_auc"
    majority: int | None = None
    """As for :class:`Classes`."""
    class_weights: tuple[float, ...] | None = None
    """As for :class:`Classes`."""
    kind = "binary"
    metrics = ("roc_auc", "average_precision", "accuracy", "macro_f1", "balanced_accuracy")

    def __post_init__(self) -> None:
        if self.class_weights is not None:  # a list if it was read from a file
            object.__setattr__(self, "class_weights", tuple(self.class_weights))

    def loss(self, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Binary cross-entropy, the weighted mean over the queries."""
        logit = wide(out.squeeze(-1))
        target = target.to(logit.dtype)
        if self.class_weights is None and real is None:
            return binary_cross_entropy_with_logits(logit, target)
        no, yes = self.class_weights or (1.0, 1.0)
        weight = torch.where(target > 0, yes, no)
        weight = weight if real is None else weight * real
        return binary_cross_entropy_with_logits(logit, target, weight, reduction="sum") / weight.sum()

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """See :func:`curve_metrics` and :func:`class_metrics`."""
        answer = (out.squeeze(-1) > 0).long()
        return self.curve_metrics(out, target) | class_metrics(answer, target.long(), 2, self.majority)

    def curve_metrics(self, out: Tensor, target: Tensor) -> dict[str, float]:
        """ROC AUC and average precision are NaN if only one of the classes occurs: then there is no curve."""
        from torchmetrics.functional.classification import binary_auroc, binary_average_precision

        logit, target = out.squeeze(-1).float(), target.long()
        # Curves depend on the order alone, which a sigmoid in float32 would lose for large logits.
        order = torch.unique(logit, return_inverse=True)[1].double()
        score = order / max(order.numel(), 1)
        both = 0 < int(target.sum()) < target.numel()
        undefined = torch.tensor(float("nan"))
        area = binary_auroc(score, target, validate_args=False) if both else undefined
        precision = binary_average_precision(score, target, validate_args=False) if both else undefined
        return {"roc_auc": area.item(), "average_precision": precision.item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The more probable class, and the probability of class 1."""
        probability = out.squeeze(-1).float().sigmoid()
        return {"class": (probability > 0.5).long(), "probability_1": probability}


@dataclass(frozen=True)
class Quantity(Objective):
    """A number: error of the standardized target as the loss, mean absolute error in its own unit as the metric."""

    mean: float = 0.0
    scale: float = 1.0
    error: ErrorName = "squared"
    kind = "quantity"
    metric = "mae"
    metrics = ("mae",)
    higher_is_better = False

    @staticmethod
    def of(target: Tensor, error: ErrorName = "squared") -> Quantity:
        """Standardized by the training targets `[queries]`."""
        return Quantity(target.double().mean().item(), spread(target), error)

    def loss(self, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """Mean squared or absolute error, in standard deviations of the training targets."""
        out = wide(out.squeeze(-1))
        return error_of(self.error, out, ((target - self.mean) / self.scale).to(out.dtype), real)

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """The mean absolute error."""
        from torchmetrics.functional.regression import mean_absolute_error

        return {"mae": mean_absolute_error(self.read(out)["value"], target.float()).item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The number in its own unit."""
        return {"value": out.squeeze(-1).float() * self.scale + self.mean}


def class_metrics(answer: Tensor, target: Tensor, num_classes: int, majority: int | None) -> dict[str, float]:
    r"""Metrics of predicted classes `[queries]`.

    - `accuracy`: the share of queries with the right class;
    - `macro_f1`: the mean over classes of :math:`F_1 = 2TP / (2TP + FP + FN)`, classes that neither occur nor are
      predicted left out;
    - `balanced_accuracy`: the mean over the classes that occur of the share of their queries with the right class;
    - `majority_accuracy`: the accuracy of always predicting the class `majority`, if it is given.

    Example:
        >>> found = class_metrics(torch.tensor([0, 0, 0, 1]), torch.tensor([0, 0, 1, 1]), 2, majority=0)
        >>> {name: round(value, 3) for name, value in found.items()}
        {'accuracy': 0.75, 'macro_f1': 0.733, 'balanced_accuracy': 0.75, 'majority_accuracy': 0.5}
    """
    from torchmetrics.functional.classification import multiclass_accuracy, multiclass_f1_score, multiclass_recall

    if target.numel() == 0:
        return dict.fromkeys(("accuracy", "macro_f1", "balanced_accuracy"), float("nan"))
    accuracy = multiclass_accuracy(answer, target, num_classes, average="micro", validate_args=False)
    f1 = multiclass_f1_score(answer, target, num_classes, average="macro", validate_args=False)
    recall = multiclass_recall(answer, target, num_classes, average=None, validate_args=False)  # [num_classes]
    balanced = recall[torch.bincount(target, minlength=num_classes) > 0].mean()
    found = {"accuracy": accuracy.item(), "macro_f1": f1.item(), "balanced_accuracy": balanced.item()}
    if majority is not None:
        found["majority_accuracy"] = (target == majority).float().mean().item()
    return found


def wide(out: Tensor) -> Tensor:
    """Outputs in the precision of a loss: their own, or float32 if they have fewer digits."""
    return out.to(torch.promote_types(out.dtype, torch.float32))


def error_of(error: ErrorName, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
    """The mean of the squared or absolute differences, over the queries that are `real`."""
    if real is None:
        return mse_loss(out, target) if error == "squared" else l1_loss(out, target)
    each = (mse_loss if error == "squared" else l1_loss)(out, target, reduction="none")  # [queries, ...]
    return torch.where(real.view(-1, *[1] * (out.dim() - 1)), each, 0).sum() / (real.sum() * each[0].numel())


@cache  # a step that is captured as a CUDA graph must not copy to the device
def on_device(values: tuple[float, ...], device: torch.device) -> Tensor:
    """Values, one for each class or name, on a device."""
    return torch.tensor(values, dtype=torch.float, device=device)


def spread(target: Tensor) -> float:
    """The standard deviation of quantities `[queries]`; 1 if they are all the same."""
    scale = target.double().std().item() if target.numel() > 1 else 0.0
    # A standard deviation below the range of float32 counts as 0.
    return scale if scale > torch.finfo(torch.float32).tiny else 1.0
