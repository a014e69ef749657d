"""What a network is trained for, and how its answers are read and measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss

from idgnn.tasks.ranking import ranks

HITS = (1, 10, 50)


class Objective(Protocol):
    """Everything that depends on the kind of the target and on nothing else."""

    @property
    def num_outputs(self) -> int:
        """The numbers that the network gives for each query."""
        ...

    @property
    def metric(self) -> str:
        """The metric that counts."""
        ...

    @property
    def higher_is_better(self) -> bool:
        """Whether it is a score, or an error."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """As plain values, for a JSON file; :func:`from_dict` is the way back."""
        ...

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """From outputs `[queries, num_outputs]` and targets `[queries]`, the mean over the queries."""
        ...

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """All metrics. `graph` `[queries]` is the graph that each query belongs to."""
        ...

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The outputs as columns for people: classes, probabilities, quantities."""
        ...


@dataclass(frozen=True)
class Classes:
    """One of several classes: cross-entropy, accuracy."""

    num_classes: int
    metric = "accuracy"
    higher_is_better = True

    @property
    def num_outputs(self) -> int:
        """One for each class."""
        return self.num_classes

    def as_dict(self) -> dict[str, Any]:
        """Its kind and the number of classes."""
        return {"kind": "classes", "num_classes": self.num_classes}

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy."""
        return cross_entropy(out.float(), target)

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """Accuracy: the share of all queries that are classified right."""
        from torchmetrics.functional.classification import multiclass_accuracy

        value = multiclass_accuracy(out, target, self.num_classes, average="micro", validate_args=False)
        return {"accuracy": value.item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The likeliest class, and the probability of each."""
        probability = out.float().softmax(-1)
        return {"class": out.argmax(-1)} | {
            f"probability_{i}": column for i, column in enumerate(probability.unbind(1))
        }


@dataclass(frozen=True)
class Binary:
    """Yes or no: logistic loss, area under the ROC curve, accuracy, average precision."""

    metric = "roc_auc"
    higher_is_better = True
    num_outputs = 1

    def as_dict(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "binary"}

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Binary cross-entropy."""
        return binary_cross_entropy_with_logits(out.squeeze(-1).float(), target.float())

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """NaN where only one of the two classes is there: then no curve exists."""
        from torchmetrics.functional.classification import binary_accuracy, binary_auroc, binary_average_precision

        logit, target = out.squeeze(-1).float(), target.long()
        # Curves depend on the order alone, which a sigmoid in float32 would lose for confident answers.
        order = torch.unique(logit, return_inverse=True)[1].double()
        score = order / max(order.numel(), 1)
        both = 0 < int(target.sum()) < target.numel()
        nothing = torch.tensor(float("nan"))
        area = binary_auroc(score, target, validate_args=False) if both else nothing
        precision = binary_average_precision(score, target, validate_args=False) if both else nothing
        accuracy = binary_accuracy((logit > 0).long(), target, validate_args=False)
        return {"roc_auc": area.item(), "average_precision": precision.item(), "accuracy": accuracy.item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The likelier class, and the probability of class 1."""
        probability = out.squeeze(-1).float().sigmoid()
        return {"class": (probability > 0.5).long(), "probability_1": probability}


@dataclass(frozen=True)
class Links(Binary):
    """Whether two nodes are joined: as :class:`Binary`, and how high an edge ranks among the non-edges of its graph."""

    def as_dict(self) -> dict[str, Any]:
        """Its kind."""
        return {"kind": "links"}

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """The mean reciprocal rank, and the share of edges among the first 1, 10 and 50, besides."""
        rank = ranks(out.squeeze(-1).float(), target, graph)
        found = super().measure(out, target, graph) | {"mrr": rank.reciprocal().mean().item()}
        return found | {f"hits@{k}": (rank <= k).float().mean().item() for k in HITS}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The probability of an edge."""
        return {"probability": out.squeeze(-1).float().sigmoid()}


@dataclass(frozen=True)
class Quantity:
    """A number: squared error of the standardized target, mean absolute error in its own unit."""

    mean: float = 0.0
    scale: float = 1.0
    metric = "mae"
    higher_is_better = False
    num_outputs = 1

    @staticmethod
    def of(target: Tensor) -> Quantity:
        """Standardized by the targets that are trained on."""
        target = target.double()
        scale = target.std().item() if target.numel() > 1 else 0.0
        # A spread that float32 cannot hold is none.
        return Quantity(target.mean().item(), scale if scale > torch.finfo(torch.float32).tiny else 1.0)

    def as_dict(self) -> dict[str, Any]:
        """Its kind and the scale."""
        return {"kind": "quantity", "mean": self.mean, "scale": self.scale}

    def loss(self, out: Tensor, target: Tensor) -> Tensor:
        """Mean squared error, in standard deviations of the training targets."""
        return mse_loss(out.squeeze(-1).float(), ((target - self.mean) / self.scale).float())

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """The mean absolute error."""
        from torchmetrics.functional.regression import mean_absolute_error

        return {"mae": mean_absolute_error(self.read(out)["value"], target.float()).item()}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The number in its own unit."""
        return {"value": out.squeeze(-1).float() * self.scale + self.mean}


def from_dict(values: dict[str, Any]) -> Objective:
    """The objective that :meth:`Objective.as_dict` described."""
    kinds = {"classes": Classes, "binary": Binary, "links": Links, "quantity": Quantity}
    return kinds[values["kind"]](**{name: value for name, value in values.items() if name != "kind"})
