"""Objectives: the loss that a network is trained with, the metrics, and its outputs in readable form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, l1_loss, mse_loss

from idgnn.choices import ErrorName


class Objective(ABC):
    """Everything that depends only on the kind of the target. Objectives are frozen dataclasses."""

    kind: ClassVar[str]
    """Its name in files."""
    metric: ClassVar[str]
    """The metric that the best epoch is chosen by."""
    higher_is_better: ClassVar[bool] = True

    @property
    def num_outputs(self) -> int:
        """The number of outputs of the network for each query."""
        return 1

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file; :func:`idgnn.tasks.problem.objective_from_dict` reads them."""
        return {"kind": self.kind, **vars(self)}

    @abstractmethod
    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """From outputs `[queries, num_outputs]` and targets `[queries]`, the mean over the queries."""

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
    kind = "classes"
    metric = "accuracy"

    @property
    def num_outputs(self) -> int:
        """One for each class."""
        return self.num_classes

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy."""
        return cross_entropy(out.float(), target)

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """Accuracy: the share of all queries that are classified correctly."""
        from torchmetrics.functional.classification import multiclass_accuracy

        value = multiclass_accuracy(out, target, self.num_classes, average="micro", validate_args=False)
        return {"accuracy": value.item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The most probable class, and the probability of each."""
        probability = out.float().softmax(-1)
        return {"class": out.argmax(-1)} | {
            f"probability_{i}": column for i, column in enumerate(probability.unbind(1))
        }


@dataclass(frozen=True)
class Binary(Objective):
    """Two classes: logistic loss, area under the ROC curve, accuracy, average precision."""

    kind = "binary"
    metric = "roc_auc"

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Binary cross-entropy."""
        return binary_cross_entropy_with_logits(out.squeeze(-1).float(), target.float())

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """ROC AUC and average precision are NaN if only one of the classes occurs: then there is no curve."""
        from torchmetrics.functional.classification import binary_accuracy, binary_auroc, binary_average_precision

        logit, target = out.squeeze(-1).float(), target.long()
        # Curves depend on the order alone, which a sigmoid in float32 would lose for large logits.
        order = torch.unique(logit, return_inverse=True)[1].double()
        score = order / max(order.numel(), 1)
        both = 0 < int(target.sum()) < target.numel()
        undefined = torch.tensor(float("nan"))
        area = binary_auroc(score, target, validate_args=False) if both else undefined
        precision = binary_average_precision(score, target, validate_args=False) if both else undefined
        accuracy = binary_accuracy((logit > 0).long(), target, validate_args=False)
        return {"roc_auc": area.item(), "average_precision": precision.item(), "accuracy": accuracy.item()}

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
    higher_is_better = False

    @staticmethod
    def of(target: Tensor, error: ErrorName = "squared") -> Quantity:
        """Standardized by the training targets `[queries]`."""
        return Quantity(target.double().mean().item(), spread(target), error)

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Mean squared or absolute error, in standard deviations of the training targets."""
        return error_of(self.error, out.squeeze(-1).float(), ((target - self.mean) / self.scale).float())

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """The mean absolute error."""
        from torchmetrics.functional.regression import mean_absolute_error

        return {"mae": mean_absolute_error(self.read(out)["value"], target.float()).item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The number in its own unit."""
        return {"value": out.squeeze(-1).float() * self.scale + self.mean}


def error_of(error: ErrorName, out: Tensor, target: Tensor) -> Tensor:
    """The mean of the squared or absolute differences."""
    return mse_loss(out, target) if error == "squared" else l1_loss(out, target)


def spread(target: Tensor) -> float:
    """The standard deviation of quantities `[queries]`; 1 if they are all the same."""
    scale = target.double().std().item() if target.numel() > 1 else 0.0
    # A standard deviation below the range of float32 counts as 0.
    return scale if scale > torch.finfo(torch.float32).tiny else 1.0
