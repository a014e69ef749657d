"""What a table may expect of our results, as data; the report says whether it holds. Imports no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

from idgnn.choices import Protocol


@dataclass(frozen=True)
class Comparison:
    """In every column and under every protocol, the best row of some families gains over the best of another family
    as much as was published, and is as good as was published, each but for one standard deviation."""

    over: str
    of: tuple[str, ...]
    note: str = ""
    """What the numbers of the columns are."""


@dataclass(frozen=True)
class Bound:
    """A score that some rows reach in some columns: at least this, or at most where lower is better."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class _Titled:
    """Tables that expect something of the same name share its part of the report."""

    name: str
    title: str
    caption: str


@dataclass(frozen=True)
class Bounds(_Titled):
    """Scores that rows reach under a protocol; the other `rows` are shown beside them."""

    rows: tuple[str, ...]
    bounds: tuple[Bound, ...]
    protocol: Protocol = "text"


@dataclass(frozen=True)
class BetterThan(_Titled):
    """In every column and under every protocol, a row is better than another one."""

    row: str
    other: str
    tally: str
    """How it is named where expectations are counted."""


@dataclass(frozen=True)
class WithinNoise(_Titled):
    """Some rows are as published under a protocol, but for noise."""

    rows: tuple[str, ...]
    protocol: Protocol
    tally: str


Expectation = Comparison | Bounds | BetterThan | WithinNoise
