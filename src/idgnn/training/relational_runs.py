"""Runs on relational data on disk: the network, how columns became features, the task, the metrics."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from idgnn.graphs.relational.columns import Codes, ColumnCode, as_dicts
from idgnn.graphs.relational.graph import check_within_data, to_graph
from idgnn.graphs.relational.schema import TableSchema
from idgnn.graphs.relational.tables import KeyedTable, read_tables
from idgnn.graphs.relational.task_tables import TimedQueries, read_queries
from idgnn.graphs.relational.times import as_text
from idgnn.models.relational_predictor import RelationalPredictor
from idgnn.tasks.objective import Objective
from idgnn.tasks.ranking import top_items
from idgnn.tasks.relational import AbsoluteError
from idgnn.tasks.relational_files import Relational, TaskFile
from idgnn.training.relational import Moments, RelationalRun, predict_relational
from idgnn.writing import write_text

RUN = "relational.json"


@dataclass(frozen=True)
class SavedRun:
    """A run that was read from its folder."""

    model: RelationalPredictor
    task: TaskFile
    schema: dict[str, TableSchema]
    codes: Codes
    record: dict[str, Any]

    def read(self, tables: Path, queries: Path) -> tuple[dict[str, KeyedTable], Moments, TimedQueries]:
        """A folder of tables like that of the training, what was known in it at each time, and a table of queries."""
        found = read_tables(tables, self.schema)
        asked = read_queries(queries, replace(self.task.columns, target=None), found)
        graph = to_graph(found, self.codes, "linear" if self.model.settings["columns"] is None else "frame")
        if not self.task.upto:  # else the network was trained to look further ahead
            check_within_data(graph, asked.time, str(queries))
        return found, Moments(graph, self.record["settings"]["window_years"]), asked


def is_relational(folder: Path) -> bool:
    """Whether a folder holds a run on relational data."""
    return (Path(folder) / RUN).is_file()


def save_run(folder: Path, run: RelationalRun, source: Relational, name: str, task: TaskFile) -> None:
    """Writes a run into a folder, which is made if it is not there."""
    run.model.save(folder)
    objective = source.problem.objective()
    record = {
        "task_name": name,
        "task": asdict(task),
        "settings": run.settings.as_dict(),
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
    if not path.is_file():
        raise ValueError(f"there is no {RUN} in {folder}, expected the folder of a run on tables.")
    record = json.loads(path.read_text(encoding="utf-8"))
    schema = {
        name: replace(TableSchema(**table), ignore=tuple(table["ignore"]), categorical=tuple(table["categorical"]))
        for name, table in record["schema"].items()
    }
    codes = {name: tuple(map(ColumnCode.from_dict, each)) for name, each in record["codes"].items()}
    return SavedRun(RelationalPredictor.load(folder), TaskFile(**record["task"]), schema, codes, record)


def predictions(run: SavedRun, tables: Path, queries: Path) -> dict[str, list[Any]]:
    """A table with a row for each query; of a recommendation with a row for each of the k best items."""
    found, moments, asked = run.read(tables, queries)
    out = predict_relational(run.model, moments, asked, asked.time)
    keys, times = _names(found, run.task, asked)
    if run.task.kind != "recommendation":
        if run.task.kind == "entity-regression":
            objective = run.record["objective"]
            value = AbsoluteError(objective["mean"], objective["scale"]).read(out)["value"]
            return {run.task.entity: keys, run.task.time: times, run.task.target: value.tolist()}
        return {run.task.entity: keys, run.task.time: times, "probability_1": out.squeeze(1).sigmoid().tolist()}
    assert run.task.item_table is not None
    top = top_items(out, run.task.k)
    item = found[run.task.item_table].keys
    k = top.size(1)
    return {
        run.task.entity: [key for key in keys for _ in range(k)],
        run.task.time: [time for time in times for _ in range(k)],
        "rank": [rank for _ in keys for rank in range(1, k + 1)],
        run.task.target: [item[row] for row in top.flatten().tolist()],
        "score": out.gather(1, top).flatten().tolist(),
    }


@torch.no_grad()
def embeddings(run: SavedRun, tables: Path, queries: Path) -> tuple[dict[str, list[Any]], Tensor]:
    """The entities and times of the queries, and the states of the entities, `[queries, channels]`."""
    found, moments, asked = run.read(tables, queries)
    run.model.eval()
    keys, times = _names(found, run.task, asked)
    h = torch.empty(len(asked), run.model.encoder.embedding_channels)
    for moment in asked.time.unique().tolist():
        rows = (asked.time == moment).nonzero().view(-1)
        entities, of = asked.entity[rows].unique(return_inverse=True)
        h[rows] = run.model.entity_states(moments.at(moment), entities)[of]
    return {run.task.entity: keys, run.task.time: times}, h


def _names(tables: dict[str, KeyedTable], task: TaskFile, asked: TimedQueries) -> tuple[list[str], list[str]]:
    key = tables[task.entity_table].keys
    return [key[row] for row in asked.entity.tolist()], [as_text(moment) for moment in asked.time.tolist()]
