"""Where the numbers come from: how many runs, on which machines, with which versions, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from idgnn.experiments.record import Record
from idgnn.report.tables import Table


@dataclass(frozen=True)
class Origin:
    """Of the runs that the tables ask for. A run that stands in several cells counts once."""

    asked: int
    done: int
    failed: int
    hours: float
    machines: tuple[tuple[str, int], ...]
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    first: str
    last: str

    def sentences(self) -> list[str]:
        """For people."""
        failed = f", {self.failed} failed" if self.failed else ""
        said = [f"{self.done} of {self.asked} runs are there{failed}; together they took {self.hours:,.1f} hours."]
        if self.machines:
            said.append("Machines: " + "; ".join(f"{name} ({number:,} runs)" for name, number in self.machines) + ".")
        if self.versions:
            said.append("Versions: " + ", ".join(f"{name} {' or '.join(each)}" for name, each in self.versions) + ".")
        if self.last:
            said.append(f"Run between {self.first[:10]} and {self.last[:10]}.")
        return said


def origin(tables: Iterable[Table]) -> Origin:
    """Adds up the records behind some tables."""
    runs = {run.spec.key: run.record for table in tables for cell in table.ours() for run in cell.runs}
    records: list[Record] = [record for record in runs.values() if record is not None]
    done = [record for record in records if record.error is None]
    names = sorted({name for record in records for name in record.versions})
    dates = sorted(record.date for record in records if record.date)
    return Origin(
        asked=len(runs),
        done=len(done),
        failed=len(records) - len(done),
        hours=sum(sorted(record.seconds for record in records)) / 3600,
        machines=tuple(sorted(Counter(record.machine for record in records if record.machine).items())),
        versions=tuple(
            (name, tuple(sorted({r.versions[name] for r in records if name in r.versions}))) for name in names
        ),
        first=dates[0] if dates else "",
        last=dates[-1] if dates else "",
    )
