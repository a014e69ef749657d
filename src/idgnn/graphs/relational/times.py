"""Times as whole seconds since 1970, UTC: text to seconds and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = 86_400
YEAR = 365.25 * DAY


def seconds(text: str) -> int | None:
    """Seconds since 1970 of a date or a time in ISO format, UTC if it has no zone; `None` if it is neither.

    Example:
        >>> seconds("1970-01-02"), seconds("1970-01-01 00:01:00"), seconds("soon")
        (86400, 60, None)
    """
    if len(text) < 8:  # Python reads shorter digits as years and weeks
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(seconds=1)


def all_seconds(cells: Sequence[str]) -> np.ndarray:
    """The same for a column `[rows]` float64, NaN where a cell is no time; each distinct cell is parsed once."""
    found = {cell: seconds(cell) for cell in set(cells)}
    return np.array([np.nan if found[cell] is None else found[cell] for cell in cells], dtype=np.float64)


def as_text(moment: float) -> str:
    """A time in ISO format, as a date if it is midnight.

    Example:
        >>> as_text(86400)
        '1970-01-02'
    """
    written = (_EPOCH + timedelta(seconds=float(moment))).isoformat(sep=" ").removesuffix("+00:00")
    return written.removesuffix(" 00:00:00")


def year_of(moment: float) -> int:
    """The year of a time in seconds since 1970."""
    return (_EPOCH + timedelta(seconds=float(moment))).year
