"""What is known after an epoch: a line of `metrics.jsonl`. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Epoch:
    """One pass over the training graphs."""

    epoch: int
    loss: float
    lr: float
    batch_size: int
    steps: int
    seconds: float
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    """Of every held-out part; empty if there was no look at them."""

    as_dict = asdict
