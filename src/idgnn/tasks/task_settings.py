"""Which task, and its options. Read by the command line, so it imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.choices import (
    TASK_LEVEL,
    TASK_METRICS,
    ErrorName,
    FeatureName,
    Level,
    MetricName,
    TaskName,
    check_choices,
    check_counts,
    check_numbers,
)


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """How a task is made from graphs: what is held out, and how labels are computed from the structure."""

    split: Literal["random", "provided", "folds"] = "random"
    """Random by graph (by node or edge if there is a single graph), the split of the dataset, or k folds."""
    valid: float = 0.2
    """Share of the graphs (nodes, edges) that is held out for validation."""
    test: float = 0.0
    """Share that is held out for testing."""
    folds: int = 10
    """With split=folds: number of folds, stratified by class; datasets with published folds use those."""
    fold: int = 0
    """With split=folds: the fold that is held out."""
    inner: float = 0.0
    """To choose settings: share of the training part that is held out in place of the validation part."""
    bins: int = 10
    """Quantile bins of clustering coefficients; bins with equal limits are merged."""
    pairs: int = 1000
    """Pairs of nodes drawn from each graph for shortest paths."""
    cutoff: int = 4
    """Distances of this length and above are one class."""
    supervision: float = 0.2
    """Share of the edges of a graph that link prediction predicts; the others carry messages."""
    error: ErrorName = "squared"
    """Loss of quantities: mean squared or mean absolute error, of standardized labels."""
    patterns: tuple[str, ...] = ()
    """Patterns that are counted, by one network (cycle3 cycle4); by default all."""

    metric: MetricName | None = None
    """The metric that the best epoch is chosen by; unless given that of the task, such as accuracy or roc_auc."""
    class_weights: Literal["none", "balanced"] = "none"
    """Errors in the loss count the same, or each class as much as any other however rare it is."""

    features: FeatureName = "constant"
    """What nodes without features are given: the number 1; their degree; a one-hot code or a learned vector of each
    node, for a single graph; closed-walk counts; auto chooses and says so."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "patterns", tuple(self.patterns))  # a list if it was read from a file
        check_choices(self)
        check_numbers(self, ("valid", "test", "supervision", "inner"))
        check_counts(self, ("fold",), least=0)
        check_counts(self, ("folds",), least=2)
        check_counts(self, ("bins", "pairs", "cutoff"))
        if not (self.valid > 0 and self.test >= 0 and self.valid + self.test < 1):
            raise ValueError(
                f"valid is {self.valid} and test is {self.test}, expected shares above 0 (test: 0 or above) that leave "
                "something to train on, for example valid=0.2, test=0."
            )
        if not 0 <= self.inner < 1:
            raise ValueError(f"inner is {self.inner}, expected a share from 0 to below 1, for example 0.2.")
        if not 0 < self.supervision < 1:
            raise ValueError(f"supervision is {self.supervision}, expected a share between 0 and 1, for example 0.2.")
        if self.fold >= self.folds:
            raise ValueError(f"fold is {self.fold} of {self.folds}, expected a number from 0 to {self.folds - 1}.")
        if self.split == "folds" and self.test:
            raise ValueError("split is 'folds', which has no test part. Leave test at 0, or use split='random'.")


@dataclass(frozen=True)
class TaskSettings(TaskOptions):
    """A task by name, with its options."""

    name: TaskName

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.metric is not None and self.metric not in TASK_METRICS[self.name]:
            raise ValueError(
                f"metric is {self.metric!r}, but {self.name} is measured by {', '.join(TASK_METRICS[self.name])}. Name "
                "one of them."
            )

    @property
    def level(self) -> Level:
        """What a prediction is about."""
        return TASK_LEVEL[self.name]
