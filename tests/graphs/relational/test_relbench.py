"""Objects with the attributes of relbench's, here without the package; with it if it is installed."""

from dataclasses import dataclass
from datetime import datetime

import pytest
import torch

from idgnn.graphs.relational.graph import load_tables, to_graph
from idgnn.graphs.relational.task_tables import TaskColumns, read_queries
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


def test_a_database_of_the_package(tmp_path):
    base = pytest.importorskip("relbench.base")
    pandas = pytest.importorskip("pandas")
    check(database(pandas.DataFrame, base.Table, base.Database), tmp_path)
