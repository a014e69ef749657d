"""Which cells a table has and which runs fill them, read off its list of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from idgnn.choices import TaskName
from idgnn.experiments import grid, table2, table3, table4, table5, table6, table_memory
from idgnn.experiments.models import EVERY, Model
from idgnn.experiments.published import BEST, QUOTED
from idgnn.experiments.spec import Protocol, Spec

TableName = Literal["table1", "table2", "table3", "table4", "table5", "table6", "memory"]
TABLES: tuple[TableName, ...] = get_args(TableName)
PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
IN_PAPER = ("GNN", "ID-GNN-Fast", "ID-GNN-Full")
"""The families of the paper; what goes beyond them is shown, and is no part of a comparison with the paper."""
BEYOND = " (beyond the paper)"
"""Behind the names of the other families."""
BEST_OF = "Best of four"
"""The family of the rows that stand for the best of a family."""

_TITLES: dict[TableName, str] = {
    "table1": "Table 1: Regular graphs that are told apart",
    "table2": "Table 2: Graph properties",
    "table3": "Table 3: Real-world tasks",
    "table4": "Table 4: Run time",
    "table5": "Table 5: Link prediction beside P-GNN",
    "table6": "Table 6: Graph classification in 10 folds",
    "memory": "Memory (appendix)",
}
_COLUMNS = {"table2": table2.COLUMNS, "table3": table3.COLUMNS, "table5": table5.COLUMNS, "table6": table6.COLUMNS}
_TASKS: dict[TaskName, str] = {
    "node-clustering": "Node: clustering coefficient",
    "shortest-path": "Pair: shortest path distance",
    "graph-clustering": "Graph: clustering coefficient",
    "node-classification": "Node: real-world labels",
    "link-prediction": "Pair: link prediction",
    "graph-classification": "Graph: real-world labels",
}
_NOTES: dict[TableName, str] = {
    "table1": "How many different representations 100 graphs have, as a share: 1 if all are told apart, 0.01 if none "
    "are, as by a plain GNN. The published one is of summed counts; its deviation is that of drawing 100 graphs.",
    "table2": "Of 10 quantile bins of clustering coefficients of nodes, those with equal edges become one. Left are 6 "
    "classes, but 7 on all of PROTEINS and 5 on the 100 graphs of ENZYMES that the released code takes. On its 100 "
    "graphs of PROTEINS 72 % of the pairs are in the last class of shortest paths: the published 0.722 of all "
    "baselines is the share of that class. Of all its graphs 47 % are.",
    "table3": "For graphs of PROTEINS and BZR the text says ROC AUC, but the published figures are accuracies: this is "
    "what is compared, and both are among the runs of a cell. All scores are of held-out parts at the last epoch; that "
    "of ogbg-molhiv is the validation part of the split that it comes with, not the test part.",
    "table4": "Milliseconds for a batch of 128 ENZYMES graphs. The paper's machine is another one: ratios tell more. "
    "The published ID-GNN-Full is computed on ego networks; the last row computes the same on the identity graph.",
    "table6": "Others are quoted from their papers. The published figures compare with those at the epoch with the "
    "best mean over the folds; to choose it, the held-out folds are looked at.",
    "memory": "What ID-GNN-Full on CiteSeer takes beyond a GNN on the shared ego networks of the roots, all nodes "
    "of them in every round: 0.34 is 34 %. Ours leaves out what no round needs.",
}
_BEYOND = {
    "ID-GNN-Fast, pairs": "it also reads the counts of walks between the two nodes",
    "ID-GNN-Full, both directions": "a link has no direction, so both are read and averaged",
}
_PARTS = {"sum": "summed counts", "multiset": "counts by node", "network": "ID-GNN-Full", "plain": "plain GNN"}
_ROWS = {**table4.ROWS, **table_memory.ROWS, **QUOTED}


@dataclass(frozen=True)
class Heading:
    """A column, the task that it stands under, and what its numbers are."""

    name: str
    title: str
    group: str = ""
    column: str = ""  # of its runs, if that is not its name
    metric: str | None = None  # of a network on the validation part; None: a measurement
    at: Literal["last", "best"] = "last"  # which epoch; best: the one with the best mean over the runs
    part: str = ""  # which part of a measurement, if it has several
    compared: bool = True  # with what the paper has
    judged: bool = True  # above or below it; of times and memory less is better, and the machine is another one


@dataclass(frozen=True)
class Row:
    """A model or a measurement, and the family that it stands in."""

    name: str
    title: str
    family: str = ""


@dataclass(frozen=True)
class Layout:
    """A table before it has numbers. `specs` holds the runs of a cell by protocol, row and column."""

    name: TableName
    title: str
    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    specs: dict[tuple[Protocol, str, str], tuple[Spec, ...]]
    digits: int = 3
    note: str = ""
    quick: bool = False


def layout(name: TableName, seeds: Sequence[int] = grid.SEEDS, quick: bool = False) -> Layout:
    """The table of that name, of the runs that the paper describes or of the small ones of `--quick`.

    >>> table = layout("table2")
    >>> len(table.headings), len(table.specs["text", "full-gcn", "node-ScaleFree"])
    (10, 3)
    """
    cells: dict[tuple[Protocol, str, str], tuple[Spec, ...]] = {}
    for protocol in PROTOCOLS:
        for spec in grid.TABLES[name](EVERY, protocol, seeds):
            place = (protocol, spec.row, spec.column)
            cells[place] = (*cells.get(place, ()), grid.quick(spec) if quick else spec)
    rows = _rows(name, dict.fromkeys(row for _, row, _ in cells))
    return Layout(
        name,
        _TITLES[name] + f" ({grid.NOT_COMPARABLE})" * quick,
        _headings(name, dict.fromkeys(column for _, _, column in cells)),
        rows,
        cells,
        digits=1 if name == "table4" else 3,
        note=_note(name, rows),
        quick=quick,
    )


def _headings(name: TableName, columns: Sequence[str] | dict[str, None]) -> tuple[Heading, ...]:
    if name == "table1":
        sizes = [(column, f"n = {column[1:].replace('-d', ', d = ')}") for column in columns]
        return tuple(
            Heading(f"{column}-{part}", title, size, column, part=part, compared=part == "sum")
            for column, size in sizes
            for part, title in _PARTS.items()
        )
    if name == "table4":
        ways = {"ms": "", "replayed_ms": ", CUDA graphs"}
        return tuple(
            Heading(
                column if part == "ms" else f"{column}-{part}",
                column.replace("-", " + ") + way,
                column=column,
                part=part,
                compared=part == "ms",
                judged=False,
            )
            for part, way in ways.items()
            for column in columns
        )
    if name == "memory":
        return tuple(
            Heading(each, each.replace("roots-", "roots: "), part="overhead", judged=False) for each in columns
        )
    found = [Heading(each.name, each.title, _TASKS[each.task], metric=each.metric) for each in _COLUMNS[name]]
    if name == "table6":
        # PPGN and the works beside it report the second, for which they look at the held-out folds.
        last = [replace(each, group="At the last epoch", compared=False) for each in found]
        group = "At the epoch with the best mean"
        found = [
            *last,
            *(replace(each, name=f"{each.name}-best", column=each.name, at="best", group=group) for each in found),
        ]
    return tuple(found)


def _note(name: TableName, rows: Sequence[Row]) -> str:
    beyond = list(dict.fromkeys(row.family.removesuffix(BEYOND) for row in rows if row.family.endswith(BEYOND)))
    said = [_NOTES[name]] if name in _NOTES else []
    if beyond:
        names = " and ".join(f"{family} ({_BEYOND[family]})" for family in beyond)
        said.append(f"Beyond the paper, with no published number and no part in what is compared: {names}.")
    return " ".join(said)


def _rows(name: TableName, rows: Sequence[str] | dict[str, None]) -> tuple[Row, ...]:
    """Models in the order of the families; what stands for the best of a family comes first."""
    if name not in _COLUMNS:
        return tuple(Row(row, _ROWS.get(row, row.replace("-", " "))) for row in rows)
    first = [Row(row, f"Best {family}", BEST_OF) for row, family in BEST.items()]
    models = [Row(model.name, model.conv.upper(), _family(model)) for model in EVERY if model.name in rows]
    known = {row.name for row in models}
    quoted = [row for row in QUOTED if row != table5.PGNN] if name == "table6" else []
    others = [Row(row, _ROWS.get(row, row), "Others") for row in (*rows, *quoted) if row not in known]
    return tuple([*(first if name in ("table5", "table6") else ()), *others, *models])


def _family(model: Model) -> str:
    return model.family if model.family in IN_PAPER else model.family + BEYOND
