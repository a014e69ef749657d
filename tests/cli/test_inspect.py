import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from idgnn import identity_cost
from idgnn.cli.graph_statistics import identity_costs
from idgnn.cli.identity_picture import positions
from idgnn.cli.main import main
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cost import cost_bound
from idgnn.identity.queries import as_queries

Said = pytest.CaptureFixture[str]
pytestmark = pytest.mark.filterwarnings("ignore::idgnn.graphs.files.read.DuplicateEdgesWarning")

# A triangle with a tail, and a directed-looking second graph with a loop, a duplicate edge and an isolated node.
EDGES = "graph,source,target\nt,a,b\nt,b,c\nt,c,a\nt,c,d\nu,x,x\nu,x,y\nu,x,y\n"
NODES = "graph,id,size,kind\nt,a,1,red\nt,b,2,blue\nt,c,3,red\nt,d,4,\nu,x,5,red\nu,y,6,red\nu,z,7,blue\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "nodes.csv").write_text(NODES)
    return ["--edges", str(tmp_path / "edges.csv"), "--nodes", str(tmp_path / "nodes.csv"), "--label", "kind"]


def rows(said: str) -> dict[str, list[str]]:
    """The rows of all tables by their first cells."""
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in said.splitlines() if line.startswith("│")]
    return {first: others for first, *others in cells}


def fails(said: Said, arguments: list[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    out, err = said.readouterr()
    assert out == "" and re.fullmatch(r"idgnn: [^\n]+\.\n", err)
    return err


def test_statistics(files: list[str], capsys: Said) -> None:
    main(["inspect", *files])
    said = rows(capsys.readouterr().out)
    assert said["graphs"][0] == "2"
    assert said["nodes"] == ["7", "3.5", "3", "4"]
    assert said["edges, both directions counted"] == ["13", "6.5", "5", "8"]
    assert said["degree"] == ["", "1.9", "0", "3"]
    assert said["directed"] == ["no: every edge has its reverse"]
    assert said["connected"] == ["1 of 2 graphs"]
    assert (said["isolated nodes"], said["self-loops"], said["duplicate edges"]) == (["1"], ["1"], ["2"])
    assert (said["node features"], said["edge features"], said["edge weights"]) == (["1"], ["none"], ["no"])
    assert said["labels"] == ["of each node, 2 classes, 1 unknown"]
    assert (said["class red"], said["class blue"]) == (["4 (66.7%)"], ["2 (33.3%)"])


def test_directed_graphs_and_quantities(files: list[str], capsys: Said) -> None:
    main(["inspect", *files[:-1], "size", "--ignore", "kind", "--directed"])
    said = rows(capsys.readouterr().out)
    assert said["edges"][0] == "7" and said["in-degree"] == ["", "1.0", "0", "2"]
    assert said["out-degree"] == ["", "1.0", "0", "3"]
    assert said["directed"] == ["yes: some edges have no reverse"]
    assert said["labels"] == ["of each node, 7 classes"]
    assert said["node features"] == ["none: every node gets the number 1"]


def test_labels_of_graphs(tmp_path: Path, files: list[str], capsys: Said) -> None:
    (tmp_path / "graphs.csv").write_text("graph,energy\nt,1.5\nu,2.5\n")
    main(["inspect", *files[:4], "--ignore", "kind", "--graphs", str(tmp_path / "graphs.csv"), "--label", "energy"])
    assert rows(capsys.readouterr().out)["labels"] == ["of each graph, quantities: mean 2, least 1.5, most 2.5"]


def test_costs_are_those_of_the_identity_graphs(files: list[str], capsys: Said) -> None:
    main(["inspect", *files])
    said = rows(capsys.readouterr().out)
    one = [(0, 1), (1, 2), (2, 0), (2, 3)]
    two = [(4, 5), (4, 5)]
    edges = [*one, *((t, s) for s, t in one), (4, 4), *two, *((t, s) for s, t in two)]
    data = Data(x=torch.ones(7, 1), edge_index=torch.tensor(edges).t())
    for num_layers in range(1, 7):
        cost = identity_cost(data, num_layers)
        assert said[str(num_layers)][:3] == [f"{cost.rows}", f"{cost.rows / 7:.1f}", f"{cost.edges}"]
        assert said[str(num_layers)][3] in (f"{cost.bytes} bytes", f"{cost.bytes / 1000:.1f} kB")
    # A node and each of its neighbors, and the two nodes without any alone.
    beside = [*sorted({(u, v) for u, v in edges if u != v}), (6, 6)]
    triples = torch.tensor([(u, u, v) for u, v in beside]).t()
    for num_layers in range(1, 7):
        cost = identity_cost(data, num_layers, triples)
        assert said[f"{num_layers}, two colors"][:3] == [f"{cost.rows}", f"{cost.rows / 7:.1f}", f"{cost.edges}"]


def test_costs_stop_in_time_and_say_so(files: list[str], capsys: Said) -> None:
    main(["inspect", *files, "--seconds", "0"])
    said = capsys.readouterr().out
    exact, bound = rows(said)["3"], rows(said)["4"]
    assert not any(cell.startswith("≤") for cell in exact) and all(cell.startswith("≤ ") for cell in bound)
    one, two = said.splitlines()[-2:]
    assert one.startswith("K = 4 to 6 are upper bounds: counting would take longer than 0 s (--seconds); a sample")
    assert two.startswith("K = 1 to 6, two colors are upper bounds: counting would take longer than 0 s (--seconds)")
    assert all(cell.startswith("≤ ") for cell in rows(said)["3, two colors"])


def test_headers_are_said(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "e.txt").write_text("1 2\n2 3\n")
    (tmp_path / "n.csv").write_text("id,size\n1,5\n2,6\n3,7\n")
    main(["inspect", "--edges", str(tmp_path / "e.txt"), "--nodes", str(tmp_path / "n.csv")])
    said = rows(capsys.readouterr().out)
    assert said["first row names the columns"] == ["n.csv"] and said["first row does not"] == ["e.txt"]


@pytest.mark.parametrize("directed", [False, True])
def test_bounds_are_bounds_and_exact_where_they_say_so(directed: bool) -> None:
    torch.manual_seed(0)
    for num_nodes, num_edges in ((1, 0), (1, 2), (6, 9), (30, 40), (30, 200)):
        edges = torch.randint(num_nodes, (2, num_edges))
        edges = edges if directed else torch.cat([edges, edges.flip(0)], dim=1)
        data = Data(x=torch.ones(num_nodes, 3), edge_index=edges)
        for num_layers in range(1, 7):
            triples = torch.stack([edges[1], *edges])
            asked = as_queries(triples, num_nodes, edges.device) if edges.numel() else None
            if asked is not None:
                bound, _ = cost_bound(IndexedGraph(edges, num_nodes), data, num_layers, asked)
                cost = identity_cost(data, num_layers, triples)
                assert bound.rows >= cost.rows and bound.edges >= cost.edges
            bound, exact = cost_bound(IndexedGraph(edges, num_nodes), data, num_layers)
            cost = identity_cost(data, num_layers)
            assert exact or num_layers > 1
            assert (bound == cost) if exact else (bound.rows >= cost.rows and bound.edges >= cost.edges)


@pytest.mark.parametrize("seconds", ["-1", "nan"])
def test_an_invalid_time_limit_is_refused(files: list[str], capsys: Said, seconds: str) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["inspect", *files, "--seconds", seconds])
    assert stop.value.code == 2
    assert f"--seconds is {seconds}, expected 0 or more" in capsys.readouterr().err


def test_samples_do_not_change_the_costs() -> None:
    graph = nx.barabasi_albert_graph(300, 3, seed=0).to_directed()
    data = Data(edge_index=torch.tensor(list(graph.edges)).t(), num_nodes=300)
    costs = list(identity_costs(IndexedGraph(data.edge_index, 300), data, most_layers=4, seconds=1000))
    assert costs == [(identity_cost(data, num_layers), None) for num_layers in range(1, 5)]


def test_costs_stop_at_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
    limit = type("Memory", (), {"available": identity_cost(data, 1).bytes})
    monkeypatch.setattr("idgnn.cli.graph_statistics.psutil.virtual_memory", lambda: limit)
    costs = list(identity_costs(IndexedGraph(data.edge_index, 2), data, most_layers=6, seconds=1000))
    assert [reason is None for _, reason in costs] == [True, True, True, False, False, False]
    assert costs[3][1] == costs[5][1] and str(costs[3][1]).startswith("2 layers would take more memory")


def test_a_picture_shows_the_rows_of_the_color_and_those_that_they_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A path a - b - c - d - e: with K = 3, rows a|a and b|a; b|a reads the plain row of c.
    (tmp_path / "path.csv").write_text("a,b\nb,c\nc,d\nd,$e_1$\n")
    picture = tmp_path / "folder" / "path.svg"
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    arguments = ["inspect", "--edges", str(tmp_path / "path.csv"), "--picture", str(picture), "--node", "a"]
    main(arguments)
    drawn = picture.read_text()
    texts = re.findall(r"<text[^>]*>([^<]+)</text>", drawn)
    assert sorted(text for text in texts if len(text) < 8) == ["$e_1$", "a", "a|a", "b", "b|a", "c", "c", "d"]
    main(arguments)
    assert picture.read_text() == drawn


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_pictures_of_other_graphs(
    tmp_path: Path, files: list[str], capsys: Said, caplog: pytest.LogCaptureFixture, suffix: str
) -> None:
    picture = tmp_path / f"picture{suffix}"
    main(["inspect", *files, "--picture", str(picture), "--graph", "1", "--node", "z"])
    assert capsys.readouterr().out.endswith(f"The picture: {picture}\n")
    alone = picture.read_bytes()
    main(["inspect", *files, "--picture", str(picture), "--graph", "u", "--node", "x", "--layers", "2", "--directed"])
    assert picture.stat().st_size > 1000 and picture.read_bytes() != alone
    assert not caplog.records  # matplotlib has nothing to complain about


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--picture", "x.jpg"], "the picture is x.jpg, expected a name that ends in .png, .svg, .pdf"),
        (["--picture", "x.png", "--graph", "2"], "--graph is '2', expected a number from 0 to 1, or one of 't', 'u'"),
        (["--picture", "x.png", "--node", "x"], "--node is 'x', expected one of 'a', 'b', 'c', 'd'"),
        (["--picture", "x.png", "--layers", "0"], "num_layers is 0"),
        (["--node", "a"], "Add --picture FILE.png"),
    ],
)
def test_what_cannot_be_drawn(files: list[str], capsys: Said, arguments: list[str], sentence: str) -> None:
    assert sentence in fails(capsys, ["inspect", *files, *arguments])


def test_a_large_graph_is_drawn_only_near_the_node(tmp_path: Path, capsys: Said) -> None:
    star = "".join(f"hub,{i}\n" for i in range(400)) + "0,far\nfar,away\n"
    (tmp_path / "star.csv").write_text(star)
    arguments = ["inspect", "--edges", str(tmp_path / "star.csv"), "--picture", str(tmp_path / "star.png")]
    said = fails(capsys, [*arguments, "--node", "hub"])
    assert "would have 403 nodes on the left and 402 rows on the right, expected at most 300" in said
    main([*arguments, "--node", "away", "--layers", "2"])
    assert (tmp_path / "star.png").is_file()


def test_edges_are_one_unit_long_on_average_and_a_path_does_not_cross_itself() -> None:
    edges = [(i, i + 1) for i in range(5)]
    path = positions(range(6), [*edges, (2, 2)])
    assert np.mean([np.subtract(path[u], path[v]) @ np.subtract(path[u], path[v]) for u, v in edges]) < 1.2
    assert np.mean([np.linalg.norm(np.subtract(path[u], path[v])) for u, v in edges]) == pytest.approx(1)
    apart = [np.linalg.norm(np.subtract(path[0], path[v])) for v in range(6)]
    assert apart == sorted(apart)
    assert positions(range(6), [*edges, (2, 2)]) == path
    assert list(positions([7], [(7, 7)])) == [7]
