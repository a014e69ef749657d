"""Where the numbers come from: how many runs, on which machines, with which versions, and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from idgnn.experiments.record import Record
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.tables import Table


@dataclass(frozen=True)
class Machine:
    """A processor or a GPU, how many runs it was given, and for how many hours it was in use."""

    name: str
    side_by_side: int
    gpu: bool
    runs: int
    hours: float


@dataclass(frozen=True)
class Origin:
    """Of the runs that the tables ask for. A run that stands in several cells counts once."""

    asked: int
    done: int
    failed: int
    machines: tuple[Machine, ...]
    versions: tuple[tuple[str, tuple[str, ...]], ...]
    first: str
    last: str

    def hours(self, gpu: bool) -> float:
        """Of all GPUs, or of all others, with the runs that shared one counted at their share of it."""
        return sum(machine.hours for machine in self.machines if machine.gpu == gpu)

    def sentences(self) -> list[str]:
        """For people."""
        failed = f", {self.failed:,} failed" if self.failed else ""
        said = [f"{self.done:,} of {self.asked:,} runs are there{failed}."]
        if self.machines:
            took = f"They took {self.hours(gpu=True):,.1f} GPU hours and {self.hours(gpu=False):,.1f} CPU hours"
            said.append(f"{took}; of runs that shared a machine each counts at its share.")
            said.append("Machines: " + "; ".join(map(_machine, self.machines)) + ".")
        if self.versions:
            said.append("Versions: " + ", ".join(f"{name} {' or '.join(each)}" for name, each in self.versions) + ".")
        if self.last:
            when = {self.first[:10]: "", self.last[:10]: ""}
            said.append(f"Run between {' and '.join(when)}." if len(when) > 1 else f"Run on {self.last[:10]}.")
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
        machines=_machines(records),
        versions=tuple(
            (name, tuple(sorted({r.versions[name] for r in records if name in r.versions}))) for name in names
        ),
        first=dates[0] if dates else "",
        last=dates[-1] if dates else "",
    )


def runs_by_table(tables: Sequence[Table]) -> Block:
    """How many runs of every table are there, for both protocols."""
    lines = []
    for table in tables:
        cells = []
        for protocol in ("text", "released"):
            asked = {
                run.spec.key: run.record for cell in table.ours() for run in cell.runs if run.spec.protocol == protocol
            }
            done = sum(record is not None and record.error is None for record in asked.values())
            cells.append(Shown(f"{done:,} of {len(asked):,}" if asked else ""))
        lines.append(Line(table.layout.title, tuple(cells)))
    caption = "Tables may share runs; a run that is shared is run once."
    return Block("runs", "Runs", caption, "table", (Head("text"), Head("released")), tuple(lines))


def _machines(records: Sequence[Record]) -> tuple[Machine, ...]:
    found: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        found.setdefault(_where(record), []).append(record)
    gpus = {_where(record)[0] for record in records if _on_gpu(record)}
    return tuple(
        Machine(name, side, name in gpus, len(some), sum(sorted(each.seconds for each in some)) / side / 3600)
        for (name, side), some in sorted(found.items())
    )


def _where(record: Record) -> tuple[str, int]:
    """The processor or GPU, and how many runs shared it: `NVIDIA H200, 12 runs side by side`."""
    found = re.fullmatch(r"(.*), (\d+) runs? side by side", record.machine)
    return (found[1], int(found[2])) if found else (record.machine or "unknown machine", 1)


def _on_gpu(record: Record) -> bool:
    result = record.result or {}
    return "gpu_memory" in result or str(result.get("device", "")).startswith("cuda")


def _machine(machine: Machine) -> str:
    beside = f", {machine.side_by_side} side by side" if machine.side_by_side > 1 else ""
    return f"{machine.name} ({machine.runs:,} run{'s' * (machine.runs != 1)}{beside}, {machine.hours:,.1f} hours)"
