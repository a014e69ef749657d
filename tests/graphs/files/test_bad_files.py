"""What cannot be read is refused in sentences: bad rows all together, each with its line."""

import gzip
import math

import pytest

from idgnn.graphs.files.columns import check_named_dataset
from idgnn.graphs.files.read import read_files
from idgnn.graphs.files.text import BadRows
from idgnn.graphs.schema import ColumnSchema, Schema
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import write

MISSING = "; --missing says what becomes of numbers that are not there"


def bad_rows(source: FileSource, schema=None) -> list[str]:
    with pytest.raises(BadRows) as caught:
        read_files(source, schema)
    assert str(caught.value).startswith(f"{len(caught.value.rows)} bad row")
    return [f"{row.path.name}:{row.line}: {row.what}" for row in caught.value.rows]


def test_every_bad_row_of_all_files_is_reported_with_its_line(tmp_path):
    edges = "# my edges\n\nsource,target,weight,graph\na,b,1,g\na,b\n,b,2,g\na,z,x,g\na,b,nan,g\n% c\na,b,inf,h\n"
    nodes = 'id,age,graph,remark\na,1,g,"two\nlines"\nb,,g,x\na,3,g,x\n,4,g,x\nc,inf,g,x\nd,5,i,x,x\ne,1e300,g,x\n'
    source = FileSource(
        write(tmp_path / "e.csv", edges),
        write(tmp_path / "n.csv", nodes),
        write(tmp_path / "g.csv", "graph,y\ng,0\nj,1\ng,1\n,2\n"),
        label="y",
    )
    assert bad_rows(source) == [
        "e.csv:5: 2 cells, expected 4: source, target, weight, graph",
        "e.csv:6: the source is empty",
        "e.csv:7: column 'weight' is 'x', expected a finite number; node 'z' is not in the node table",
        "e.csv:8: column 'weight' is 'nan', expected a finite number",
        "e.csv:10: graph 'h' is not in " + str(tmp_path / "g.csv")
        + "; column 'weight' is 'inf', expected a finite number; node 'a' is not in the node table; "
        "node 'b' is not in the node table",
        f"n.csv:4: column 'age' is '', expected a finite number{MISSING}",
        "n.csv:5: node 'a' is there already, at 3",
        "n.csv:6: the node is empty",
        "n.csv:7: column 'age' is 'inf', expected a finite number",
        "n.csv:8: 5 cells, expected 4: id, age, graph, remark",
        "n.csv:9: column 'age' is '1e300', expected a finite number",
        "g.csv:3: graph 'j' is unknown: no edge and no node belongs to it",
        "g.csv:4: graph 'g' has a row already",
        "g.csv:5: the graph is empty",
    ]  # fmt: skip


def test_values_that_the_schema_does_not_know_are_bad_rows(tmp_path):
    edges = write(tmp_path / "e.csv", "a,b\n")
    nodes = write(tmp_path / "n.csv", "id,color,age,y\na,red,1,no\nb,blue,2,yes\n")
    schema = read_files(FileSource(edges, nodes, label="y")).schema
    write(nodes, "id,color,age,y\na,red,old,perhaps\nb,pink,2,yes\n")
    assert bad_rows(FileSource(edges, nodes), schema) == [
        "n.csv:2: column 'age' is 'old', expected a finite number",
        "n.csv:3: column 'color' is 'pink', expected one of the known 'blue', 'red'",
    ]


def test_an_empty_end_is_not_called_an_unknown_node_as_well(tmp_path):
    source = FileSource(write(tmp_path / "e.csv", "a,b\na,\n"), write(tmp_path / "n.csv", "id\na\nb\n"))
    assert bad_rows(source) == ["e.csv:2: the target is empty"]


@pytest.mark.parametrize("cell", ["", "nan", "NA", "n/a", "NULL"])
def test_what_is_not_available_is_no_class_no_quantity_and_no_feature(tmp_path, cell):
    edges = write(tmp_path / "e.csv", "a,b\n")
    source = FileSource(edges, write(tmp_path / "n.csv", f"id,y\na,0\nb,1\nc,{cell}\n"), label="y")
    assert read_files(source).graphs[0].y.tolist() == [0, 1, -1]
    assert read_files(source, quantity=True).graphs[0].y[:2].tolist() == [0, 1]
    assert math.isnan(read_files(source, quantity=True).graphs[0].y[2])
    feature = FileSource(edges, source.nodes)
    assert bad_rows(feature) == [f"n.csv:4: column 'y' is {cell!r}, expected a finite number{MISSING}"]


def test_text_as_a_quantity_is_one_error(tmp_path):
    nodes = write(tmp_path / "n.csv", "id,city\na,NA\nb,Rome\nc,Oslo\n")
    source = FileSource(write(tmp_path / "e.csv", "a,b\nb,c\n"), nodes, label="city")
    with pytest.raises(ValueError, match=r"'city' holds text, such as 'Rome', but a regression expects") as caught:
        read_files(source, quantity=True)
    assert not isinstance(caught.value, BadRows)


def test_a_quantity_is_a_number(tmp_path):
    nodes = write(tmp_path / "n.csv", "id,y\na,100\nb,300\nc,much\n")
    source = FileSource(write(tmp_path / "e.csv", "a,b\n"), nodes, label="y")
    with pytest.raises(BadRows, match=r"n.csv:4: column 'y' is 'much', expected a finite number"):
        read_files(source, quantity=True)
    write(nodes, "id,y\na,100\nb,300\nc,\n")
    assert read_files(source, quantity=True).graphs[0].y[:2].tolist() == [100, 300]


def test_a_new_class_is_an_unknown_label(tmp_path):
    edges, nodes = write(tmp_path / "e.csv", "a,b\n"), write(tmp_path / "n.csv", "id,y\na,no\nb,yes\n")
    schema = read_files(FileSource(edges, nodes, label="y")).schema
    write(nodes, "id,y\na,perhaps\nb,yes\n")
    assert read_files(FileSource(edges, nodes), schema).graphs[0].y.tolist() == [-1, 1]


def test_a_first_row_that_may_be_a_header_or_an_edge_is_refused(tmp_path):
    path = write(tmp_path / "e.csv", "Ann,Bob,friend\nBob,Cid,enemy\n")
    with pytest.raises(ValueError, match="may be a header or an edge"):
        read_files(FileSource(path))
    with pytest.raises(ValueError, match="may be a header or an edge"):  # as networkx writes edges
        read_files(FileSource(write(tmp_path / "e.edgelist", "1 2 {}\n2 3 {}\n")))


def test_a_header_that_is_not_recognized_is_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="'user' and 'movie', is an edge"):
        read_files(FileSource(write(tmp_path / "e.csv", "user,movie\na,b\nb,c\n")))


def test_the_sizes_of_a_matrix_are_no_edge(tmp_path):
    text = "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n2 1 1.0\n3 2 1.0\n"
    graph = read_files(FileSource(write(tmp_path / "m.mtx", text))).graphs[0]
    assert graph.node_name == ["1", "2", "3"] and graph.num_edges == 4


def test_fifty_bad_rows_are_shown_and_all_are_kept(tmp_path):
    path = write(tmp_path / "e.csv", "a,b\n" + "a\n" * 60)
    with pytest.raises(BadRows, match=r"(?s)^60 bad rows.*e.csv:51: .*\n\.\.\. and 10 more$") as caught:
        read_files(FileSource(path))
    assert [row.line for row in caught.value.rows] == list(range(2, 62))
    assert "e.csv:52:" not in str(caught.value)


def test_quotes_that_do_not_match_are_bad_rows(tmp_path):
    found = bad_rows(FileSource(write(tmp_path / "e.csv", 'a,b\n"a"x,b\nb,c\na,"b\nc,d\n')))
    assert [row.split(" (")[0] for row in found] == [f"e.csv:{line}: the quotes do not match" for line in (2, 5)]


def test_nodes_of_a_folder_belong_to_its_files(tmp_path):
    write(tmp_path / "f" / "a.csv", "1,2\n")
    nodes = write(tmp_path / "n.csv", "id,graph\n1,a\n2,a\n1,b\n")
    assert bad_rows(FileSource(tmp_path / "f", nodes)) == [
        f"n.csv:4: graph 'b' is unknown: {tmp_path / 'f'} has no file of this name"
    ]


def test_places_in_graphml_are_named(tmp_path):
    path = write(tmp_path / "g.gml", 'graph [ node [ id 1 label "a" age 1 ] node [ id 2 label "b" age +INF ] ]')
    assert bad_rows(FileSource(path)) == ["g.gml:node 'b': column 'age' is 'inf', expected a finite number"]


GML = "graph [ node [ id 1 ] ]"
MANY_NAMES = "id,name\n" + "".join(f"{i},n{i}\n" for i in range(1001))
REFUSED = {
    "no file": ({}, {}, r"there is no file .*e.csv\. Check the path"),
    "empty": ({"e.csv": ""}, {}, r"e.csv is empty, expected a table"),
    "only comments": ({"e.csv": "# nothing\n\n"}, {}, r"e.csv is empty"),
    "one column": ({"e.csv": "a;b\nb;c\n"}, {}, r"e.csv has the columns 'source', expected at least .*\.txt"),
    "semicolons in nodes": (
        {"e.csv": "a,b\n", "n.csv": "id;age;y\na;1;x\nb;2;y\n"}, {"nodes": "n.csv", "label": "y"},
        r"n.csv has the columns 'id;age;y', expected several, which ';' seems to separate.*\.txt",
    ),
    "semicolons and decimal commas in nodes": (
        {"e.csv": "a,b\n", "n.csv": "id;age\na;1,5\nb;2\n"}, {"nodes": "n.csv"}, r"n.csv has .*'id;age', .*\.txt",
    ),
    "commas in nodes": (
        {"e.csv": "a,b\n", "n.tsv": "a,1\nb,2\n"}, {"nodes": "n.tsv"}, r"n.tsv has .*'a,1', .* which ','.*\.txt",
    ),
    "tabs in graphs": (
        {"e.csv": "a,b\n", "g.csv": "graph\ty\ne\t1\n"}, {"graphs": "g.csv", "label": "y"}, r"g.csv has .*\.txt",
    ),
    "not UTF-8": ({"e.csv": b"a,M\xfcnchen\n"}, {}, r"e.csv is not UTF-8 text: it has a byte 0xfc"),
    "no gzip": ({"e.csv.gz": b"\x1f\x8bnot"}, {"edges": "e.csv.gz"}, r"e.csv.gz is damaged: it begins as gzip does"),
    "cut off": ({"e.csv.gz": gzip.compress(b"a,b\n" * 99)[:-9]}, {"edges": "e.csv.gz"}, r"e.csv.gz is damaged"),
    "no edges": ({"e.csv": "source,target\n"}, {}, r"e.csv has no edges and no nodes. Add some"),
    "names twice": ({"e.csv": "u,v,k,k\n1,2,3,4\n"}, {}, r"header of .*e.csv names 'k' more than once"),
    "no name": ({"e.csv": "u,v,\n1,2,3\n"}, {}, r"column 3 of .*e.csv has no name"),
    "a folder for nodes": ({"e.csv": "a,b"}, {"nodes": "."}, r"is a folder, expected a file"),
    "no folder of graphs": ({"f/x.md": ""}, {"edges": "f"}, r"folder .*f has no file of graphs, expected one of \.csv"),
    "an empty file in a folder": ({"f/a.csv": "a,b", "f/b.csv": "u,v\n"}, {"edges": "f"}, r"b.csv has no edges"),
    "graphs of one name": ({"f/a.csv": "a,b", "f/a.txt": "a b"}, {"edges": "f"}, r"a.csv and .*a.txt .* one name"),
    "graphs in a folder": ({"f/a.csv": "u,v,graph\n1,2,3\n"}, {"edges": "f"}, r"a.csv has a column 'graph'"),
    "other columns in a folder": (
        {"f/a.csv": "u,v,k\n1,2,3\n", "f/b.csv": "1,2\n"}, {"edges": "f"}, r"lacks the columns 'k'; it has none.*--ign",
    ),
    "whose nodes": ({"e.csv": "u,v,graph\n1,2,3\n", "n": "id\n1\n2\n"}, {"nodes": "n"}, r"n has no column 'graph'"),
    "only graphs": ({"e.csv": "u,v,graph\n1,2,3\n", "n": "graph\n3\n"}, {"nodes": "n"}, r"n has no column 'id' or"),
    "nodes of many": ({"e.csv": "1,2", "n": "id,graph\n1,g\n"}, {"nodes": "n"}, r"n has a column 'graph', and"),
    "no such label": ({"e.csv": "1,2", "n": "id,age\n1,2\n2,3\n"}, {"nodes": "n", "label": "y"}, r"'y'.* have 'age'"),
    "two labels": (
        {"e.csv": "1,2", "n": "id,y\n1,1\n2,1\n", "g": "graph,y\ne,1\n"},
        {"nodes": "n", "graphs": "g", "label": "y"}, r"'y' is a column of the nodes and of the graphs",
    ),
    "no label known": ({"e.csv": "1,2", "n": "id,y\n1,\n2,\n"}, {"nodes": "n", "label": "y"}, r"'y' is empty every"),
    "ignored in vain": ({"e.csv": "1,2"}, {"ignore": ("agee",)}, r"no table has the ignored 'agee'"),
    "names as features": ({"e.csv": "1,2", "n": MANY_NAMES}, {"nodes": "n"}, r"'name' of .*1001 .*name it in ignore"),
    "no GraphML": ({"e.graphml": "<graph"}, {"edges": "e.graphml"}, r"e.graphml cannot be read as GraphML: "),
    "a number as GML": ({"e.gml": "graph 2"}, {"edges": "e.gml"}, r"e.gml cannot be read as GML: "),
    "no GML": ({"e.gml": "graph ["}, {"edges": "e.gml"}, r"e.gml cannot be read as GML: "),
    "nodes twice": ({"e.gml": GML, "n": "id\n1\n"}, {"edges": "e.gml", "nodes": "n"}, r"e.gml has its own nodes"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "changes", "sentence"), REFUSED.values(), ids=REFUSED)
def test_unreadable_files_are_refused_with_a_sentence(tmp_path, files, changes, sentence):
    for name, content in files.items():
        path = write(tmp_path / name, "" if isinstance(content, bytes) else content)
        if isinstance(content, bytes):
            path.write_bytes(content)
    paths = {key: tmp_path / name for key, name in changes.items() if key in ("edges", "nodes", "graphs")}
    source = FileSource(**({"edges": tmp_path / "e.csv"} | changes | paths))
    with pytest.raises(ValueError, match=sentence) as caught:
        read_files(source)
    assert not isinstance(caught.value, BadRows)


def test_a_schema_needs_its_columns(tmp_path):
    edges = write(tmp_path / "e.csv", "u,v,weight\na,b,1\n")
    nodes = write(tmp_path / "n.csv", "id,color,age\na,red,1\nb,blue,2\n")
    schema = read_files(FileSource(edges, nodes)).schema
    with pytest.raises(ValueError, match=r"n.csv lacks the columns 'color', 'age'; it has 'size'. The network was"):
        read_files(FileSource(edges, write(tmp_path / "n.csv", "id,size\na,1\nb,2\n")), schema)
    write(nodes, "id,color,age\na,red,1\nb,blue,2\n")
    with pytest.raises(ValueError, match=r"e.csv lacks the columns 'weight'"):
        read_files(FileSource(write(edges, "a,b\n"), nodes), schema)


@pytest.mark.parametrize(
    ("schema", "lacking"),
    [
        (Schema(node=(ColumnSchema("age"), ColumnSchema("town", ("Bern", "Rome")))), "'age', 'town'"),
        (Schema(edge=(ColumnSchema("kind"),), weighted=True), "'kind', 'weight'"),
        (Schema(label=ColumnSchema("club", ("a", "b")), label_of="node"), None),
    ],
)
def test_a_dataset_by_name_has_no_columns(schema, lacking):
    if lacking is None:
        check_named_dataset("ENZYMES", schema)
        return
    with pytest.raises(ValueError, match=rf"^ENZYMES lacks the columns {lacking}; .* Give files .* \(--edges, --nodes"):
        check_named_dataset("ENZYMES", schema)
