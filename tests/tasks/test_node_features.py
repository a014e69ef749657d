"""What nodes without features are given: compared with networkx, kept with the run, and never from predicted edges."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.sources import FileSource
from idgnn.models.idgnn import IDGNN
from idgnn.models.settings import ModelSettings
from idgnn.tasks import node_features
from idgnn.tasks.node_features import choose_features
from idgnn.tasks.problem import make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.graphs.files.written import write

QUICK = {"model": ModelSettings(width=8, layers=2), "training": TrainOptions(epochs=2, device="cpu")}


def data_of(graph: nx.Graph, y: bool = True) -> Data:
    edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.long).view(-1, 2).t()
    labels = {"y": torch.arange(len(graph)) % 2} if y else {}
    return Data(edge_index=edges, num_nodes=len(graph), **labels)


def awkward() -> nx.Graph:
    """A hub, a triangle, a self-loop, and isolated nodes."""
    graph = nx.star_graph(12)
    graph.add_edges_from([(1, 2), (3, 3)])
    graph.add_nodes_from(range(13, 20))
    return graph


def x_of(kind: str, graph: nx.Graph, name: str = "node-classification") -> torch.Tensor:
    return make_problem(Dataset("python", [data_of(graph)]), TaskSettings(name=name, features=kind)).train.x


def test_they_are_what_networkx_counts():
    graph = awkward()
    adjacency = nx.to_numpy_array(graph, nodelist=range(len(graph)))
    assert torch.equal(x_of("constant", graph), torch.ones(20, 1))
    assert torch.equal(x_of("onehot", graph), torch.eye(20))
    assert torch.equal(x_of("embedding", graph)[:, 0], torch.arange(20.0))
    degrees = np.log1p(np.stack([adjacency.sum(0), adjacency.sum(1)], axis=1))
    np.testing.assert_allclose(x_of("degree", graph), degrees, rtol=1e-6)
    walks = np.stack([np.diag(np.linalg.matrix_power(adjacency, k)) for k in range(1, 11)], axis=1)
    np.testing.assert_allclose(x_of("counts", graph), np.log1p(walks), rtol=1e-6)


def test_directed_edges_have_two_degrees():
    data = Data(edge_index=torch.tensor([[0, 0, 1], [1, 2, 2]]), y=torch.arange(3.0), num_nodes=3)
    settings = TaskSettings(name="node-regression", features="degree", valid=0.4)
    x = make_problem(Dataset("python", [data]), settings).train.x
    assert torch.equal(x, torch.tensor([[0.0, 2], [1, 1], [2, 0]]).log1p())  # in, out


@pytest.mark.parametrize("kind", ["degree", "counts"])
def test_predicted_links_are_not_in_them(kind):
    """Every part has the features of its own messages: the graph with all edges would give others."""
    graph = nx.gnp_random_graph(30, 0.3, seed=0)
    problem = make_problem(Dataset("python", [data_of(graph)]), TaskSettings(name="link-prediction", features=kind))
    parts = {"train": problem.train, **problem.held_out}
    whole = problem.features.of(replace(problem.train, edge_index=data_of(graph).edge_index))
    for part in parts.values():
        assert torch.equal(part.x, problem.features.of(part)) and not torch.equal(part.x, whole)


def test_auto_says_what_it_took(monkeypatch):
    graph, many = [data_of(awkward())], [data_of(nx.path_graph(4)) for _ in range(3)]
    found = {
        name: choose_features(TaskSettings(name=name, features="auto"), Dataset("python", graphs))
        for name, graphs in (
            ("node-classification", graph),
            ("link-prediction", graph),
            ("graph-classification", many),
            ("node-clustering", many),
        )
    }
    assert [each.kind for each in found.values()] == ["onehot", "degree", "degree", "constant"]
    assert all(each.reason for each in found.values())
    assert "knows these nodes only; --features degree makes" in found["node-classification"].reason
    monkeypatch.setattr(node_features, "MOST_ONE_HOT", 19)
    assert (
        choose_features(TaskSettings(name="node-classification", features="auto"), Dataset("python", graph)).kind
        == "embedding"
    )
    with pytest.raises(ValueError, match=r"has 20 nodes, and at most 19 can be coded so. Use embedding."):
        choose_features(TaskSettings(name="node-classification", features="onehot"), Dataset("python", graph))
    graph[0].x = torch.rand(20, 3)
    assert (
        choose_features(TaskSettings(name="node-classification", features="auto"), Dataset("python", graph)).kind
        == "constant"
    )


def test_what_does_not_fit_is_refused():
    many = [data_of(nx.path_graph(4)) for _ in range(3)]
    with pytest.raises(ValueError, match=r"can learn if there is one graph, but there are 3. Use degree or counts"):
        choose_features(TaskSettings(name="node-classification", features="onehot"), Dataset("python", many))
    given = [Data(x=torch.rand(4, 3), edge_index=many[0].edge_index)]
    with pytest.raises(ValueError, match="for graphs without features, but these have 3 for each node"):
        choose_features(TaskSettings(name="node-classification", features="degree"), Dataset("python", given))
    with pytest.raises(ValueError, match="features is 'random', expected one of constant, degree"):
        TaskSettings(name="node-classification", features="random")
    with pytest.raises(ValueError, match="num_embeddings is given and in_channels is 3, expected 1"):
        IDGNN(3, 8, 2, num_embeddings=10)


@pytest.mark.parametrize("kind", ["degree", "onehot", "embedding", "counts"])
def test_a_run_keeps_them(tmp_path, kind):
    data, other = data_of(awkward()), data_of(nx.cycle_graph(20))
    settings = TaskSettings(name="node-classification", features=kind)
    run = train(data, settings, **QUICK, folder=tmp_path / "run")
    again = Run.load(tmp_path / "run")
    assert again.features == run.features
    table = again.predict(data)
    assert table == run.predict(data)
    held_out = make_problem(Dataset("python", [data]), settings).held_out["valid"]
    assert len(table["node"]) == 20 and held_out.x.size(0) == 20
    if kind in ("onehot", "embedding"):
        with pytest.raises(ValueError, match=f"trained with --features {kind}: it has weights.*for the 20 nodes"):
            again.predict(other)
    else:
        assert len(again.predict([data, other])["node"]) == 40


@pytest.mark.parametrize("identity", ["full", "fast", "none"])
def test_learned_vectors_are_a_linear_layer_on_one_hot_codes(identity):
    """With the rows of the linear layer as vectors, both networks are one function, gradients included."""
    data = data_of(awkward())
    learned = IDGNN(1, 8, 3, identity=identity, num_embeddings=20, cycle_length=4, cycle_scale="log")
    onehot = IDGNN(20, 8, 3, identity=identity, cycle_length=4, cycle_scale="log")
    weights = learned.state_dict()
    vectors, linear = weights.pop("vectors.weight"), weights["lin_in.weight"]
    # A code of node v adds the vector of v, and the constant 1 adds the first column.
    weights["lin_in.weight"] = torch.cat([vectors.t() + linear[:, :1], linear[:, 1:]], dim=1)
    onehot.load_state_dict(weights)
    inputs = {"learned": torch.arange(20.0).unsqueeze(1), "onehot": torch.eye(20)}
    found = {}
    for name, model in (("learned", learned), ("onehot", onehot)):
        model.train()
        out = model(inputs[name], data.edge_index)
        out.square().sum().backward()
        found[name] = out
    torch.testing.assert_close(found["learned"], found["onehot"], atol=1e-5, rtol=1e-4)
    gradient, theirs = learned.vectors.weight.grad, onehot.lin_in.weight.grad[:, :20].t()
    torch.testing.assert_close(gradient, theirs, atol=1e-5, rtol=1e-3)
    learned.eval()
    embedded = learned.embed(Data(x=inputs["learned"], edge_index=data.edge_index))
    torch.testing.assert_close(embedded, learned(inputs["learned"], data.edge_index), atol=1e-5, rtol=1e-4)


def test_a_column_that_is_one_everywhere_is_a_feature(tmp_path):
    """A column with a single category is coded by 1 for every node: it was taken for no feature at all."""
    rows = "".join(f"n{i},x,{i / 2}\n" for i in range(10))
    nodes = write(tmp_path / "n.csv", "id,kind,y\n" + rows)
    edges = write(tmp_path / "e.csv", "source,target\n" + "".join(f"n{i},n{(i + 1) % 10}\n" for i in range(10)))
    source = FileSource(edges, nodes, label="y")
    settings = TaskSettings(name="node-regression", features="auto")
    run = train(source, settings, **QUICK)
    assert run.features.kind == "constant" and len(run.predict(source)["node"]) == 10
    ignored = train(FileSource(edges, nodes, label="y", ignore=("kind",)), settings, **QUICK)
    assert ignored.features.kind == "onehot"


@pytest.mark.parametrize("kind", ["onehot", "embedding"])
def test_nodes_are_known_by_their_names_in_any_order(tmp_path, kind, monkeypatch):
    rng, names = np.random.default_rng(0), [f"node {(7 * v) % 20}" for v in range(20)]  # not in alphabetical order
    edges = [f"{names[a]},{names[b]}" for a, b in nx.connected_caveman_graph(5, 4).edges]

    def written(folder: str, nodes: list[str], edges: list[str]) -> FileSource:
        text = "".join(f"{node},{names.index(node) // 4 % 2 if node in names else 0}\n" for node in nodes)
        node_file = write(tmp_path / folder / "nodes.csv", "id,y\n" + text)
        edge_file = write(tmp_path / folder / "edges.csv", "source,target\n" + "\n".join(edges))
        return FileSource(edge_file, node_file, label="y")

    def shuffled(given: list[str]) -> list[str]:
        return [given[i] for i in rng.permutation(len(given))]

    ours = written("ours", names, edges)
    run = train(ours, TaskSettings(name="node-classification", features=kind), **QUICK, folder=tmp_path / "run")
    again = Run.load(tmp_path / "run")
    expected, found = again.predict(ours), again.predict(written("shuffled", shuffled(names), shuffled(edges)))
    assert found["node"] != expected["node"]
    by_name = dict(zip(found["node"], found["probability_1"], strict=True))
    assert [by_name[node] for node in expected["node"]] == pytest.approx(expected["probability_1"], abs=1e-6)
    assert len(set(expected["probability_1"])) > 10  # nodes have weights of their own
    few = [edge for edge in edges if "node 3" not in edge.split(",")]
    fewer = written("fewer", [node for node in names if node != "node 3"], few)
    with pytest.raises(
        ValueError, match=f"features {kind}.* a graph without 1 of them \\('node 3' is missing\\). Give the"
    ):
        again.predict(fewer)
    other = written("other names", [*names, "node x"], [*edges, "node x,node 3"])
    with pytest.raises(ValueError, match=r"was given a graph with 1 that it does not know \('node x' is new\)"):
        again.predict(other)
    monkeypatch.setattr(node_features, "MOST_ONE_HOT", 19)
    if kind == "embedding":  # of more nodes the names are not kept
        many = train(ours, TaskSettings(name="node-classification", features=kind), **QUICK)
        with pytest.raises(ValueError, match="was given 19 other nodes, or nodes without names in another order"):
            many.predict(fewer)
    assert run.predict(written("other edges", names, few))["node"] == expected["node"]


def test_nodes_without_names_of_their_own_are_known_by_their_edges():
    data, settings = data_of(awkward()), TaskSettings(name="node-classification", features="onehot")
    data.node_name = ["same"] * 20
    run = train(data, settings, **QUICK)
    assert len(run.predict(data)["node"]) == 20
    with pytest.raises(ValueError, match="other nodes, or nodes without names in another order"):
        run.predict(Data(edge_index=19 - data.edge_index, num_nodes=20, node_name=data.node_name))
