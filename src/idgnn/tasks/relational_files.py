"""A problem on relational data from a folder: its tables, and the tables of queries that `tasks.toml` names."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from idgnn.choices import ColumnEncoding, RelationalKind, check_counts
from idgnn.graphs.relational.columns import Codes, find_codes, left_out
from idgnn.graphs.relational.graph import load_tables, to_graph
from idgnn.graphs.relational.schema import TableSchema, read_schema
from idgnn.graphs.relational.tables import KeyedTable, read_tables
from idgnn.graphs.relational.task_tables import TaskColumns, TimedQueries, find_classes, read_queries
from idgnn.graphs.relational.times import seconds
from idgnn.tasks.relational import RelationalProblem

TASKS_FILE = "tasks.toml"
PARTS = ("train", "valid", "test")


@dataclass(frozen=True)
class TaskFile:
    """A section of `tasks.toml`."""

    kind: RelationalKind
    entity: str
    """The column of the task tables with the key of the entity."""
    entity_table: str
    time: str
    target: str
    """The column that is predicted: a number, a class, or a list of keys of items."""
    train: str
    valid: str
    test: str | None = None
    item_table: str | None = None
    upto: Mapping[str, str] | None = None
    """For `valid` and `test`: the time at which the data that their queries see ends."""
    k: int = 10

    def __post_init__(self) -> None:
        check_counts(self, ("k",))
        parts = ("train", "valid", "test")
        if unknown := [part for part in self.upto or {} if part not in parts]:
            raise ValueError(f"upto names {', '.join(map(repr, unknown))}, expected some of {', '.join(parts)}.")

    @property
    def columns(self) -> TaskColumns:
        """Which columns of the task tables hold what."""
        return TaskColumns(self.entity, self.entity_table, self.time, self.target, self.item_table)


@dataclass(frozen=True)
class Relational:
    """A folder that was read: its tables, how columns became features, and the problem."""

    tables: Mapping[str, KeyedTable]
    codes: Codes
    problem: RelationalProblem
    text_columns: Mapping[str, list[str]]
    """The columns of text of each table: they are left out."""


def read_tasks(path: Path) -> dict[str, TaskFile]:
    """The tasks of a TOML file, by name."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}. Write one with a section for each task; see docs/relational.md.")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a file of tasks in TOML: {error}.") from None
    return {name: _task(path, name, value) for name, value in values.items()}


def choose_task(tasks: Mapping[str, TaskFile], kind: str, name: str | None, where: str) -> str:
    """The task of a kind: by its name, or the only one."""
    if name is not None and name not in tasks:
        raise ValueError(f"{where} has no task {name!r}; it has {', '.join(tasks)}.")
    fitting = [each for each, task in tasks.items() if task.kind == kind and name in (None, each)]
    if len(fitting) == 1:
        return fitting[0]
    if name is not None:
        raise ValueError(f"the task {name!r} of {where} is of the kind {tasks[name].kind}, but {kind} was given.")
    there = ", ".join(f"{each} ({task.kind})" for each, task in tasks.items()) or "none"
    raise ValueError(f"{where} has {len(fitting)} tasks of the kind {kind}; name one of: {there}.")


def read_problem(
    folder: Path,
    task: TaskFile,
    *,
    schema: Mapping[str, TableSchema] | None = None,
    columns: ColumnEncoding = "linear",
) -> Relational:
    """Reads the tables of a folder and the queries of a task.

    Means, scales and categories are those of the rows before the first query of `valid`.
    """
    tables = read_tables(folder, schema)
    files = {part: Path(folder) / file for part in PARTS if (file := getattr(task, part)) is not None}
    wanted = task.columns
    if task.kind == "entity-classification":
        wanted = replace(wanted, classes=find_classes(files["train"], task.target))
    found = {part: read_queries(file, wanted, tables) for part, file in files.items()}
    upto = {part: _moment(part, text) for part, text in (task.upto or {}).items()}
    return _relational(tables, found, task.kind, upto, task.k, wanted.classes, columns)


def relbench_problem(task: Any, columns: ColumnEncoding = "linear") -> Relational:
    """A task object of the package relbench: an `EntityTask` or a `RecommendationTask`.

    As RelBench has it, queries of the last two parts see the rows up to the time at which the part begins.
    """
    kinds: dict[str, RelationalKind] = {
        "regression": "entity-regression",
        "binary_classification": "entity-classification",
        "multiclass_classification": "entity-classification",
        "recommendation": "recommendation",
        "link_prediction": "recommendation",  # before relbench 2
    }
    name = str(getattr(task.task_type, "value", task.task_type))
    if name not in kinds:
        raise ValueError(f"the task of relbench is of the type {name}, expected one of {', '.join(kinds)}.")
    tables = load_tables((task if hasattr(task, "get_db") else task.dataset).get_db())
    if kinds[name] == "recommendation":
        wanted = TaskColumns(
            task.src_entity_col, task.src_entity_table, task.time_col, task.dst_entity_col, task.dst_entity_table
        )
    else:
        wanted = TaskColumns(task.entity_col, task.entity_table, task.time_col, task.target_col)
    names = {"train": "train", "valid": "val", "test": "test"}
    tables_of = {part: task.get_table(theirs, mask_input_cols=False) for part, theirs in names.items()}
    if kinds[name] == "entity-classification":
        wanted = replace(wanted, classes=find_classes(tables_of["train"], task.target_col))
    found = {part: read_queries(table, wanted, tables) for part, table in tables_of.items()}
    starts = {"valid": task.dataset.val_timestamp, "test": task.dataset.test_timestamp}
    upto = {part: _moment(part, str(time)) for part, time in starts.items()}
    return _relational(tables, found, kinds[name], upto, getattr(task, "eval_k", 10), wanted.classes, columns)


def _relational(
    tables: dict[str, KeyedTable],
    found: dict[str, TimedQueries],
    kind: RelationalKind,
    upto: dict[str, int],
    k: int,
    classes: tuple[str, ...] | None,
    columns: ColumnEncoding,
) -> Relational:
    codes = find_codes(tables, until=int(found["valid"].time.min()) if len(found["valid"]) else None)
    graph = to_graph(tables, codes, columns)
    problem = RelationalProblem(kind, graph, found, upto, k, codes if columns == "frame" else None, classes)
    return Relational(tables, codes, problem, left_out(codes))


def rel_f1(folder: Path, name: str, columns: ColumnEncoding = "linear") -> Relational:
    """A task of RelBench's rel-f1, from the Ergast tables and RelBench's tables of queries."""
    schema = read_schema(_packaged("rel_f1.toml"))
    return read_problem(folder, rel_f1_tasks()[name], schema=schema, columns=columns)


def rel_f1_tasks() -> dict[str, TaskFile]:
    """RelBench's tasks on rel-f1."""
    return read_tasks(_packaged("rel_f1_tasks.toml"))


def _packaged(name: str) -> Path:
    return Path(str(files("idgnn.graphs.relational").joinpath(name)))


def _task(path: Path, name: str, value: Any) -> TaskFile:
    known = {each.name: each for each in fields(TaskFile)}
    if not isinstance(value, dict):
        raise ValueError(f"{path}: {name!r} is {value!r}, expected a section [{name}] for a task.")
    if strange := sorted(set(value) - set(known)):
        raise ValueError(
            f"{path}: task {name!r} has {', '.join(map(repr, strange))}, expected some of {', '.join(known)}."
        )
    wanted = ("kind", "entity", "entity_table", "time", "target", "train", "valid")
    if absent := [each for each in wanted if each not in value]:
        raise ValueError(f"{path}: task {name!r} has no {', '.join(absent)}.")
    if value["kind"] not in get_args(RelationalKind):
        raise ValueError(
            f"{path}: task {name!r} is of the kind {value['kind']!r}, expected one of "
            f"{', '.join(get_args(RelationalKind))}."
        )
    if (value["kind"] == "recommendation") != ("item_table" in value):
        raise ValueError(f"{path}: task {name!r}: item_table belongs to a recommendation, and to nothing else.")
    if isinstance(value.get("upto"), dict):  # TOML has dates of its own, JSON has not
        value = value | {"upto": {part: str(time) for part, time in value["upto"].items()}}
    return TaskFile(**value)


def _moment(part: str, text: str) -> int:
    moment = seconds(str(text))
    if moment is None:
        raise ValueError(f"upto of {part} is {text!r}, expected a date such as 2010-01-31.")
    return moment
