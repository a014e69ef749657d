"""Several numbers for each query, predicted by one network."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from idgnn.choices import ErrorName
from idgnn.tasks.objective import Objective, error_of, on_device, wide


@dataclass(frozen=True)
class Quantities(Objective):
    """Numbers by name: the loss is the error of the standardized targets, averaged over the names.

    The metrics are the mean absolute error of each, in units of `unit`, and `"mae"`, their mean.
    """

    names: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    unit: tuple[float, ...]
    error: ErrorName = "squared"
    kind = "quantities"
    metric = "mae"
    metrics = ("mae",)
    higher_is_better = False

    def __post_init__(self) -> None:
        for name in ("names", "mean", "scale", "unit"):  # lists if they were read from a file
            object.__setattr__(self, name, tuple(getattr(self, name)))

    @property
    def num_outputs(self) -> int:
        """One for each name."""
        return len(self.names)

    def loss(self, out: Tensor, target: Tensor, real: Tensor | None = None) -> Tensor:
        """From outputs and targets `[queries, names]`."""
        out, standardized = wide(out), (target - on_device(self.mean, out.device)) / on_device(self.scale, out.device)
        return error_of(self.error, out, standardized.to(out.dtype), real)

    def measure(self, out: Tensor, target: Tensor, graph: Tensor) -> dict[str, float]:
        """The mean absolute errors."""
        error = ((self._values(out) - target).abs().double().mean(0) / on_device(self.unit, out.device)).tolist()
        return {"mae": sum(error) / len(error), **dict(zip(self.names, error, strict=True))}

    def read(self, out: Tensor) -> dict[str, Tensor]:
        """The numbers, each in its own unit."""
        return dict(zip(self.names, self._values(out).unbind(1), strict=True))

    def labels(self, target: Tensor) -> dict[str, Tensor]:
        """The targets by name."""
        return {f"label_{name}": column for name, column in zip(self.names, target.unbind(1), strict=True)}

    def _values(self, out: Tensor) -> Tensor:
        """The outputs `[queries, names]` in the units of the targets."""
        return out.float() * on_device(self.scale, out.device) + on_device(self.mean, out.device)
