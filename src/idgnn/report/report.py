"""A report: the tables with their numbers, the expectations and the summary, which every format shows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

from idgnn.choices import Protocol
from idgnn.experiments.grid import NOT_COMPARABLE, PROTOCOLS
from idgnn.experiments.protocols import PROTOCOL_PHRASES
from idgnn.report.blocks import Block
from idgnn.report.cells import Status
from idgnn.report.expectations import expectations, headline, total
from idgnn.report.results import SOURCES, ResultTable, Source
from idgnn.report.summary import RunSummary, run_summary

JUDGED: tuple[Status, ...] = ("better", "within", "worse")


@dataclass(frozen=True)
class Report:
    """The content of all formats."""

    tables: tuple[ResultTable, ...]

    @property
    def title(self) -> str:
        """Says so if the runs are small ones."""
        quick = any(table.quick for table in self.tables)
        return "The tables of the paper" + f" ({NOT_COMPARABLE})" * quick

    @cached_property
    def sources(self) -> list[Source]:
        """Those that some table has."""
        found = {source for table in self.tables for source, _, _ in table.cells}
        return [source for source in SOURCES if source in found]

    @property
    def protocols(self) -> list[Protocol]:
        """Those that some table has."""
        return [protocol for protocol in PROTOCOLS if protocol in self.sources]

    def lead(self, emphasis: str) -> str:
        """What the numbers are; `emphasis` is how a word is emphasized, such as `*{}*`."""
        phrases = [PROTOCOL_PHRASES[each].format(emphasis.format(each)) for each in self.protocols]
        phrases[:0] = ["as it was " + emphasis.format("published")] if "published" in self.sources else []
        start, end = phrases[:-1], phrases[-1:]
        return f"Each number {', '.join([*start, ''.join([*['and '] * bool(start), *end])])}."

    @cached_property
    def summary(self) -> RunSummary:
        """Of the runs."""
        return run_summary(self.tables)

    @cached_property
    def expectations(self) -> list[Block]:
        """How many hold, and then each kind."""
        return expectations(self.tables)

    @property
    def headline(self) -> list[str]:
        """How many expectations hold, a sentence for each protocol."""
        return headline(self.expectations)

    def cards(self) -> list[tuple[str, str, str]]:
        """The figures at the top: title, number and what it is of."""
        known = self.summary
        failed = f", {known.failed} failed" if known.failed else ""
        (kind, hours), *others = known.hours_by_kind()
        rest = "".join(f"and {each:,.1f} {other} hours" for other, each in others)
        found = [
            ("runs", f"{known.finished:,}", f"of {known.total:,}{failed}"),
            (f"{kind} hours", f"{hours:,.1f}", rest),
        ]
        for protocol in self.protocols:
            tally = total(self.expectations, protocol)
            not_run = tally.number("not run")
            rest = f"of {len(tally.checks)}" + (f", {not_run} not run" if not_run else "")
            found += [(f"expectations that hold, {protocol}", f"{tally.number('holds')}", rest)] * bool(tally.checks)
        return found

    def shares(self) -> list[tuple[str, Protocol, list[tuple[Status, int]]]]:
        """For each family and protocol, how many cells are better or worse than the published number."""
        families = dict.fromkeys(
            row.family for table in self.tables for row in table.table.rows if row.family and not row.best_of
        )
        found = []
        for family in families:
            for protocol in self.protocols:
                counted = Counter[Status](
                    cell.status
                    for table in self.tables
                    for column in table.table.columns
                    for cell in table.column(protocol, column, (family,))
                )
                shares = [(status, counted[status]) for status in JUDGED if counted[status]]
                found += [(family, protocol, shares)] * bool(shares)
        return found
