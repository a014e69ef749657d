"""Tables are written as a whole, in three formats, and read back as they were."""

import csv

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from idgnn.tasks.query_set import stack
from idgnn.training import prediction_tables
from idgnn.training.prediction_tables import class_names_of, prediction_columns, query_columns, write_table

TABLE = {
    "graph": ["first", "zweiter, mit Komma", 'with "quotes"'],
    "node": [0, 7, 123456789],
    "probability": [0.1, 1e-30, 0.30000001192092896],
}


def test_csv_is_read_back(tmp_path):
    write_table(TABLE, tmp_path / "new" / "table.csv")
    with (tmp_path / "new" / "table.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == list(TABLE)
    assert [(name, int(node), float(p)) for name, node, p in rows] == list(zip(*TABLE.values(), strict=True))


def test_npz_is_read_back_without_pickle(tmp_path):
    write_table(TABLE, tmp_path / "table.npz")
    with np.load(tmp_path / "table.npz", allow_pickle=False) as read:
        assert {name: read[name].tolist() for name in TABLE} == TABLE
        assert set(read.files) == set(TABLE)
    write_table({"label": ["a", None]}, tmp_path / "table.npz")
    with np.load(tmp_path / "table.npz", allow_pickle=False) as read:
        assert read["label"].tolist() == ["a", "None"]


def test_parquet_is_read_back(tmp_path):
    from pyarrow import parquet

    write_table(TABLE, tmp_path / "table.parquet")
    assert parquet.read_table(tmp_path / "table.parquet").to_pydict() == TABLE


@pytest.mark.parametrize("name", ["table.xlsx", "table", "table.csv.gz"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(ValueError, match=r"expected a name that ends in .csv, .parquet, .npz"):
        write_table(TABLE, tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["table.csv", "table.npz"])
def test_a_table_is_never_half_there(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.write_bytes(b"what was there before")

    def half(file, *_, **__):
        file.write(b"half a file")
        raise OSError("the disk is full")

    monkeypatch.setattr(prediction_tables.np, "savez_compressed", half)
    longer = {**TABLE, "label": ["a"]}  # the second row cannot be made
    with pytest.raises((OSError, ValueError)):
        write_table(longer if name.endswith("csv") else TABLE, path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path], "nothing is left lying around"


def two_graphs() -> list[Data]:
    return [Data(num_nodes=size, edge_index=torch.tensor([[0], [1]])) for size in (3, 2)]


def test_rows_are_about_nodes_of_their_graph():
    graphs = two_graphs()
    every = query_columns(stack("node", graphs), graphs, [10, 20])
    assert every == {"graph": [10, 10, 10, 20, 20], "node": [0, 1, 2, 0, 1]}
    some = stack("node", graphs, [torch.tensor([2, 0]), torch.tensor([1])])
    assert query_columns(some, graphs, [10, 20]) == {"graph": [10, 10, 20], "node": [2, 0, 1]}
    pairs = stack("pair", graphs, [torch.tensor([[2, 0], [0, 0]]), torch.tensor([[1], [0]])])
    expected = {"graph": [10, 10, 20], "source": [2, 0, 1], "target": [0, 0, 0]}
    assert query_columns(pairs, graphs, [10, 20]) == expected
    assert query_columns(stack("graph", graphs), graphs, [10, 20]) == {"graph": [10, 20]}


def test_rows_have_the_names_that_the_user_gave():
    graphs = two_graphs()
    graphs[0].node_name, graphs[0].graph_name = ["Ada", "Bob", "Cy"], "club"
    table = query_columns(stack("pair", graphs, [torch.tensor([[2], [0]]), torch.tensor([[1], [0]])]), graphs, [0, 1])
    assert table == {"graph": ["club", 1], "source": ["Cy", 1], "target": ["Ada", 0]}


def test_classes_have_the_names_that_the_user_gave():
    columns = {
        "class": torch.tensor([1, 0]),
        "probability_0": torch.tensor([0.25, 1.0]),
        "probability_1": torch.ones(2),
    }
    assert prediction_columns(columns, None)["class"] == [1, 0]
    table = prediction_columns(columns, ["cat", "dog"])
    assert table == {"class": ["dog", "cat"], "probability_cat": [0.25, 1.0], "probability_dog": [1.0, 1.0]}
    assert class_names_of(torch.tensor([0.5]), ["cat", "dog"]) == [0.5]
