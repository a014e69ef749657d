"""Which first rows are headers: what the user says, or what the cells show, and never in silence."""

import warnings

import pytest

from idgnn.graphs.files.read import read_files
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import named_edges, only, write

EDGES = "source,target\na,b\nb,c\n"


def test_an_unknown_header_above_numbers_is_detected_and_said(tmp_path):
    path = write(tmp_path / "e.csv", "follower,followed\n1,2\n2,3\n")
    with pytest.warns(UserWarning, match=r"first row of .*e.csv \(follower, followed\) was taken for a header.*--no-h"):
        graph = only(FileSource(path, directed=True))
    assert named_edges(graph) == [("1", "2"), ("2", "3")]


@pytest.mark.parametrize("header", [True, ("edges",)])
def test_the_user_says_that_there_is_a_header(tmp_path, header):
    path = write(tmp_path / "e.csv", "user,movie\na,b\nb,c\n")
    assert named_edges(only(FileSource(path, directed=True, header=header))) == [("a", "b"), ("b", "c")]


def test_the_user_says_that_there_is_none(tmp_path):
    path = write(tmp_path / "e.csv", "Ann,Bob,friend\nBob,Cid,enemy\n")
    dataset = read_files(FileSource(path, directed=True, no_header=("edges",), ignore=("weight",)))
    assert named_edges(dataset.graphs[0]) == [("Ann", "Bob"), ("Bob", "Cid")]
    with pytest.raises(ValueError, match="cannot be with and without a header"):
        FileSource(path, header=True, no_header=("nodes",))
    with pytest.raises(ValueError, match="the table 'node', expected one of edges, nodes"):
        FileSource(path, header=("node",))


def with_nodes(tmp_path, nodes, **changes):
    return FileSource(write(tmp_path / "e.csv", EDGES), write(tmp_path / "n.csv", nodes), **changes)


@pytest.mark.parametrize(
    ("nodes", "names", "width"),
    {
        "a node in the first row": ("a,1\nb,2\nc,3\n", ["a", "b", "c"], 1),
        "nodes and words": ("a,red\nb,blue\nc,red\n", ["a", "b", "c"], 2),
        "a name": ("Name,x\na,1\nb,2\nc,3\n", ["a", "b", "c"], 1),
        "numbers below a text": ("who,x\na,1\nb,\nc,3\n", ["a", "b", "c"], 1),
        "no number in the first row": ("a,NA\nb,2\nc,3\n", ["a", "b", "c"], 1),
    }.values(),
)
def test_no_node_becomes_a_header(tmp_path, nodes, names, width):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph = only(with_nodes(tmp_path, nodes, missing="zero"))
    assert graph.node_name == names and graph.x.size(1) == width


def test_a_column_that_the_user_names_is_in_the_header(tmp_path):
    graph = only(with_nodes(tmp_path, "who,club\na,x\nb,y\nc,x\n", label="club"))
    assert graph.node_name == ["a", "b", "c"]


def test_what_the_cells_do_not_show_is_said(tmp_path):
    with pytest.warns(UserWarning, match=r"\(who, club\) was taken for a header. If not, say --no-header"):
        assert only(with_nodes(tmp_path, "who,club\na,x\nb,y\nc,x\n")).num_nodes == 3
    edges = write(tmp_path / "e.csv", "1,2\n2,3\n")
    nodes = write(tmp_path / "n.csv", "0,5\n1,6\n2,7\n3,7\n")
    with pytest.warns(UserWarning, match=r"\(0, 5\) was taken for no header. If not, say --header"):
        assert only(FileSource(edges, nodes)).num_nodes == 4
    assert only(FileSource(edges, nodes, header=("nodes",))).num_nodes == 3


def test_graphs_without_a_header(tmp_path):
    edges = write(tmp_path / "e.csv", "source,target,graph\na,b,g\na,c,h\n")
    graphs = write(tmp_path / "g.csv", "g,0\nh,1\n")
    dataset = read_files(FileSource(edges, graphs=graphs, label="column 2"))
    assert [graph.y.tolist() for graph in dataset.graphs] == [[0], [1]]


def test_compression_is_found_by_the_content(tmp_path):
    compressed = write(tmp_path / "e.csv.gz", EDGES)
    (tmp_path / "f.csv").write_bytes(compressed.read_bytes())
    (tmp_path / "g.csv.gz").write_text(EDGES)
    for name in ("f.csv", "g.csv.gz"):
        assert named_edges(only(FileSource(tmp_path / name, directed=True))) == [("a", "b"), ("b", "c")]
