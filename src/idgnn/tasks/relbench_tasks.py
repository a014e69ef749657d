"""Tasks of the package relbench as problems; they are recognized by their attributes, and relbench is not imported."""

from __future__ import annotations

from typing import Any

from idgnn.choices import RelationalKind
from idgnn.graphs.relational.columns import find_codes, left_out
from idgnn.graphs.relational.graph import load_tables, to_graph
from idgnn.graphs.relational.task_tables import TaskColumns, read_queries
from idgnn.graphs.relational.times import seconds
from idgnn.tasks.relational import RelationalProblem
from idgnn.tasks.relational_files import Relational

_KINDS: dict[str, RelationalKind] = {
    "binary_classification": "entity-classification",
    "regression": "entity-regression",
    "link_prediction": "recommendation",
    "recommendation": "recommendation",
}


def relbench_problem(task: Any) -> Relational:
    """A `relbench.base.EntityTask` or `RecommendationTask`, with the database of its dataset up to the test time.

    Queries of the validation and test parts see the rows before these parts begin.
    """
    kind = _KINDS.get(str(getattr(task.task_type, "value", task.task_type)))
    if kind is None:
        raise ValueError(f"the task is of the type {task.task_type}, expected one of {', '.join(_KINDS)}.")
    tables = load_tables(task.dataset.get_db(upto_test_timestamp=True))
    columns = task_columns(task)
    parts = {"train": "train", "valid": "val", "test": "test"}
    queries = {
        part: read_queries(task.get_table(name, mask_input_cols=False), columns, tables) for part, name in parts.items()
    }
    upto = {"valid": seconds(str(task.dataset.val_timestamp)), "test": seconds(str(task.dataset.test_timestamp))}
    known = {part: moment for part, moment in upto.items() if moment is not None}
    codes = find_codes(tables, known.get("valid"))
    problem = RelationalProblem(kind, to_graph(tables, codes), queries, known, int(getattr(task, "eval_k", 10)))
    return Relational(tables, codes, problem, left_out(codes))


def task_columns(task: Any) -> TaskColumns:
    """Which columns of the tables of a relbench task hold what."""
    if hasattr(task, "src_entity_col"):
        return TaskColumns(
            task.src_entity_col, task.src_entity_table, task.time_col, task.dst_entity_col, task.dst_entity_table
        )
    return TaskColumns(task.entity_col, task.entity_table, task.time_col, task.target_col)
