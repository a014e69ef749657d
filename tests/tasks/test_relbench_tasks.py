from datetime import datetime
from types import SimpleNamespace

import pytest

from idgnn.tasks.relbench_tasks import relbench_problem
from tests.graphs.relational.test_relbench import Column, Database, Frame, Table, database


def frame(columns):
    return Frame({name: Column(cells) for name, cells in columns.items()})


def make(kind: str, **attributes) -> SimpleNamespace:
    day = {"train": datetime(2001, 1, 1), "val": datetime(2002, 1, 1), "test": datetime(2003, 1, 1)}

    def get_table(split: str, mask_input_cols: bool) -> Table:
        assert not mask_input_cols
        target = {"circuits": [[0, 1], [1]]} if kind == "recommendation" else {"won": [1, 0]}
        columns = {"date": [day[split]] * 2, "driver": [0, 1], **target}
        return Table(frame(columns), {"driver": "drivers"}, None, "date")

    dataset = SimpleNamespace(
        get_db=lambda upto_test_timestamp: database(frame, Table, Database),
        val_timestamp=datetime(2002, 1, 1),
        test_timestamp=datetime(2002, 6, 1),
    )
    return SimpleNamespace(task_type=kind, dataset=dataset, get_table=get_table, time_col="date", **attributes)


def test_an_entity_task_is_taken_as_it_is():
    task = make("binary_classification", entity_col="driver", entity_table="drivers", target_col="won")
    problem = relbench_problem(task).problem
    assert problem.kind == "entity-classification"
    target = problem.queries["train"].target
    assert target is not None and target.tolist() == [1, 0]
    assert problem.longest_lag == (datetime(2003, 1, 1) - datetime(2002, 6, 1)).total_seconds()


def test_a_recommendation_task_is_taken_as_it_is():
    task = make(
        "recommendation",
        src_entity_col="driver",
        src_entity_table="drivers",
        dst_entity_col="circuits",
        dst_entity_table="circuits",
        eval_k=2,
    )
    problem = relbench_problem(task).problem
    items = problem.queries["test"].items
    assert items is not None and items.item.tolist() == [0, 1, 1]
    assert (problem.kind, problem.k, problem.item_type) == ("recommendation", 2, "circuits")
    assert set(problem.heuristics("test")) >= {"most used, 5 years", "past visits, 5 years"}


def test_tasks_of_other_types_are_refused():
    with pytest.raises(ValueError, match="multilabel, expected one of binary_classification"):
        relbench_problem(make("multilabel"))
