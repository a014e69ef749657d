"""What is said when counts leave the whole numbers that float64 holds exactly."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

_EXACT = 2**53


def check_finite(counts: Tensor, advice: str) -> None:
    """Refuses counts, `[rows, length]`, that are beyond float64 altogether."""
    if not _below(counts, float("inf")):
        finite = torch.isfinite(counts).all(0)
        reached = int(finite.long().cumprod(0).sum())
        raise ValueError(
            f"counts of length {counts.size(1)} pass 1.8e308, the largest number of float64, at length {reached + 1}: "
            f"expected a length of at most {reached}. Ask for shorter walks; {advice}."
        )


def check_exact(counts: Tensor, name: str, advice: str) -> None:
    """Warns where counts, `[rows, length]`, may be rounded.

    Sums of whole numbers that never pass 2^53 are exact in float64, and a sum that passes it does not come back below.
    """
    if _below(counts, _EXACT):
        return
    check_finite(counts, advice)
    rounded = counts >= _EXACT
    exact = int((~rounded.any(0)).long().cumprod(0).sum())
    warnings.warn(
        f"{int(rounded.sum())} of {counts.numel()} {name} reach 2^53 and are rounded to the precision of float64; they "
        f"are exact up to length {exact}. Ask for length={exact} if every digit matters; {advice}.",
        stacklevel=3,
    )


def _below(counts: Tensor, bound: float) -> bool:
    """Whether all counts are below the bound; one that is not a number is not."""
    return counts.numel() == 0 or bool(counts.max() < bound)
