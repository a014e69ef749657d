"""How far apart two means of a few runs may lie when nothing but chance parts them."""

from __future__ import annotations

from math import sqrt

PUBLISHED_RUNS = 3
RULE = (
    "Within noise: a t-test at 95 % does not tell the two means of three runs apart (Student's, both with the same "
    "spread). So even of networks that are equal, one in 20 is outside. The published deviations are those of a "
    "population (n), which the test takes into account."
)
# Two-sided 95 % quantiles of Student's distribution by degrees of freedom.
_QUANTILES = {2: 4.303, 3: 3.182, 4: 2.776}


def room_for_noise(std: float | None, runs: int, published_std: float | None) -> float:
    """The largest difference of the means that chance explains: ours of some runs, the published one of three.

    With fewer of our runs the room is larger: with one of them the published spread alone is known. That published
    deviations divide by n shows in BZR and PROTEINS, whose scores are multiples of 1/81 and 1/220: three such scores
    have the printed mean and deviation for all 24 numbers if it does, and for none if it divides by n - 1.

    >>> round(room_for_noise(0.01, 3, 0.01), 4)
    0.0253
    >>> round(room_for_noise(None, 1, 0.01), 4)
    0.0609
    """
    squares = (runs - 1) * (std or 0.0) ** 2 + PUBLISHED_RUNS * (published_std or 0.0) ** 2
    freedom = runs + PUBLISHED_RUNS - 2
    quantile = _QUANTILES[min(freedom, max(_QUANTILES))]
    return quantile * sqrt(squares / freedom * (1 / runs + 1 / PUBLISHED_RUNS))
