"""Tables of nodes and of graphs: features, labels, and graphs that edges alone cannot describe."""

import json

import pytest
import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.files.text import BadRows
from idgnn.graphs.schema import ColumnSchema, Schema
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import named_edges, only, write

EDGES = "source,target\na,b\nb,c\n"


def with_nodes(tmp_path, nodes: str, **changes) -> FileSource:
    return FileSource(write(tmp_path / "e.csv", EDGES), nodes=write(tmp_path / "n.csv", nodes), **changes)


def test_features_are_in_the_order_of_the_node_table(tmp_path):
    source = with_nodes(tmp_path, "age,node,color\n3,c,red\n1.5,b,\n-2,a,blue\n7,z,red\n")
    graph = only(source)
    assert graph.node_name == ["c", "b", "a", "z"]
    assert graph.x.tolist() == [[3, 0, 0, 1], [1.5, 1, 0, 0], [-2, 0, 1, 0], [7, 0, 0, 1]]
    assert sorted(named_edges(graph)) == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    assert read_files(source).schema == Schema((ColumnSchema("age"), ColumnSchema("color", ("", "blue", "red"))))


def test_the_first_column_is_the_node_if_none_is_called_so(tmp_path):
    assert only(with_nodes(tmp_path, "who,age\nb,1\na,2\nc,3\n")).node_name == ["b", "a", "c"]


@pytest.mark.parametrize("edges", ["source,target\n", "source,target,kind,weight\n"])
def test_a_graph_may_have_no_edges(tmp_path, edges):
    source = FileSource(write(tmp_path / "e.csv", edges), nodes=write(tmp_path / "n.csv", "id\nlonely\n"))
    graph = only(source)
    assert graph.node_name == ["lonely"] and graph.graph_name == "e"
    assert list(graph.edge_index.shape) == [2, 0] and graph.edge_index.dtype == torch.long
    if "kind" in edges:
        assert list(graph.edge_attr.shape) == [0, 1] and list(graph.edge_weight.shape) == [0]


def test_underscores_make_names_and_not_numbers(tmp_path):
    graph = only(with_nodes(tmp_path, "id,kind\na,1_1\nb,1_2\nc,1_1\n"))
    assert graph.x.tolist() == [[1, 0], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("cells", "categories", "y"),
    {
        "words": (["no", "yes", ""], ("no", "yes"), [0, 1, -1]),
        "whole numbers": (["10", "9", ""], ("9", "10"), [1, 0, -1]),
        "quantities": (["1.5", "2", ""], None, [1.5, 2, torch.nan]),
    }.values(),
)
def test_labels_of_nodes_are_classes_or_quantities(tmp_path, cells, categories, y):
    rows = "".join(f"{node},1,{cell}\n" for node, cell in zip("abc", cells, strict=True))
    dataset = read_files(with_nodes(tmp_path, "id,age,what\n" + rows, label="what"))
    assert dataset.schema.label == ColumnSchema("what", categories) and dataset.schema.label_of == "node"
    assert dataset.schema.node == (ColumnSchema("age"),)
    torch.testing.assert_close(dataset.graphs[0].y, torch.tensor(y), equal_nan=True)


@pytest.mark.parametrize(("count", "classes"), [(50, 50), (51, None)])
def test_more_than_fifty_whole_numbers_are_a_quantity(tmp_path, count, classes):
    edges = write(tmp_path / "e.csv", "source,target\n")
    nodes = write(tmp_path / "n.csv", "id,y\n" + "".join(f"{i},{i % count}\n" for i in range(3 * count)))
    label = read_files(FileSource(edges, nodes, label="y")).schema.label
    assert (label.categories and len(label.categories)) == classes


def many_graphs(tmp_path, graphs: str) -> FileSource:
    return FileSource(
        write(tmp_path / "e.csv", "source,target,graph\na,b,g1\na,c,g2\n"),
        nodes=write(tmp_path / "n.csv", "graph,id,age\ng2,c,1\ng1,a,2\ng3,a,3\ng1,b,4\ng2,a,5\n"),
        graphs=write(tmp_path / "g.csv", graphs),
        label="toxic",
    )


def test_many_graphs_have_nodes_and_labels_of_their_own(tmp_path):
    dataset = read_files(many_graphs(tmp_path, "graph,toxic\ng3,no\ng1,yes\ng2,\n"))
    assert [graph.graph_name for graph in dataset.graphs] == ["g1", "g2", "g3"]
    assert [graph.node_name for graph in dataset.graphs] == [["a", "b"], ["c", "a"], ["a"]]
    assert [graph.x.flatten().tolist() for graph in dataset.graphs] == [[2, 4], [1, 5], [3]]
    assert [named_edges(graph) for graph in dataset.graphs] == [[("a", "b"), ("b", "a")], [("a", "c"), ("c", "a")], []]
    assert [graph.y.tolist() for graph in dataset.graphs] == [[1], [-1], [0]]
    assert dataset.schema.label_of == "graph" and dataset.name == "e"


def test_a_schema_reads_new_files_as_the_old_ones(tmp_path):
    old = read_files(
        FileSource(
            write(tmp_path / "old.csv", "source,target,kind,weight\na,b,x,1\nb,c,y,2\n"),
            write(tmp_path / "old_nodes.csv", "id,color,age,class\na,red,1,no\nb,blue,2,yes\nc,green,3,no\n"),
            label="class",
            directed=True,
        )
    )
    schema = Schema.from_dict(json.loads(json.dumps(old.schema.as_dict())))
    new = FileSource(
        write(tmp_path / "new.csv", "weight,more,kind,source,target\n3,?,y,p,q\n"),
        write(tmp_path / "new_nodes.csv", "age,id,remark,color\n7,p,hi,green\n8,q,ho,green\n"),
    )
    dataset = read_files(new, schema)
    [graph] = dataset.graphs
    assert dataset.schema == old.schema
    assert graph.x.tolist() == [[0, 1, 0, 7], [0, 1, 0, 8]]
    assert named_edges(graph) == [("p", "q")]
    assert graph.edge_attr.tolist() == [[0, 1]] and graph.edge_weight.tolist() == [3]
    assert "y" not in graph

    labeled = write(tmp_path / "new_nodes.csv", "age,id,class,color\n7,p,yes,green\n8,q,,green\n")
    assert read_files(FileSource(new.edges, labeled), schema).graphs[0].y.tolist() == [1, -1]


def test_a_schema_with_labels_of_graphs_needs_no_labels(tmp_path):
    source = many_graphs(tmp_path, "graph,toxic\ng3,no\ng1,yes\ng2,\n")
    schema = read_files(source).schema
    assert all("y" not in graph for graph in read_files(FileSource(source.edges, source.nodes), schema).graphs)


def test_numbers_that_are_named_categorical_are_one_hot_coded(tmp_path):
    edges = write(tmp_path / "e.csv", "source,target,bond\na,b,2\nb,c,1\n")
    nodes = write(tmp_path / "n.csv", "id,atom,charge\na,10,1\nb,6,2\nc,10,4\n")
    dataset = read_files(FileSource(edges, nodes, categorical=("atom", "bond")))
    [graph] = dataset.graphs
    assert dataset.schema.node == (ColumnSchema("atom", ("6", "10")), ColumnSchema("charge"))
    assert graph.x.tolist() == [[0, 1, 1], [1, 0, 2], [0, 1, 4]]
    assert graph.edge_attr.tolist() == [[0, 1], [1, 0]] * 2
    again = read_files(FileSource(edges, nodes), dataset.schema)  # as for prediction
    assert again.graphs[0].x.tolist() == graph.x.tolist()
    write(tmp_path / "n.csv", "id,atom,charge\na,7,1\nb,6,2\nc,10,4\n")
    with pytest.raises(BadRows, match=r"n.csv:2: column 'atom' is '7', expected one of the known '6', '10'"):
        read_files(FileSource(edges, nodes), dataset.schema)


@pytest.mark.parametrize("name", ["nothing", "class", "id", "weight"])
def test_only_features_can_be_categorical(tmp_path, name):
    edges = write(tmp_path / "e.csv", "source,target,weight\na,b,2\n")
    nodes = write(tmp_path / "n.csv", "id,atom,class\na,10,1\nb,6,2\n")
    with pytest.raises(ValueError, match=f"no feature is called '{name}', but .* the features are 'atom'"):
        read_files(FileSource(edges, nodes, label="class", categorical=(name,)))


@pytest.mark.parametrize("nodes", ['"a;1"\n"b;2"\n', "a;1\nb;2\nc;3\n", "id\na;1\nb;2\n"])
def test_names_of_nodes_may_hold_separators_of_other_tables(tmp_path, nodes):
    edges = write(tmp_path / "e.csv", "source,target\na;1,b;2\n")
    assert only(FileSource(edges, write(tmp_path / "n.csv", nodes))).node_name[:2] == ["a;1", "b;2"]
