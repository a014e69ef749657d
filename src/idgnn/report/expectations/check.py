"""One expectation, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from idgnn.experiments.spec import Protocol

Verdict = Literal["holds", "does not hold", "not run"]
SIGN: dict[Verdict, str] = {"holds": "✓", "does not hold": "✗", "not run": "not run"}
SIGNS = (
    "✓ holds, ✗ does not hold, not run: there is no result to judge by. So far: some of the runs that the verdict "
    "rests on are still missing. What is compared is what is printed here; differences are taken before rounding."
)
_DIGITS = 3


@dataclass(frozen=True)
class Check:
    """What was found, whether it is as expected, and whether all runs that it rests on are there."""

    found: float | None
    holds: bool
    complete: bool

    @property
    def verdict(self) -> Verdict:
        """In words."""
        if self.found is None:
            return "not run"
        return "holds" if self.holds else "does not hold"

    @property
    def so_far(self) -> bool:
        """Whether runs that are still missing may change the verdict."""
        return self.found is not None and not self.complete

    @property
    def sign(self) -> str:
        """As printed: `✓`, `✗ so far`, `not run`."""
        return SIGN[self.verdict] + (" so far" if self.so_far else "")


def printed(value: float) -> float:
    """As a reader sees it, so that the verdicts can be checked by eye; zero has no sign."""
    return round(value, _DIGITS) + 0.0


def at_least(found: float | None, bound: float, complete: bool) -> Check:
    """Holds from the bound on."""
    return Check(found, found is not None and printed(found) >= printed(bound), complete)


def above(found: float | None, bound: float | None, complete: bool) -> Check:
    """Holds above the bound, which is measured too; what is found is the difference."""
    if found is None or bound is None:
        return Check(None, False, complete)
    return Check(found - bound, printed(found) > printed(bound), complete)


def within(difference: float | None, room: float, complete: bool) -> Check:
    """Holds if a difference, up or down, is no larger than the room that it has."""
    return Check(difference, difference is not None and printed(abs(difference)) <= printed(room), complete)


@dataclass(frozen=True)
class Tally:
    """How many of the expectations of one kind hold."""

    name: str
    protocol: Protocol
    checks: tuple[Check, ...]

    def number(self, verdict: Verdict) -> int:
        """How many came out so."""
        return sum(check.verdict == verdict for check in self.checks)

    def so_far(self, verdict: Verdict) -> int:
        """How many of these may still change."""
        return sum(check.verdict == verdict and check.so_far for check in self.checks)
