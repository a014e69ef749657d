"""Tables of edges, in every way they are written."""

from collections import Counter

import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from idgnn.graphs.files.read import DuplicateEdgesWarning, read_files
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import named_edges, only, write

BOTH = [("a", "b"), ("b", "c"), ("b", "a"), ("c", "b")]


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "e.csv": "a,b\nb,c\n",
        "e.tsv": "a\tb\nb\tc\n",
        "e.txt": "a b\n  b    c  \n",
        "tabs and blanks.txt": "a \t b\nb c\n",
        "commas.txt": "a,b\nb,c\n",
        "tabs.edges": "a\tb\nb\tc\n",
        "semicolons.edgelist": "a;b\nb;c\n",
        "e.csv.gz": "a,b\nb,c\n",
        "e.txt.gz": "a b\nb c\n",
        "blanks around.csv": "a , b\n b,c \n",
        "comments.csv": "# it's \"so\n\na,b\n% more\nb,c\n",
        "mark.csv": "\ufeffa,b\nb,c\n",
        "windows.csv": "a,b\r\nb,c\r\n",
        "header.csv": "Source,TARGET\na,b\nb,c\n",
        "short header.txt": "src dst\na b\nb c\n",
        "swapped header.csv": "v,u\nb,a\nc,b\n",
        "quotes after blanks.csv": 'a, "b"\nb, "c"\n',
        "quotes.csv": '"a","b"\n"b",c\n',
        "quotes.txt": '"a" "b"\nb "c"\n',
    }.items(),
)
def test_every_way_to_write_a_table_gives_the_same_graph(tmp_path, name, text):
    graph = only(FileSource(write(tmp_path / name, text)))
    assert named_edges(graph) == BOTH
    assert torch.equal(graph.x, torch.ones(3, 1))
    assert graph.graph_name == name.split(".")[0]
    assert "edge_attr" not in graph and "edge_weight" not in graph and "y" not in graph


@pytest.mark.filterwarnings("ignore:.* was read without a header")
@pytest.mark.parametrize("name", ["e.csv", "e.txt"])
def test_names_are_any_text(tmp_path, name):
    mark = "," if name == "e.csv" else " "
    text = f'"New York"{mark}"São ""P"", Paulo"\n1{mark}01\n"#1"{mark}東京\n'
    graph = only(FileSource(write(tmp_path / name, text), directed=True))
    assert named_edges(graph) == [("New York", 'São "P", Paulo'), ("1", "01"), ("#1", "東京")]


def test_a_cell_may_span_lines_that_look_like_comments(tmp_path):
    graph = only(FileSource(write(tmp_path / "e.csv", 'a,"x\n# y\n\nz"\na,b\n'), directed=True))
    assert named_edges(graph) == [("a", "x\n# y\n\nz"), ("a", "b")]


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        (["10,9", "-1,10", "9,2"], ["-1", "2", "9", "10"]),
        (["10,9", "9,x"], ["10", "9", "x"]),
        (["b,a", "c,b"], ["b", "a", "c"]),
        (["9" * 5000 + ",1"], ["9" * 5000, "1"]),  # more digits than Python takes for a number
    ],
)
def test_whole_numbers_are_sorted_and_other_names_come_as_they_appear(tmp_path, rows, names):
    assert only(FileSource(write(tmp_path / "e.csv", "\n".join(rows)))).node_name == names


@pytest.mark.filterwarnings("ignore::idgnn.graphs.files.read.DuplicateEdgesWarning")
@pytest.mark.parametrize(
    ("rows", "expected"),
    {
        "a loop is entered once": ("a,a\na,b\n", ["aa", "ab", "ba"]),
        "duplicates are kept": ("a,b\na,b\n", ["ab", "ab", "ba", "ba"]),
        "both directions are there": ("a,b\nb,a\nb,b\n", ["ab", "ba", "bb"]),
        "one direction more often": ("a,b\nb,a\na,b\n", ["ab", "ab", "ba", "ba"]),
        "one edge without its reverse": ("a,b\nb,a\nb,c\n", ["ab", "ba", "bc", "cb"]),
        "a node and its loop": ("a,a\n", ["aa"]),
    }.values(),
)
def test_undirected_edges_get_the_reverses_that_are_not_there(tmp_path, rows, expected):
    graph = only(FileSource(write(tmp_path / "e.csv", rows)))
    assert Counter(map("".join, named_edges(graph))) == Counter(expected)


def test_a_directed_graph_is_as_the_file_has_it(tmp_path):
    path = write(tmp_path / "e.csv", "a,b\na,b\nb,c\nc,c\n")
    with pytest.warns(DuplicateEdgesWarning, match=r"e\.csv are there more than once \(1 of 4 entries are repeats\)"):
        graph = only(FileSource(path, directed=True))
    assert named_edges(graph) == [("a", "b"), ("a", "b"), ("b", "c"), ("c", "c")]


def test_each_graph_of_a_table_is_looked_at_by_itself(tmp_path):
    rows = "source,target,graph\na,b,one\na,b,two\nb,a,one\nb,c,two\n"
    one, two = read_files(FileSource(write(tmp_path / "e.csv", rows))).graphs
    assert (one.graph_name, two.graph_name) == ("one", "two")
    assert named_edges(one) == [("a", "b"), ("b", "a")]
    assert named_edges(two) == BOTH


def test_weights_and_features_follow_their_edges(tmp_path):
    rows = "kind,Weight,source,target,km\nroad,2,a,b,1.5\nrail,3,b,c,-1\nroad,4,c,c,0\n"
    dataset = read_files(FileSource(write(tmp_path / "e.csv", rows)))
    [graph] = dataset.graphs
    assert named_edges(graph) == [("a", "b"), ("b", "c"), ("c", "c"), ("b", "a"), ("c", "b")]
    assert graph.edge_weight.tolist() == [2, 3, 4, 2, 3]
    rail, road = [1, 0], [0, 1]
    assert graph.edge_attr.tolist() == [[*road, 1.5], [*rail, -1], [*road, 0], [*road, 1.5], [*rail, -1]]
    assert [(column.name, column.categories) for column in dataset.schema.edge] == [
        ("kind", ("rail", "road")),
        ("km", None),
    ]
    assert dataset.schema.weighted


def test_numbers_beyond_the_second_column_need_no_header(tmp_path):
    graph = only(FileSource(write(tmp_path / "e.txt", "a b 2.5 7\nb c 3 8\n"), directed=True))
    assert graph.edge_weight.tolist() == [2.5, 3]
    assert graph.edge_attr.tolist() == [[7], [8]]


@pytest.mark.parametrize("header", ["citing,cited,year\na,b,1999\n", "graph,citing,cited,year\ng,a,b,1999\n"])
def test_a_header_may_have_other_names(tmp_path, header):
    graph = only(FileSource(write(tmp_path / "e.csv", header), directed=True))
    assert named_edges(graph) == [("a", "b")]
    assert graph.edge_attr.tolist() == [[1999]]


def test_ignored_columns_are_no_features(tmp_path):
    path = write(tmp_path / "e.csv", "source,target,weight,note\na,b,1,x\n")
    graph = only(FileSource(path, ignore=("weight", "note")))
    assert "edge_attr" not in graph and "edge_weight" not in graph


def test_parquet_reads_like_csv(tmp_path):
    parquet.write_table(pa.table({"source": [1, 10], "target": [10, 2], "weight": [0.5, None]}), tmp_path / "e.parquet")
    graph = only(FileSource(tmp_path / "e.parquet", ignore=("weight",), directed=True))
    assert named_edges(graph) == [("1", "10"), ("10", "2")]
    with pytest.raises(ValueError, match=r"e.parquet:2: column 'weight' is '', expected a finite number"):
        read_files(FileSource(tmp_path / "e.parquet"))
