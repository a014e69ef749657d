"""A trained network is used again: from memory or from its folder, on other graphs."""

import csv
import json
import re
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from idgnn.graphs import load as loading
from idgnn.graphs.sources import FileSource
from idgnn.graphs.synthetic import small_world
from idgnn.identity.queries import Queries
from idgnn.models.settings import ModelSettings
from idgnn.training.callbacks import Callback
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.training.small_problems import QUICK, SMALL, TASKS, graphs_for, settings_for


def trained(task: str, folder=None, **options) -> Run:
    return train(graphs_for(task), settings_for(task), model=SMALL, training=QUICK, folder=folder, **options)


def asked(run: Run, graphs: list[Data]) -> list[torch.Tensor] | None:
    """Three pairs of every graph, for pair tasks."""
    return [torch.tensor([[0, 1, 2], [3, 3, 2]]) for _ in graphs] if run.model.level == "pair" else None


@pytest.mark.parametrize("task", TASKS)
def test_from_its_folder_a_run_predicts_the_same(task, tmp_path):
    run = trained(task, tmp_path)
    again = Run.load(tmp_path)
    others = graphs_for(task, 5, seed=9)
    pairs = asked(run, others)
    expected = run.predict(others, pairs, device="cpu")
    assert again.predict(others, pairs, device="cpu") == expected
    assert (again.objective, again.task, again.schema, again.epochs) == (run.objective, run.task, None, run.epochs)
    assert again.result == run.result and again.folder == tmp_path
    (_, ours), (_, theirs) = (each.embed(others, pairs, device="cpu") for each in (run, again))
    assert torch.equal(ours, theirs)
    rows = {"node": sum(data.num_nodes for data in others), "pair": 15, "graph": 5}[run.model.level]
    assert all(len(column) == rows for column in expected.values())


def test_predictions_are_in_float32_also_after_a_coarser_training(tmp_path):
    """The table of the run is in bf16, with 8 bits; what is predicted agrees with double precision."""
    task = "node-regression"
    coarse = replace(QUICK, precision="bf16")
    run = train(graphs_for(task), settings_for(task), model=SMALL, training=coarse, folder=tmp_path)
    graphs = graphs_for(task)
    found = run.predict(graphs, device="cpu")
    model, first = run.model.double(), graphs[0]
    exact = run.objective.read(model.answer(model.encoder(first.x.double(), first.edge_index)))["value"]
    value = torch.tensor(found["value"], dtype=torch.double)
    torch.testing.assert_close(value[: first.num_nodes], exact.detach().double(), rtol=0, atol=1e-5)
    with (tmp_path / "predictions.csv").open() as file:
        written = {(row["graph"], row["node"]): float(row["value"]) for row in csv.DictReader(file)}
    names = [(str(graph), str(node)) for graph, node in zip(found["graph"], found["node"], strict=True)]
    same = dict(zip(names, value.tolist(), strict=True))
    away = max(abs(written[name] - same[name]) for name in written)
    assert 1e-5 < away < 0.1


def test_a_run_is_ready_for_use(tmp_path):
    """Its network is in evaluation mode, wherever it comes from."""
    run = trained("node-clustering", tmp_path)
    assert not run.model.training
    assert not Run.load(tmp_path).model.training


@pytest.mark.parametrize("task", TASKS)
def test_the_batch_size_changes_no_prediction(task):
    run = trained(task)
    others = graphs_for(task, 7, seed=9)
    one, all_ = (run.predict(others, asked(run, others), batch_size=size, device="cpu") for size in (2, 100))
    for name in one:
        if name == "class":
            continue
        close = torch.allclose(torch.tensor(one[name]).double(), torch.tensor(all_[name]).double(), atol=1e-5)
        assert close, name


@pytest.mark.parametrize("task", TASKS)
def test_memory_changes_no_prediction(task, monkeypatch):
    run, chunks, some = trained(task), [], Queries.slice
    monkeypatch.setattr(Queries, "slice", lambda *chunk: chunks.append(chunk) or some(*chunk))
    others = graphs_for(task, 6, seed=9)
    pairs = asked(run, others)
    expected = run.predict(others, pairs, device="cpu")
    assert len(chunks) == 1
    with pytest.raises(ValueError, match="memory is 1000") as refused:
        run.embed(others, pairs, memory=1000, device="cpu")
    least = re.search(r"expected at least ([\d.]+) KiB", str(refused.value))
    found = run.predict(others, pairs, memory=int(2.5 * 1024 * float(least[1])), device="cpu")
    assert len(chunks) > 2, "it fits as a whole"
    for name in expected:
        if name != "class":
            assert found[name] == pytest.approx(expected[name], abs=1e-5)


def test_the_written_table_equals_the_predictions_of_the_run(tmp_path):
    """The graphs that were held out, predicted again."""
    run = trained("graph-classification", tmp_path)
    lines = [line.split(",") for line in (tmp_path / "predictions.csv").read_text().splitlines()]
    assert lines[0] == ["part", "graph", "label", "class", "probability_1"]
    graphs = graphs_for("graph-classification")
    found = run.predict([graphs[int(line[1])] for line in lines[1:]], device="cpu")
    assert torch.allclose(
        torch.tensor([float(line[4]) for line in lines[1:]]), torch.tensor(found["probability_1"]), atol=1e-6
    )
    assert [line[2] for line in lines[1:]] == [str(int(graphs[int(line[1])].y)) for line in lines[1:]]


def test_embeddings_are_those_of_the_encoder():
    run = trained("graph-classification")
    (graph,) = graphs_for("graph-classification", 1, seed=9)
    table, out = run.embed([graph], device="cpu")
    with torch.no_grad():
        assert torch.allclose(out, run.model.encoder(graph.x, graph.edge_index), atol=1e-6)
    assert table == {"graph": [0] * graph.num_nodes, "node": list(range(graph.num_nodes))}


def test_batches_are_halved_where_memory_is_short():
    """Memory grows with the graphs of a batch: all at once do not fit, one by one they do."""
    run, graphs = trained("node-clustering"), graphs_for("node-clustering", 40, seed=9)
    expected = run.predict(graphs, device="cpu")
    with pytest.raises(ValueError, match="memory is"):
        run.embed(graphs, memory="60KiB", device="cpu")
    found = run.predict(graphs, memory="60KiB", device="cpu")
    for name in expected:
        if name != "class":
            assert found[name] == pytest.approx(expected[name], abs=1e-5)


def test_pairs_are_required_for_pair_tasks_only():
    graphs = graphs_for("shortest-path", 2)
    with pytest.raises(ValueError, match=r"trained for shortest-path, which predicts pairs .* --pairs FILE .* pairs="):
        trained("shortest-path").predict(graphs)
    with pytest.raises(ValueError, match="trained for node-clustering, which is not about pairs"):
        trained("node-clustering").predict(graphs, [torch.tensor([[0], [1]])] * 2)


def test_pairs_are_tensors_of_pairs():
    run, (graph,) = trained("shortest-path"), graphs_for("shortest-path", 1)
    for wrong in (torch.tensor([0, 1]), [(0, 1)], None):
        with pytest.raises(
            ValueError, match=r"pairs holds .*, expected for each graph a tensor of shape \[2, num_pairs"
        ):
            run.predict(graph, [wrong], device="cpu")
    with pytest.raises(ValueError, match="a list of one tensor"):
        run.predict(graph, torch.tensor([[0, 1], [2, 3]]), device="cpu")
    asked = [torch.tensor([[0, 1], [2, 3]])]
    assert run.predict(graph, [asked[0].numpy()], device="cpu") == run.predict(graph, asked, device="cpu")
    assert run.predict(graph, [torch.empty(2, 0)], device="cpu")["source"] == []


def test_paths_lead_from_source_to_target(tmp_path):
    """On a directed path 0 -> 1 -> ... -> 5, with known labels, where colors follow the edges."""
    path = Data(edge_index=torch.stack([torch.arange(5), torch.arange(1, 6)]), num_nodes=6)
    run = train([path] * 8, "shortest-path", model=SMALL, training=QUICK, folder=tmp_path)
    header, *lines = [line.split(",") for line in (tmp_path / "predictions.csv").read_text().splitlines()]
    table = [dict(zip(header, line, strict=True)) for line in lines]
    assert table
    assert all(int(row["label"][0]) == min(int(row["target"]) - int(row["source"]), 4) for row in table)
    found = run.predict([path], [torch.tensor([[5], [2]])], device="cpu")  # 5 is read, 2 is colored
    assert (found["source"], found["target"]) == ([2], [5])


def test_edge_weights_are_as_in_training():
    graphs = graphs_for("node-clustering")
    weighted = [Data.from_dict({**each.to_dict(), "edge_weight": torch.rand(each.num_edges)}) for each in graphs]
    for ours, others, words in (
        (graphs, weighted, "with edge weights, .* without"),
        (weighted, graphs, "without edge"),
    ):
        run = train(ours, "node-clustering", model=SMALL, training=QUICK)
        run.predict(ours[:2], device="cpu")
        with pytest.raises(ValueError, match=words):
            run.predict(others[:2], device="cpu")


@pytest.mark.filterwarnings("ignore::idgnn.training.run_folder.ChangedRecordWarning")
def test_a_folder_that_is_not_as_it_was_written_is_refused(tmp_path):
    trained("node-clustering", tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    for part, wrong in (("dataset", None), ("dataset", {"schema": {"x": 1}}), ("task", {"objective": {}})):
        (tmp_path / "run.json").write_text(json.dumps(record | {part: wrong}))
        with pytest.raises(ValueError, match="is incomplete or has another format"):
            Run.load(tmp_path)


def test_pairs_are_required_for_each_graph():
    with pytest.raises(ValueError, match="given for 1 graphs, but there are 2"):
        trained("shortest-path").predict(graphs_for("shortest-path", 2), [torch.tensor([[0], [1]])], device="cpu")


def test_batches_of_no_graphs_are_refused():
    run, calls = trained("node-clustering"), []

    def give_up(*_):
        calls.append(1)
        assert len(calls) < 10

    run.model.register_forward_pre_hook(give_up)
    with pytest.raises(ValueError, match="batch_size"):
        run.predict(graphs_for("node-clustering", 2), batch_size=0, device="cpu")


def test_a_graph_may_have_no_pairs():
    run = trained("shortest-path")
    graphs = graphs_for("shortest-path", 3, seed=9)
    pairs = asked(run, graphs)
    expected = run.predict(graphs, pairs, device="cpu")
    pairs[1] = pairs[1][:, :0]
    for size in (1, 2, 3):
        found = run.predict(graphs, pairs, batch_size=size, device="cpu")
        assert found["graph"] == [0, 0, 0, 2, 2, 2]
        kept = [*expected["probability_0"][:3], *expected["probability_0"][6:]]
        assert torch.allclose(torch.tensor(found["probability_0"]), torch.tensor(kept), atol=1e-5)


def test_graphs_with_other_features_are_refused():
    run = trained("node-clustering")
    graph = Data(x=torch.ones(3, 5), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="have 5 node features, but the network was trained with 2"):
        run.predict([graph], device="cpu")
    with pytest.raises(ValueError, match="there are no graphs"):
        run.predict([], device="cpu")
    with pytest.raises(ValueError, match="the graphs are None, expected"):
        run.predict(None, device="cpu")


@pytest.mark.filterwarnings("ignore::idgnn.training.run_folder.ChangedRecordWarning")
def test_an_unfinished_run_is_refused(tmp_path):
    trained("node-clustering", tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(record | {"result": None}))
    with pytest.raises(ValueError, match=r"is not finished. Continue it: idgnn train --resume"):
        Run.load(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no run.json in .* expected the folder of a run"):
        Run.load(tmp_path)
    trained("node-clustering", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ValueError, match=r"there is no model.safetensors in"):
        Run.load(tmp_path)


@pytest.fixture
def files(tmp_path):
    """Two clubs of friends, with the names of people and the kind of each."""
    people = [f"p{i}" for i in range(24)]
    edges = [(i, (i + step) % 24) for i in range(24) for step in (1, 2)]
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{people[a]},{people[b]}\n" for a, b in edges))
    kinds = ["cat", "dog", "cow"]
    (tmp_path / "nodes.csv").write_text("id,kind,age\n" + "".join(f"p{i},{kinds[i % 3]},{i}\n" for i in range(24)))
    return FileSource(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="kind")


def test_files_keep_their_names_through_a_run(files, tmp_path):
    folder = tmp_path / "run"
    run = train(files, "node-classification", model=ModelSettings(width=8), training=QUICK, folder=folder)
    again = Run.load(folder)
    assert again.schema == run.schema and set(again.classes) == {"cat", "dog", "cow"}
    rows = [line.split(",") for line in (folder / "predictions.csv").read_text().splitlines()]
    header = rows[0]
    assert {f"probability_{kind}" for kind in ("cat", "dog", "cow")} <= set(header)
    for row in rows[1:]:
        named = dict(zip(header, row, strict=True))
        assert named["label"] == ["cat", "dog", "cow"][int(named["node"].removeprefix("p")) % 3]
        assert named["class"] in ("cat", "dog", "cow")


def test_files_that_have_changed_are_refused(files, tmp_path):
    folder = tmp_path / "run"

    class Stopping(Callback):
        def epoch(self, epoch):
            raise KeyboardInterrupt

    options = {"model": ModelSettings(width=8), "training": QUICK, "folder": folder}
    with pytest.raises(KeyboardInterrupt):
        train(files, "node-classification", callbacks=[Stopping()], **options)
    original = files.edges.read_text()
    files.edges.write_text(original + "p0,p12\n")
    with pytest.raises(ValueError, match="the data have changed"):
        train(files, "node-classification", resume=True, **options)
    files.edges.write_text(original)
    assert len(train(files, "node-classification", resume=True, **options).epochs) == 3


def test_a_dataset_by_name(tmp_path, monkeypatch):
    """Loaded and resumed by its name."""
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(loading._GENERATORS, "SmallWorld", lambda seed: small_world(8, 12, seed))
    run = train("SmallWorld", settings_for("node-clustering"), model=SMALL, training=QUICK, folder=tmp_path / "run")
    assert json.loads((tmp_path / "run" / "run.json").read_text())["settings"]["data"] == "SmallWorld"
    assert run.result["last"]["epoch"] == 3
    with pytest.raises(ValueError, match="NoSuchDataset"):
        train("NoSuchDataset", "node-clustering")
