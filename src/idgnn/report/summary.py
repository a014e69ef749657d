"""The summary of a report: number of runs, machines, versions and dates, and the best network of each kind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from idgnn.experiments.spec import RunRecord
from idgnn.experiments.table import Column
from idgnn.report.blocks import Block, Head, Line, Shown, heads
from idgnn.report.cells import Cell
from idgnn.report.gains import comparison_of
from idgnn.report.results import SOURCES, ResultTable


@dataclass(frozen=True)
class Machine:
    """A processor or a GPU, the number of its runs, and the hours that it was in use."""

    name: str
    side_by_side: int
    gpu: bool
    runs: int
    hours: float


@dataclass(frozen=True)
class RunSummary:
    """The runs of some tables. A run that several cells share counts once."""

    total: int
    finished: int
    failed: int
    machines: tuple[Machine, ...]
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    first: str
    last: str

    def hours(self, gpu: bool) -> float:
        """Of all GPUs, or of all CPUs; a run that shared its device counts with its share."""
        return sum(machine.hours for machine in self.machines if machine.gpu == gpu)

    def hours_by_kind(self) -> list[tuple[str, float]]:
        """Those of GPUs, if there are any, and then of CPUs."""
        on_gpu = any(machine.gpu for machine in self.machines)
        return [("GPU", self.hours(gpu=True))] * on_gpu + [("CPU", self.hours(gpu=False))]

    def sentences(self) -> list[str]:
        """The summary in words."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        found = [f"{self.finished:,} of {self.total:,} runs finished{failed}."]
        if self.machines:
            took = " and ".join(f"{hours:,.1f} {kind} hours" for kind, hours in self.hours_by_kind())
            found.append(f"They took {took}; a run that shared its machine counts with its share.")
            found.append("Machines: " + "; ".join(map(_machine, self.machines)) + ".")
        if self.versions:
            found.append("Versions: " + ", ".join(f"{name} {' or '.join(each)}" for name, each in self.versions) + ".")
        if self.last:
            when = {self.first[:10]: "", self.last[:10]: ""}
            found.append(f"Run between {' and '.join(when)}." if len(when) > 1 else f"Run on {self.last[:10]}.")
        return found


def run_summary(tables: Iterable[ResultTable]) -> RunSummary:
    """The summary of the records of some tables."""
    runs = {run.spec.key: run.record for table in tables for cell in table.ours() for run in cell.runs}
    records: list[RunRecord] = [record for record in runs.values() if record is not None]
    finished = [record for record in records if record.error is None]
    names = sorted({name for record in records for name in record.versions})
    dates = sorted(record.date for record in records if record.date)
    return RunSummary(
        total=len(runs),
        finished=len(finished),
        failed=len(records) - len(finished),
        machines=_machines(records),
        versions=tuple(
            (name, tuple(sorted({r.versions[name] for r in records if name in r.versions}))) for name in names
        ),
        first=dates[0] if dates else "",
        last=dates[-1] if dates else "",
    )


def runs_by_table(tables: Sequence[ResultTable]) -> Block:
    """The number of finished runs of every table, for every protocol."""
    found = {protocol for table in tables for protocol in table.protocols}
    protocols = [source for source in SOURCES if source in found]
    lines = []
    for table in tables:
        cells = []
        for protocol in protocols:
            records = {
                run.spec.key: run.record for cell in table.ours() for run in cell.runs if run.spec.protocol == protocol
            }
            finished = sum(record is not None and record.error is None for record in records.values())
            cells.append(Shown(f"{finished:,} of {len(records):,}" if records else ""))
        lines.append(Line(table.title, tuple(cells)))
    caption = (
        "Tables may share runs; a shared run is run once. Counted are the seeds of the paper, and of others the runs "
        "that there are: a number with (9 seeds) behind it is a mean over as many."
    )
    return Block("runs", "Runs", caption, "table", heads(*protocols), tuple(lines))


def _machines(records: Sequence[RunRecord]) -> tuple[Machine, ...]:
    found: dict[tuple[str, int], list[RunRecord]] = {}
    for record in records:
        found.setdefault(_where(record), []).append(record)
    gpus = {_where(record)[0] for record in records if record.on_gpu}
    return tuple(
        Machine(name, side, name in gpus, len(some), sum(sorted(each.seconds for each in some)) / side / 3600)
        for (name, side), some in sorted(found.items())
    )


def _where(record: RunRecord) -> tuple[str, int]:
    """The processor or GPU, and how many runs shared it: `NVIDIA H200, 12 runs side by side`."""
    found = re.fullmatch(r"(.*), (\d+) runs? side by side", record.machine)
    return (found[1], int(found[2])) if found else (record.machine or "unknown machine", 1)


def _machine(machine: Machine) -> str:
    beside = f", {machine.side_by_side} side by side" if machine.side_by_side > 1 else ""
    return f"{machine.name} ({machine.runs:,} run{'s' * (machine.runs != 1)}{beside}, {machine.hours:,.1f} hours)"


_KINDS = ("GNN", "ID-GNN", "beyond the paper")
_BEST_CAPTION = (
    "The best of the four GNNs, of the eight ID-GNNs of the paper, and of the models beyond it: means over the seeds "
    "that finished."
)


def best_networks(tables: Sequence[ResultTable]) -> Block | None:
    """The tables that compare families at a glance: a row for each column; None without such tables."""
    found, notes = list[tuple[Column, dict[Head, Cell | None]]](), dict[str, None]()
    for table in tables:
        if (comparison := comparison_of(table)) is None:
            continue
        beyond = tuple(row.family for row in table.table.rows if row.beyond)
        kinds = dict(zip(_KINDS, ((comparison.over,), comparison.of, beyond), strict=True))
        notes[comparison.note] = None
        for column in table.table.columns:
            best = {
                Head(kind, source): table.best(source, column, families)
                for source in SOURCES
                for kind, families in kinds.items()
                if table.column(source, column, families)
            }
            found.append((column, best))
    every = [Head(kind, source) for source in SOURCES for kind in _KINDS]
    shown = tuple(head for head in every if any(head in best for _, best in found))
    lines = tuple(
        Line(column.title, tuple(_mean(best.get(head)) for head in shown), column.group) for column, best in found
    )
    caption = " ".join((_BEST_CAPTION, *notes))
    return Block("best", "The best of each kind", caption, "column", shown, lines) if lines else None


def _mean(cell: Cell | None) -> Shown:
    return Shown("" if cell is None or cell.mean is None else f"{cell.mean:.{cell.digits}f}")
