"""Folders of files, and the files that networkx reads."""

import networkx as nx
import pytest
import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import named_edges, only, write


def test_a_folder_has_one_graph_per_file_sorted_by_name(tmp_path):
    folder = tmp_path / "mine"
    write(folder / "b.csv.gz", "x,y\n")
    write(folder / "a.txt", "1 2\n2 3\n")
    write(folder / "c.gml", 'graph [ node [ id 0 label "p" ] ]')
    write(folder / "README.md", "no graph")
    write(folder / "._a.csv", "no graph")
    labels = write(folder / "labels.csv", "file,y\nc,0.5\nb,1\na,\n")
    dataset = read_files(FileSource(folder, graphs=labels, label="y"))
    assert dataset.name == "mine"
    assert [(graph.graph_name, graph.node_name) for graph in dataset.graphs] == [
        ("a", ["1", "2", "3"]),
        ("b", ["x", "y"]),
        ("c", ["p"]),
    ]
    torch.testing.assert_close(
        torch.cat([graph.y for graph in dataset.graphs]), torch.tensor([torch.nan, 1, 0.5]), equal_nan=True
    )


def test_the_node_table_of_a_folder_names_the_files(tmp_path):
    write(tmp_path / "f" / "a.csv", "1,2\n")
    write(tmp_path / "f" / "b.csv", "source,target\n")
    nodes = write(tmp_path / "n.csv", "id,graph,age\n2,a,5\n1,a,6\n1,b,7\n")
    a, b = read_files(FileSource(tmp_path / "f", nodes=nodes)).graphs
    assert (a.node_name, a.x.tolist(), b.x.tolist()) == (["2", "1"], [[5], [6]], [[7]])


def colored_path(kind: type[nx.Graph]) -> nx.Graph:
    graph = kind(toxic="yes")
    for node, color in (("ü", "red"), ("b", "blue"), ("c", "red")):
        graph.add_node(node, color=color, age=1.5)
    graph.add_edge("ü", "b", weight=2.0, bond="double")
    graph.add_edge("b", "c", weight=3.0, bond="single")
    return graph


@pytest.mark.filterwarnings("ignore:the edges of .* are directed")
@pytest.mark.parametrize("suffix", [".graphml", ".gml", ".graphml.gz", ".gml.gz"])
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_attributes_are_columns(tmp_path, suffix, kind):
    path = tmp_path / f"mol{suffix}"
    (nx.write_gml if "gml" in suffix.split(".") else nx.write_graphml)(colored_path(kind), path)
    dataset = read_files(FileSource(path, label="toxic", ignore=("age",)))
    [graph] = dataset.graphs
    assert graph.node_name == ["ü", "b", "c"] and graph.graph_name == dataset.name == "mol"
    assert graph.x.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert named_edges(graph) == [("ü", "b"), ("b", "c"), ("b", "ü"), ("c", "b")]
    assert graph.edge_weight.tolist() == [2, 3, 2, 3]
    assert graph.edge_attr.tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert graph.y.tolist() == [0] and dataset.schema.label_of == "graph"


@pytest.mark.parametrize("seed", range(3))
def test_every_format_gives_back_the_graph_of_networkx(tmp_path, seed):
    expected = nx.relabel_nodes(nx.gnm_random_graph(20, 40, seed), str)
    nx.write_graphml(expected, tmp_path / "g.graphml")
    nx.write_gml(expected, tmp_path / "g.gml")
    nx.write_edgelist(expected, tmp_path / "g.edgelist", data=False)
    write(tmp_path / "g.csv", "".join(f"{v},{u}\n" for u, v in expected.edges))
    directed = expected.to_directed()
    for suffix in (".graphml", ".gml", ".edgelist", ".csv"):
        edges = named_edges(only(FileSource(tmp_path / f"g{suffix}")))
        assert len(edges) == 80 and set(edges) == set(directed.edges)


@pytest.mark.parametrize(("kind", "count"), [(nx.Graph, 4), (nx.DiGraph, 2)])
def test_directed_reading_keeps_the_directions_that_there_are(tmp_path, kind, count):
    nx.write_graphml(colored_path(kind), tmp_path / "g.graphml")
    dataset = read_files(FileSource(tmp_path / "g.graphml", directed=True))
    assert dataset.graphs[0].num_edges == count
    again = read_files(FileSource(tmp_path / "g.graphml"), dataset.schema)
    assert again.checksum() == dataset.checksum()


@pytest.mark.filterwarnings("ignore::idgnn.graphs.files.read.DuplicateEdgesWarning")
def test_graphml_keeps_parallel_edges_and_loops_and_knows_defaults(tmp_path):
    text = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
      <key id="d" for="node" attr.name="age" attr.type="int"><default>7</default></key>
      <graph edgedefault="undirected">
        <node id="a"/><node id="b"><data key="d">8</data></node>
        <edge id="e1" source="a" target="b"/><edge id="e2" source="a" target="b"/><edge id="e3" source="b" target="b"/>
      </graph></graphml>"""
    graph = only(FileSource(write(tmp_path / "g.graphml", text)))
    assert graph.x.tolist() == [[7], [8]]
    assert sorted(named_edges(graph)) == [("a", "b")] * 2 + [("b", "a")] * 2 + [("b", "b")]
    assert "edge_attr" not in graph


def test_gml_without_labels_is_read_by_ids_in_utf_8(tmp_path):
    text = 'graph [ node [ id 5 town "Köln" ] node [ id 3 town "Rom" ] edge [ source 5 target 3 id 1 ] ]'
    graph = only(FileSource(write(tmp_path / "g.gml", text)))
    assert graph.node_name == ["5", "3"] and graph.x.tolist() == [[1, 0], [0, 1]]
    assert "edge_attr" not in graph


def test_a_label_may_be_missing_at_some_nodes_and_a_feature_may_not(tmp_path):
    graph = colored_path(nx.Graph)
    graph.nodes["b"]["class"] = 1
    nx.write_graphml(graph, tmp_path / "g.graphml")
    assert only(FileSource(tmp_path / "g.graphml", label="class")).y.tolist() == [-1, 0, -1]
    with pytest.raises(ValueError, match=r"g.graphml has attributes without .*'class' at 2 of 3 .*ignore"):
        read_files(FileSource(tmp_path / "g.graphml"))


@pytest.mark.parametrize("labeled", ["graph [ y 3 node [ id 1 ] ]", "graph [ node [ id 1 y 3 ] ]"])
def test_a_file_of_a_folder_may_have_no_label(tmp_path, labeled):
    write(tmp_path / "f" / "a.gml", "graph [ node [ id 1 ] ]")
    write(tmp_path / "f" / "b.gml", labeled)
    dataset = read_files(FileSource(tmp_path / "f", label="y"))
    assert [graph.y.tolist() for graph in dataset.graphs] == [[-1], [0]]


def test_nested_attributes_are_no_features(tmp_path):
    path = write(tmp_path / "g.gml", "graph [ node [ id 1 graphics [ x 1 y 2 ] ] ]")
    with pytest.raises(ValueError, match=r"'graphics' at 1 of 1"):
        read_files(FileSource(path))
    assert only(FileSource(path, ignore=("graphics",))).x.tolist() == [[1]]
