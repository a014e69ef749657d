"""Runs on relational data on disk: the network, how columns became features, the task, the metrics."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from idgnn.choices import ColumnEncoding
from idgnn.graphs.relational.columns import Codes, ColumnCode, as_dicts
from idgnn.graphs.relational.graph import check_within_data, to_graph
from idgnn.graphs.relational.schema import TableSchema, read_schema
from idgnn.graphs.relational.tables import KeyedTable, read_tables
from idgnn.graphs.relational.task_tables import TimedQueries, read_queries
from idgnn.graphs.relational.times import as_text
from idgnn.models.relational_predictor import RelationalPredictor
from idgnn.tasks.objective import Objective
from idgnn.tasks.problem import objective_from_dict
from idgnn.tasks.ranking import top_items
from idgnn.tasks.relational_files import PARTS, Relational, TaskFile, read_problem, read_tasks
from idgnn.training.processes import choose_device
from idgnn.training.relational import (
    Moments,
    RelationalRun,
    RelationalSettings,
    predict_relational,
    train_relational,
)
from idgnn.training.run_folder import locked
from idgnn.writing import write_text

RUN, START, CHECKPOINT = "relational.json", "relational_start.json", "checkpoint.safetensors"


@dataclass(frozen=True)
class TableRun:
    """What a run on tables is started with, and resumed with."""

    tables: str
    """The folder of the tables."""
    schema: str
    """The file with their schema."""
    tasks: str
    """The file with the tasks."""
    task: str
    """The name of the task."""
    columns: ColumnEncoding
    device: str
    settings: RelationalSettings

    def read(self) -> tuple[Relational, TaskFile]:
        """The tables and queries, and the task."""
        task = read_tasks(Path(self.tasks))[self.task]
        schema = read_schema(Path(self.schema))
        return read_problem(Path(self.tables), task, schema=schema, columns=self.columns), task

    def train(
        self,
        folder: Path,
        source: Relational,
        task: TaskFile,
        *,
        begin: Callable[[int], None] | None = None,
        show: Callable[[dict[str, Any]], None] | None = None,
    ) -> RelationalRun:
        """Trains in a folder, from its checkpoint if there is one, and writes the run into it.

        `begin` and `show` are those of :func:`~idgnn.training.relational.train_relational`.
        """
        with locked(folder, lambda: is_begun(folder)):
            self._begin(folder, _checksum(Path(self.tables), source, task))
            checkpoint = folder / CHECKPOINT
            run = train_relational(
                source.problem, self.settings, device=self.device, begin=begin, show=show, checkpoint=checkpoint
            )
            save_run(folder, run, source, self.task, task)
            checkpoint.unlink(missing_ok=True)
        return run

    @staticmethod
    def load(folder: Path) -> TableRun:
        """Of a run that was begun and not finished."""
        return _read_start(folder)[0]

    def _begin(self, folder: Path, checksum: str) -> None:
        """Writes what the run is started with; refuses to resume one with other settings or on other data."""
        if not is_begun(folder):
            write_text(folder / START, json.dumps(asdict(self) | {"checksum": checksum}, indent=1) + "\n")
            return
        begun, before = _read_start(folder)  # once more: another process may have finished the run by now
        if begun != self:
            raise ValueError(f"the run in {folder} has other settings. Resume it with its own, or start a new one.")
        if before != checksum:
            raise ValueError(
                f"the data have changed since the run in {folder} was started. Restore them, or start a new run."
            )


@dataclass(frozen=True)
class SavedRun:
    """A run that was read from its folder."""

    model: RelationalPredictor
    task: TaskFile
    schema: dict[str, TableSchema]
    codes: Codes
    record: dict[str, Any]

    def read(self, tables: Path, queries: Path, device: str) -> tuple[dict[str, KeyedTable], Moments, TimedQueries]:
        """A folder of tables like that of the training, what was known in it at each time, and a table of queries."""
        found = read_tables(tables, self.schema)
        parsed = read_queries(queries, replace(self.task.columns, target=None), found)
        graph = to_graph(found, self.codes, "linear" if self.model.settings["columns"] is None else "frame")
        if not self.task.upto:  # else the network was trained to look further ahead
            check_within_data(graph, parsed.time, str(queries))
        device = str(choose_device(device))
        self.model.to(device)
        whole = self.model.entity_type, self.model.item_type
        return found, Moments(graph, self.record["settings"]["window_years"], device, whole), parsed


def is_relational(folder: Path) -> bool:
    """Whether a folder holds a run on relational data."""
    return (Path(folder) / RUN).is_file()


def is_begun(folder: Path) -> bool:
    """Whether a run on relational data was begun in a folder."""
    return (Path(folder) / START).is_file()


def _read_start(folder: Path) -> tuple[TableRun, str]:
    """What a run was started with, and the checksum of its data."""
    if is_relational(folder):
        raise ValueError(f"the run in {folder} is finished. Train again without --resume, or predict with it.")
    path = Path(folder) / START
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        checksum = values.pop("checksum")
        return TableRun(**values | {"settings": RelationalSettings(**values["settings"])}), checksum
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a file that a run writes: {error!r}.") from None


def _checksum(folder: Path, source: Relational, task: TaskFile) -> str:
    """Of the schema, the task, and the bytes of every table and every table of queries."""
    schema = {name: asdict(table.schema) for name, table in source.tables.items()}
    found = hashlib.sha256(json.dumps([schema, asdict(task)]).encode())
    queries = [folder / file for part in PARTS if (file := getattr(task, part)) is not None]
    for path in [*(table.text.path for table in source.tables.values()), *queries]:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def save_run(folder: Path, run: RelationalRun, source: Relational, name: str, task: TaskFile) -> None:
    """Writes a run into a folder, which is made if it is not there."""
    run.model.save(folder)
    objective = source.problem.objective()
    record = {
        "task_name": name,
        "task": asdict(task),
        "settings": run.settings.as_dict(),
        "classes": source.problem.classes,
        "objective": objective.as_dict() if isinstance(objective, Objective) else {"k": objective.k},
        "schema": {table: asdict(found.schema) for table, found in source.tables.items()},
        "codes": as_dicts(source.codes),
        "metrics": run.metrics,
        "heuristics": {part: source.problem.heuristics(part) for part in run.metrics},
        "best_epoch": run.best_epoch,
        "epochs": run.epochs,
    }
    write_text(Path(folder) / RUN, json.dumps(record, indent=1) + "\n")


def load_run(folder: Path) -> SavedRun:
    """Reads what :func:`save_run` wrote."""
    path = Path(folder) / RUN
    if not path.is_file() and is_begun(folder):
        raise ValueError(f"the run in {folder} is not finished. Go on with it: idgnn train --resume {folder}.")
    if not path.is_file():
        raise ValueError(f"there is no {RUN} in {folder}, expected the folder of a run on tables.")
    record = json.loads(path.read_text(encoding="utf-8"))
    schema = {
        name: replace(TableSchema(**table), ignore=tuple(table["ignore"]), categorical=tuple(table["categorical"]))
        for name, table in record["schema"].items()
    }
    codes = {name: tuple(map(ColumnCode.from_dict, each)) for name, each in record["codes"].items()}
    return SavedRun(RelationalPredictor.load(folder), TaskFile(**record["task"]), schema, codes, record)


def predictions(run: SavedRun, tables: Path, queries: Path, device: str = "cpu") -> dict[str, list[Any]]:
    """A table with a row for each query; of a recommendation with a row for each of the k best items."""
    found, moments, parsed = run.read(tables, queries, device)
    out = predict_relational(run.model, moments, parsed, parsed.time)
    keys, times = _names(found, run.task, parsed)
    if run.task.kind != "recommendation":
        columns = objective_from_dict(run.record["objective"]).read(out)
        given = {run.task.entity: keys, run.task.time: times}
        if "value" in columns:
            return given | {run.task.target: columns["value"].tolist()}
        names = run.record["classes"] or ["0", "1"]
        shares = {f"probability_{names[i]}": columns.get(f"probability_{i}") for i in range(len(names))}
        return given | {
            run.task.target: [names[i] for i in columns["class"].tolist()],
            **{name: share.tolist() for name, share in shares.items() if share is not None},
        }
    assert run.task.item_table is not None
    top = top_items(out, run.task.k)
    item = found[run.task.item_table].keys
    ranked = (top >= 0).nonzero().tolist()  # query and place; items that were not there yet have none
    return {
        run.task.entity: [keys[query] for query, _ in ranked],
        run.task.time: [times[query] for query, _ in ranked],
        "rank": [place + 1 for _, place in ranked],
        run.task.target: [item[row] for row in top[top >= 0].tolist()],
        "score": out.gather(1, top.clamp(min=0))[top >= 0].tolist(),
    }


@torch.no_grad()
def embeddings(run: SavedRun, tables: Path, queries: Path, device: str = "cpu") -> tuple[dict[str, list[Any]], Tensor]:
    """The entities and times of the queries, and the states of the entities, `[queries, channels]`."""
    found, moments, parsed = run.read(tables, queries, device)
    run.model.eval()
    keys, times = _names(found, run.task, parsed)
    h = torch.empty(len(parsed), run.model.encoder.embedding_channels)
    for moment in parsed.time.unique().tolist():
        rows = (parsed.time == moment).nonzero().view(-1)
        entities, of = parsed.entity[rows].unique(return_inverse=True)
        h[rows] = run.model.entity_states(moments.at(moment), entities.to(moments.device)).cpu()[of]
    return {run.task.entity: keys, run.task.time: times}, h


def _names(tables: dict[str, KeyedTable], task: TaskFile, queries: TimedQueries) -> tuple[list[str], list[str]]:
    key = tables[task.entity_table].keys
    return [key[row] for row in queries.entity.tolist()], [as_text(moment) for moment in queries.time.tolist()]
