"""What is kept of a finished run. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Record:
    """The result of one job, or the error that it ended with.

    For training, `result` holds `"valid"` (and `"test"`): the metrics at the last epoch; `"best"`: the epoch with the
    best validation score and its metrics; `"curve"`: `[epoch, loss, score on valid]` of every look at the validation
    part; `"metric"`, `"num_parameters"`, `"width"`. For measurements, what the measurement says.
    """

    key: str
    job: dict[str, Any]
    result: dict[str, Any] | None
    error: str | None = None
    seconds: float = 0.0
    machine: str = ""
    date: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    as_dict = asdict
