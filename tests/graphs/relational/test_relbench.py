"""Objects with the attributes of relbench's, here without the package; with it if it is installed."""

from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from idgnn.graphs.relational.graph import load_tables, to_graph
from idgnn.graphs.relational.relbench_tables import text_of
from idgnn.graphs.relational.task_tables import TaskColumns, read_queries
from idgnn.graphs.relational.times import seconds
from idgnn.tasks.relational_files import relbench_problem
from tests.graphs.relational.small_tables import write_tables


class Column(list):
    def tolist(self):
        return list(self)


class Frame(dict):
    @property
    def columns(self):
        return list(self)

    def __len__(self):
        return len(next(iter(self.values())))


@dataclass
class Table:
    df: object
    fkey_col_to_pkey_table: dict
    pkey_col: str | None
    time_col: str | None


@dataclass
class Database:
    table_dict: dict


def database(frame, table, whole):
    day = [datetime(year, 5, 1) for year in (2000, 2001, 2002)]
    return whole(
        {
            "drivers": table(frame({"id": [0, 1, 2, 3], "points": [1.5, None, 2.5, None]}), {}, "id", None),
            "circuits": table(frame({"id": [0, 1, 2], "length": [5, 3, 4]}), {}, "id", None),
            "races": table(
                frame({"id": [1, 2, 3], "circuit": [0, 1, 0], "date": day}), {"circuit": "circuits"}, "id", "date"
            ),
            "results": table(
                frame(
                    {
                        "race": [1, 1, 2, 2, 3, 3],
                        "driver": [0, 1, 0, 2.0, 0, float("nan")],
                        "date": [each for each in day for _ in "ab"],
                    }
                ),
                {"race": "races", "driver": "drivers"},
                None,
                "date",
            ),
        }
    )


def check(database, tmp_path):
    tables = load_tables(database)
    graph = to_graph(tables)
    assert graph["results", "driver", "drivers"].edge_index.tolist() == [[0, 1, 2, 3, 4], [0, 1, 0, 2, 0]]
    expected = to_graph(load_tables(write_tables(tmp_path)))
    assert torch.equal(graph["results"].time, expected["results"].time)
    assert torch.equal(graph["circuits"].x, expected["circuits"].x)
    assert graph["drivers"].x.tolist() == [[-1, 0], [0, 1], [1, 0], [0, 1]]
    return tables


def test_a_database_is_taken_as_it_is(tmp_path):
    def frame(columns):
        return Frame({name: Column(cells) for name, cells in columns.items()})

    tables = check(database(frame, Table, Database), tmp_path)
    task = Table(
        frame({"date": [datetime(2001, 1, 1)], "driver": [2], "circuits": [[0, 2]]}),
        {"driver": "drivers"},
        None,
        "date",
    )
    queries = read_queries(task, TaskColumns("driver", "drivers", "date", "circuits", "circuits"), tables)
    assert queries.items is not None
    assert (queries.entity.tolist(), queries.items.item.tolist()) == ([2], [0, 2])


def test_items_from_a_parquet_file_are_lists():
    cells = text_of(Table(Frame(items=Column([np.array([3, 1]), [2], None])), {}, None, None), "task table").columns
    assert cells["items"] == ["[3, 1]", "[2]", ""]


DAYS = [datetime(year, 6, 1) for year in range(2000, 2010)]


def yearly(frame, table, whole):
    """Two drivers, two circuits; the first driver races at circuit 0 in even years, the second one never."""
    return whole(
        {
            "drivers": table(frame({"id": [0, 1]}), {}, "id", None),
            "circuits": table(frame({"id": [0, 1]}), {}, "id", None),
            "races": table(
                frame({"driver": [0] * 10, "circuit": [year % 2 for year in range(10)], "date": DAYS}),
                {"driver": "drivers", "circuit": "circuits"},
                None,
                "date",
            ),
        }
    )


def parts_of(frame, table, target):
    """Tables of queries; the targets are those of the next year."""

    def part(years):
        columns = {"date": [datetime(year, 1, 1) for year in years], "driver": [0] * len(years)}
        columns["target"] = [target(year) for year in years]
        return table(frame(columns), {"driver": "drivers"}, None, "date")

    return {"train": part(range(2001, 2006)), "val": part([2006, 2007]), "test": part([2008, 2009])}


def check_problem(problem, kind):
    assert (problem.kind, problem.upto) == (kind, {"valid": seconds("2006-01-01"), "test": seconds("2008-01-01")})
    assert problem.seen_until("valid").tolist() == [seconds("2006-01-01")] * 2
    assert len(problem.queries["train"]) == 5 and problem.graph["races"].time.max() < seconds("2008-01-01")


def test_a_task_is_taken_as_it_is():
    def frame(columns):
        return Frame({name: Column(cells) for name, cells in columns.items()})

    def task(kind, target, **names):
        tables = parts_of(frame, Table, target)
        past = yearly(frame, Table, Database)
        for name, column in past.table_dict["races"].df.items():
            past.table_dict["races"].df[name] = Column(column[:8])
        times = SimpleNamespace(val_timestamp="2006-01-01", test_timestamp="2008-01-01", get_db=lambda: past)
        return SimpleNamespace(
            task_type=SimpleNamespace(value=kind),
            dataset=times,
            get_table=lambda split, mask_input_cols: tables[split],
            time_col="date",
            **names,
        )

    entity = {"entity_col": "driver", "entity_table": "drivers", "target_col": "target"}
    found = relbench_problem(task("regression", lambda year: year / 2, **entity)).problem
    check_problem(found, "entity-regression")
    assert found.queries["test"].target.tolist() == [1004, 1004.5]
    check_problem(
        relbench_problem(task("binary_classification", lambda y: y % 2, **entity)).problem, "entity-classification"
    )
    items = {"src_entity_col": "driver", "src_entity_table": "drivers", "dst_entity_col": "target"}
    items |= {"dst_entity_table": "circuits", "eval_k": 2}
    found = relbench_problem(task("recommendation", lambda year: [year % 2], **items)).problem
    check_problem(found, "recommendation")
    assert (found.k, found.queries["valid"].items.item.tolist()) == (2, [0, 1])
    with pytest.raises(ValueError, match="of the type multilabel_classification, expected one of"):
        relbench_problem(task("multilabel_classification", lambda year: [1, 0], **entity))


def test_a_task_of_the_package():
    base, pandas = pytest.importorskip("relbench.base"), pytest.importorskip("pandas")

    class Races(base.Dataset):
        val_timestamp, test_timestamp = pandas.Timestamp("2006-01-01"), pandas.Timestamp("2008-01-01")

        def make_db(self):
            return yearly(pandas.DataFrame, base.Table, base.Database)

    class Circuits(base.RecommendationTask):
        task_type, timedelta, metrics = base.TaskType.RECOMMENDATION, pandas.Timedelta(days=365), []
        src_entity_col, src_entity_table, time_col = "driver", "drivers", "date"
        dst_entity_col, dst_entity_table, eval_k = "target", "circuits", 2

        def get_table(self, split, mask_input_cols=None, db=None):
            return parts_of(pandas.DataFrame, base.Table, lambda year: [year % 2])[split]

    found = relbench_problem(Circuits(Races())).problem
    check_problem(found, "recommendation")
    assert found.queries["test"].items.item.tolist() == [0, 1]


def test_a_database_of_the_package(tmp_path):
    base = pytest.importorskip("relbench.base")
    pandas = pytest.importorskip("pandas")
    check(database(pandas.DataFrame, base.Table, base.Database), tmp_path)
