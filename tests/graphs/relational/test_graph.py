import csv
import math

import pytest
import torch

from idgnn.graphs.relational.columns import ColumnCode, features, find_codes, left_out
from idgnn.graphs.relational.graph import (
    aged_channels,
    aged_snapshot,
    check_within_data,
    last_time,
    load_tables,
    to_graph,
)
from idgnn.graphs.relational.task_tables import TaskColumns, find_classes, read_queries
from idgnn.graphs.relational.times import seconds
from tests.graphs.relational.small_tables import write_tables


def when(text: str) -> int:
    moment = seconds(text)
    assert moment is not None
    return moment


def pairs(graph, kind):
    """The edges as pairs of keys."""
    key = lambda store, row: graph[store].key[row]  # noqa: E731
    return {(key(kind[0], s), key(kind[2], t)) for s, t in graph[kind].edge_index.t().tolist()}


def test_every_foreign_key_is_an_edge_type_in_both_directions(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    assert graph.node_types == ["drivers", "circuits", "races", "results"]
    assert pairs(graph, ("races", "circuit", "circuits")) == {("1", "x"), ("2", "y"), ("3", "x")}
    assert pairs(graph, ("results", "driver", "drivers")) == {(str(row), key) for row, key in enumerate("abacab")}
    assert len(graph.edge_types) == 6
    for kind in graph.edge_types:
        if not kind[1].startswith("rev_"):
            back = graph[kind[2], f"rev_{kind[1]}", kind[0]].edge_index
            assert torch.equal(back.flip(0), graph[kind].edge_index)


def test_the_time_of_a_row_can_be_that_of_the_row_it_names(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    days = [when(f"{year}-05-01") for year in (2000, 2000, 2001, 2001, 2002, 2002)]
    assert graph["results"].time.tolist() == days
    assert last_time(graph) == days[-1]
    assert "time" not in graph["drivers"]


def test_a_shifted_time_is_earlier(tmp_path):
    schema = (write_tables(tmp_path) / "schema.toml").read_text().replace('race.date"', 'race.date"\nshift_days = -1')
    graph = to_graph(load_tables(write_tables(tmp_path, schema)))
    assert graph["results"].time[0].item() == when("2000-04-30")


def test_an_empty_foreign_key_is_no_edge(tmp_path):
    graph = to_graph(
        load_tables(write_tables(tmp_path, races="id,circuit,date\n1,,2000-05-01\n2,y,2001-05-01\n3,\\N,2002-05-01\n"))
    )
    assert pairs(graph, ("races", "circuit", "circuits")) == {("2", "y")}


def test_columns_are_numbers_times_categories_or_left_out(tmp_path):
    tables = load_tables(write_tables(tmp_path))
    codes = find_codes(tables)
    assert {code.name: code.kind for code in codes["drivers"]} == {
        "born": "time",
        "country": "category",
        "points": "number",
        "remark": "text",
    }
    assert left_out(codes) == {"drivers": ["remark"]}
    x = features(tables["drivers"], codes["drivers"])
    assert x.shape == (4, 6 + 3 + 2)
    born, country, points = x[:, :6], x[:, 6:9], x[:, 9:]
    assert country.tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert points.tolist() == [[-1, 0], [0, 1], [1, 0], [0, 1]]  # mean 2, standard deviation 0.5
    assert born[2].tolist() == [0, 0, 0, 0, 0, 1]
    known = torch.tensor([when(day) for day in ("1985-01-07", "1977-05-10", "1990-01-01")], dtype=torch.double)
    expected = (known - known.mean()) / known.std(correction=0)
    torch.testing.assert_close(torch.from_numpy(born[[0, 1, 3], 0]).double(), expected, atol=1e-6, rtol=0)
    angle = 2 * math.pi * (when("1985-01-07") / 86400 % 365.25) / 365.25
    assert born[0, 1:3].tolist() == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


def test_codes_are_fitted_to_the_rows_before_a_time(tmp_path):
    results = "race,driver,position,state\n1,a,1,in\n1,b,3,in\n2,a,100,out\n2,c,200,out\n"
    tables = load_tables(write_tables(tmp_path, results=results))
    position, state = find_codes(tables, when("2001-01-01"))["results"]
    assert (position.mean, position.scale) == (2.0, 1.0)
    assert state.categories == ("in",)
    assert features(tables["results"], (state,)).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]


def test_codes_survive_json(tmp_path):
    import json

    for code in find_codes(load_tables(write_tables(tmp_path)))["drivers"]:
        assert ColumnCode.from_dict(json.loads(json.dumps(code.as_dict()))) == code


def test_a_snapshot_holds_what_was_known_before(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    seen = aged_snapshot(graph, when("2002-05-01"))  # strictly before: the race of that day is not in it
    assert seen["races"].row.tolist() == [0, 1]
    assert seen["results"].row.tolist() == [0, 1, 2, 3]
    assert seen["drivers"].row.tolist() == [0, 1, 2, 3]
    assert seen["races", "circuit", "circuits"].edge_index.tolist() == [[0, 1], [0, 1]]
    assert {kind: seen[kind].x.size(1) for kind in seen.node_types} == aged_channels(graph)
    recent = aged_snapshot(graph, when("2002-05-01"), window=400 * 86400)
    assert recent["races"].row.tolist() == [1]
    assert recent["results", "race", "races"].edge_index.tolist() == [[0, 1], [0, 0]]


def test_a_later_row_changes_no_snapshot(tmp_path):
    before = aged_snapshot(to_graph(load_tables(write_tables(tmp_path))), when("2002-01-01"))
    tables = load_tables(
        write_tables(
            tmp_path,
            races="id,circuit,date\n1,x,2000-05-01\n2,y,2001-05-01\n3,z,2002-01-01\n4,z,2003-05-01\n",
            results="race,driver,position\n1,a,1\n1,b,2\n2,a,1\n2,c,2\n3,c,1\n4,d,1\n",
        )
    )
    codes = find_codes(tables, when("2002-01-01"))
    after = aged_snapshot(to_graph(tables, codes), when("2002-01-01"))
    assert torch.equal(before["results", "race", "races"].edge_index, after["results", "race", "races"].edge_index)
    for kind in ("drivers", "circuits", "races"):
        assert torch.equal(before[kind].x, after[kind].x)


def test_the_age_of_a_row_counts_from_the_query(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    age = aged_snapshot(graph, when("2001-05-01") + 1)["races"].x[:, -5:-1]  # behind them, the number of results
    assert age[1].tolist() == pytest.approx([0, 1, 1, 1], abs=1e-5)
    assert age[0, 2].item() == pytest.approx(math.exp(-365 / 365.25), abs=1e-5)


def test_rows_that_refer_to_a_node_are_counted(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    seen = aged_snapshot(graph, when("2002-01-01"))
    assert seen["drivers"].x[:, -1].expm1().round().tolist() == [2, 1, 1, 0]
    assert seen["circuits"].x[:, -1].expm1().round().tolist() == [1, 1, 0]


def test_a_column_of_times_becomes_an_age(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    assert graph["drivers"].moment_columns == [0]
    x = aged_snapshot(graph, when("1997-05-10"))["drivers"].x[:, 0].tolist()
    assert x == pytest.approx([(12 * 365.25 + 123) / 3652.5, 2.0, 0.0, (7 * 365.25 + 129) / 3652.5], abs=1e-3)


def test_queries_outside_of_the_data_are_refused(tmp_path):
    graph = to_graph(load_tables(write_tables(tmp_path)))
    check_within_data(graph, torch.tensor([when("2003-01-01")]), "it")  # the next year: a forecast
    with pytest.raises(
        ValueError, match="2009-01-01, more than a year in the future of the data, which ends at 2002-05"
    ):
        check_within_data(graph, torch.tensor([when("2001-01-01"), when("2009-01-01")]), "it")
    with pytest.raises(ValueError, match="begins at 2000-05-01: nothing was known before"):
        check_within_data(graph, torch.tensor([when("1999-01-01")]), "it")


@pytest.mark.parametrize("cell", ['["x", "z"]', "[x, z]", "['x', 'z']", '[ x,"z" ]'])
def test_a_list_of_keys_is_json_or_plain_text(cell, tmp_path):
    tables = load_tables(write_tables(tmp_path))
    path = tmp_path / "task.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["day", "driver", "circuits"], ["2001-01-01", "a", cell], ["2001-01-01", "b", "[]"]]
        )
    queries = read_queries(path, TaskColumns("driver", "drivers", "day", "circuits", "circuits"), tables)
    assert (queries.items.item.tolist(), queries.items.start.tolist()) == ([0, 2], [0, 2, 2])


def test_classes_are_sorted_as_numbers_or_as_text(tmp_path):
    path = tmp_path / "task.csv"
    for cells, expected in (("10 2 2.0 1", ("1", "2", "10")), ("b a \\N", ("a", "b")), ("True 0 1", ("0", "1"))):
        path.write_text("target\n" + "\n".join(cells.split()) + "\n")
        assert find_classes(path, "target") == expected
    path.write_text("target\n" + "".join(f"{i}\n" for i in range(1001)))
    with pytest.raises(ValueError, match=r"1,001 different values, expected at most 1000 classes"):
        find_classes(path, "target")


def test_whole_numbers_as_pandas_writes_them_are_found(tmp_path):
    """A column of whole numbers with gaps is written as 1.0, and so are the foreign keys and queries in it."""
    folder = write_tables(tmp_path)
    plain = to_graph(load_tables(folder))
    results = (folder / "results.csv").read_text().splitlines()
    changed = [results[0], *(row.replace(",", ".0,", 1) for row in results[1:])]
    (folder / "results.csv").write_text("\n".join(changed) + "\n")
    tables = load_tables(folder)
    kind = ("results", "race", "races")
    assert torch.equal(to_graph(tables)[kind].edge_index, plain[kind].edge_index)
    (folder / "ask.csv").write_text("race,date\n3.0,2003-01-01\n")
    asked = read_queries(folder / "ask.csv", TaskColumns("race", "races", "date", None), tables)
    assert asked.entity.tolist() == [2]


def test_entities_stay_whatever_their_time(tmp_path):
    """Races are asked about: all of them keep their numbers, and those of the future have no edges."""
    graph = to_graph(load_tables(write_tables(tmp_path)))
    past = aged_snapshot(graph, when("2001-12-31"), window=400 * 86400, whole=("races",))
    assert past["races"].known.tolist() == [True, True, False] and past["races"].row.tolist() == [0, 1, 2]
    assert past["races", "circuit", "circuits"].edge_index.tolist() == [[0, 1], [0, 1]]
    assert past["results"].row.tolist() == [2, 3]  # of the last 400 days
    assert past["results", "race", "races"].edge_index.tolist() == [[0, 1], [1, 1]]
    assert bool(past["races"].x.isfinite().all())
