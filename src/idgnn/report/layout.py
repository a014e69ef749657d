"""The rows, columns and runs of a table, from its definition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from idgnn.choices import Protocol, TableName, TaskName
from idgnn.experiments import grid
from idgnn.experiments.paper_table import EVERY, Model, PaperTable
from idgnn.experiments.published import BEST, QUOTED
from idgnn.experiments.spec import Spec
from idgnn.experiments.trained_tables import PGNN

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
IN_PAPER = ("GNN", "ID-GNN-Fast", "ID-GNN-Full")
"""The families of the paper; the others are shown, but not compared with the paper."""
BEYOND = " (beyond the paper)"
"""Suffix of the names of the other families."""
BEST_OF = "Best of four"
"""The family of the rows that hold the best of a family."""

_TASKS: dict[TaskName, str] = {
    "node-clustering": "Node: clustering coefficient",
    "shortest-path": "Pair: shortest path distance",
    "graph-clustering": "Graph: clustering coefficient",
    "node-classification": "Node: real-world labels",
    "link-prediction": "Pair: link prediction",
    "graph-classification": "Graph: real-world labels",
}
_BEYOND = {
    "ID-GNN-Fast, pairs": "it also reads the counts of walks between the two nodes",
    "ID-GNN-Full, both directions": "a link has no direction, so both are read and averaged",
}
_PARTS = {"sum": "summed counts", "multiset": "counts by node", "network": "ID-GNN-Full", "plain": "plain GNN"}


@dataclass(frozen=True)
class Heading:
    """A column, its task, and what its numbers are."""

    name: str
    title: str
    group: str = ""
    column: str = ""  # of its runs, if that is not its name
    metric: str | None = None  # of a network on the validation part; None: a measurement
    at: Literal["last", "best"] = "last"  # which epoch; best: the one with the best mean over the runs
    part: str = ""  # which part of a measurement, if it has several
    compared: bool = True  # with the published number
    judged: bool = True  # above or below it; for time and memory less is better, and the machine is another one


@dataclass(frozen=True)
class Row:
    """A model or a measurement, and its family."""

    name: str
    title: str
    family: str = ""


@dataclass(frozen=True)
class Layout:
    """A table without its numbers. `specs` holds the runs of a cell by protocol, row and column."""

    name: TableName
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    specs: dict[tuple[Protocol, str, str], tuple[Spec, ...]]
    digits: int = 3
    note: str = ""
    quick: bool = False


def layout(name: TableName, seeds: Sequence[int] = grid.SEEDS, quick: bool = False) -> Layout:
    """The table of that name, with the runs of the paper or the small ones of `--quick`.

    >>> table = layout("table2")
    >>> len(table.headings), len(table.specs["text", "full-gcn", "node-ScaleFree"])
    (10, 3)
    """
    table = grid.TABLES[name]
    cells: dict[tuple[Protocol, str, str], tuple[Spec, ...]] = {}
    for protocol in PROTOCOLS:
        for spec in table.specs(EVERY, protocol, seeds):
            place = (protocol, spec.row, spec.column)
            cells[place] = (*cells.get(place, ()), grid.quick(spec) if quick else spec)
    columns = dict.fromkeys(column for _, _, column in cells)
    headings = _trained_headings(table) if table.columns else _measured_headings(name, columns)
    rows = _rows(table, dict.fromkeys(row for _, row, _ in cells))
    title = table.title + f" ({grid.NOT_COMPARABLE})" * quick
    return Layout(name, title, headings, rows, cells, table.digits, _note(table, rows), quick)


def _measured_headings(name: TableName, columns: Iterable[str]) -> tuple[Heading, ...]:
    if name == "table1":
        sizes = [(column, f"n = {column[1:].replace('-d', ', d = ')}") for column in columns]
        return tuple(
            Heading(f"{column}-{part}", title, size, column, part=part, compared=part == "sum")
            for column, size in sizes
            for part, title in _PARTS.items()
        )
    if name == "memory":
        return tuple(
            Heading(each, each.replace("roots-", "roots: "), part="overhead", judged=False) for each in columns
        )
    eager = tuple(Heading(each, each.replace("-", " + "), column=each, part="ms", judged=False) for each in columns)
    replayed = tuple(
        replace(
            each,
            name=f"{each.name}-replayed_ms",
            title=f"{each.title}, CUDA graphs",
            part="replayed_ms",
            compared=False,
        )
        for each in eager
    )
    return eager + replayed


def _trained_headings(table: PaperTable) -> tuple[Heading, ...]:
    found = tuple(Heading(each.name, each.title, _TASKS[each.task], metric=each.metric) for each in table.columns)
    if table.name != "table6":
        return found
    # PPGN and the works beside it report the second, which is chosen on the held-out folds.
    last = (replace(each, group="At the last epoch", compared=False) for each in found)
    group = "At the epoch with the best mean"
    best = (replace(each, name=f"{each.name}-best", column=each.name, at="best", group=group) for each in found)
    return (*last, *best)


def _note(table: PaperTable, rows: Sequence[Row]) -> str:
    beyond = list(dict.fromkeys(row.family.removesuffix(BEYOND) for row in rows if row.family.endswith(BEYOND)))
    sentences = [table.note] if table.note else []
    if beyond:
        names = " and ".join(f"{family} ({_BEYOND[family]})" for family in beyond)
        sentences.append(f"Beyond the paper, without a published number and not part of any comparison: {names}.")
    return " ".join(sentences)


def _rows(table: PaperTable, rows: Iterable[str]) -> tuple[Row, ...]:
    """Models in the order of the families; the best of each family comes first."""
    if not table.columns:
        return tuple(Row(name, title) for name, title in table.row_titles)
    rows = tuple(rows)
    first = [Row(row, f"Best {family}", BEST_OF) for row, family in BEST.items()]
    models = [Row(model.name, model.conv.upper(), _family(model)) for model in EVERY if model.name in rows]
    known = {row.name for row in models}
    quoted = [row for row in QUOTED if row != PGNN] if table.name == "table6" else []
    others = [Row(row, QUOTED[row], "Others") for row in (*rows, *quoted) if row not in known]
    return tuple([*(first if table.name in ("table5", "table6") else ()), *others, *models])


def _family(model: Model) -> str:
    return model.family if model.family in IN_PAPER else model.family + BEYOND
