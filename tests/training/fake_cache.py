"""Recording without a GPU."""

from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor

from idgnn.training.recorder import Recorder, knows_padding
from idgnn.training.trainer import Trainer


class FakeCache:
    """Stands in for the cache of CUDA graphs: keeps the inputs of each key, and runs the function on them again."""

    def __init__(self) -> None:
        self.kept: dict[Hashable, Any] = {}
        self.calls = 0

    def run(self, key: Hashable, make: Callable[[], Any], function: Callable[[Any], Tensor], kind: Hashable = None):
        self.calls += 1
        if key not in self.kept:
            self.kept[key] = make()
        return function(self.kept[key])

    def clear(self) -> None:
        self.kept.clear()


def recorded(trainer: Trainer) -> Trainer:
    """The same trainer, with steps that run as if they were recorded."""
    trainer.recorder = Recorder(FakeCache(), knows_padding(trainer.model))
    return trainer
