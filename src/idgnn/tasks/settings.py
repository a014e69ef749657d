"""Which task, and how it is made from graphs; read by the command line, so it imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.choices import Level, TaskName, check_choices, check_counts, check_numbers

LEVEL: dict[TaskName, Level] = {
    "node-classification": "node",
    "node-regression": "node",
    "node-clustering": "node",
    "link-prediction": "pair",
    "shortest-path": "pair",
    "pair-classification": "pair",
    "graph-classification": "graph",
    "graph-regression": "graph",
    "graph-clustering": "graph",
}


@dataclass(frozen=True, kw_only=True)
class TaskOptions:
    """How a task is made from graphs: what is held out, and which labels are made from the graphs themselves."""

    split: Literal["random", "provided", "folds"] = "random"
    """At random by graph (by node or edge if there is one graph alone), as the dataset comes with, or k folds."""
    valid: float = 0.2
    """Share of the graphs (nodes, edges) that is held out for validation."""
    test: float = 0.0
    """Share that is held out for a test besides."""
    folds: int = 10
    """With split=folds: how many, the classes in equal shares."""
    fold: int = 0
    """With split=folds: the one that is held out."""
    bins: int = 10
    """Quantile bins of clustering coefficients; bins with equal edges become one."""
    pairs: int = 1000
    """Pairs of nodes drawn from each graph for shortest paths."""
    cutoff: int = 4
    """Distances of this length and above are one class."""
    supervision: float = 0.2
    """Share of the edges of a graph that link prediction asks for; the others carry messages."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_numbers(self, ("valid", "test", "supervision"))
        check_counts(self, ("fold",), least=0)
        check_counts(self, ("folds",), least=2)
        check_counts(self, ("bins", "pairs", "cutoff"))
        if not (self.valid > 0 and self.test >= 0 and self.valid + self.test < 1):
            raise ValueError(
                f"valid is {self.valid} and test is {self.test}, expected shares above 0 (test: 0 or above) that leave "
                "something to train on, for example valid=0.2, test=0."
            )
        if not 0 < self.supervision < 1:
            raise ValueError(f"supervision is {self.supervision}, expected a share between 0 and 1, for example 0.2.")
        if self.fold >= self.folds:
            raise ValueError(f"fold is {self.fold} of {self.folds}, expected a number from 0 to {self.folds - 1}.")
        if self.split == "folds" and self.test:
            raise ValueError("folds have a part for training and one for validation; test is for a random split.")


@dataclass(frozen=True)
class TaskSettings(TaskOptions):
    """A task by name, with its options."""

    name: TaskName

    @property
    def level(self) -> Level:
        """What is asked about."""
        return LEVEL[self.name]

    @property
    def ends(self) -> tuple[str, str]:
        """What tables call the nodes of a pair: the one that is read, and the one that is colored.

        Distances are counted along the messages, from the colored node: that is where a path begins.
        """
        return ("target", "source") if self.name == "shortest-path" else ("source", "target")
