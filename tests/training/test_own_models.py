"""Models of the user's own, wrapped by `identity_aware`, are trained, saved, loaded and resumed as an IDGNN is."""

import copy
import json
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, GCNConv, SAGEConv

from idgnn import IDGNN, identity_aware
from idgnn.cli.train import Train
from idgnn.graphs.sources import FileSource
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.settings import ModelSettings
from idgnn.training.callbacks import Callback
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.training.small_problems import QUICK, TASKS, graphs_for, settings_for
from tests.training.test_roots import graph_for
from tests.training.two_processes import in_two


class MyNet(nn.Module):
    """Two layers with a BatchNorm, as in the tutorials."""

    def __init__(self, channels: int = 6) -> None:
        super().__init__()
        self.first, self.norm, self.last = SAGEConv(2, 8), nn.BatchNorm1d(8), SAGEConv(8, channels)

    def forward(self, x, edge_index):
        return self.last(self.norm(self.first(x, edge_index)).relu(), edge_index)


class Weighted(nn.Module):
    """Reads edge weights."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(2, 4)

    def forward(self, x, edge_index, edge_weight=None):
        return self.conv(x, edge_index, edge_weight)


class Coded(nn.Module):
    """Reads categories of nodes, by their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.code, self.conv = nn.Embedding(5, 4), GCNConv(4, 4)

    def forward(self, x, edge_index):
        return self.conv(self.code(x.squeeze(-1)), edge_index)


class Tied(nn.Module):
    """The same layer twice, under two names."""

    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Linear(2, 4)
        self.first = GCNConv(4, 4)
        self.second = GCNConv(4, 4)
        self.second.lin.weight = self.first.lin.weight

    def forward(self, x, edge_index):
        return self.second(self.first(self.start(x), edge_index).relu(), edge_index)


class Two(MyNet):
    """Returns more than embeddings."""

    def forward(self, x, edge_index):
        h = super().forward(x, edge_index)
        return h, h


MODELS = {
    "GIN": lambda: GIN(2, 8, num_layers=2),
    "GAT": lambda: GAT(2, 8, num_layers=2, out_channels=5),
    "MyNet": MyNet,
}


def aware(name: str, seed: int = 0):
    """Wrapped, with random color maps, since the color changes nothing at first."""
    torch.manual_seed(seed)
    model = identity_aware(MODELS[name]())
    for weight in model.colors.parameters():
        nn.init.normal_(weight, std=0.3)
    return model


def fitted(task: str, model, folder=None, graphs=None, **options) -> Run:
    asked = graphs_for(task) if graphs is None else graphs
    return train(asked, settings_for(task), model=model, training=replace(QUICK, **options), folder=folder)


def pairs_for(task: str, graphs: list[Data]) -> list[torch.Tensor] | None:
    about_pairs = task in ("link-prediction", "shortest-path")
    return [torch.tensor([[0, 1, 2], [3, 3, 2]]) for _ in graphs] if about_pairs else None


class StopAfterOne(Callback):
    def epoch(self, epoch) -> None:
        raise KeyboardInterrupt


@pytest.mark.parametrize("task", ["node-regression", "shortest-path", "graph-classification"])
@pytest.mark.parametrize("name", MODELS)
def test_the_loss_goes_down(name, task):
    epochs = fitted(task, aware(name), epochs=15, schedule="constant").epochs
    assert epochs[-1].loss < 0.9 * epochs[0].loss


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", MODELS)
def test_from_its_folder_a_run_predicts_the_same(name, task, tmp_path):
    run = fitted(task, aware(name), tmp_path)
    again = Run.load(tmp_path, model=identity_aware(MODELS[name]()))
    others = graphs_for(task, 5, seed=9)
    pairs = pairs_for(task, others)
    expected = run.predict(others, pairs, device="cpu")
    assert again.predict(others, pairs, device="cpu") == expected
    assert torch.equal(run.embed(others, pairs, device="cpu")[1], again.embed(others, pairs, device="cpu")[1])
    assert not again.model.training


@pytest.mark.parametrize("task", ["node-clustering", "shortest-path"])
def test_predictions_are_the_head_on_what_the_trained_model_returns(task):
    """The model itself is the oracle: called in plain PyTorch, graph by graph."""
    run = fitted(task, aware("MyNet"))
    graphs = graphs_for(task, 3, seed=9)
    pairs = pairs_for(task, graphs)
    table, found = run.embed(graphs, pairs, device="cpu")
    encoder = run.model.encoder.eval()
    with torch.no_grad():
        expected = torch.cat(
            [
                encoder(graph.x, graph.edge_index, queries=None if pairs is None else pairs[i])
                for i, graph in enumerate(graphs)
            ]
        )
    assert torch.allclose(found, expected, atol=1e-6)
    probability = run.model.head(expected).softmax(-1).t()
    columns = [column for name, column in run.predict(graphs, pairs, device="cpu").items() if "probability" in name]
    assert torch.allclose(torch.tensor(columns), probability, atol=1e-5)
    assert len(table["graph"]) == expected.size(0)


@pytest.mark.parametrize("task", ["node-regression", "link-prediction", "shortest-path"])
def test_batches_of_all_queries_train_as_batches_of_all_graphs(task):
    """Without BatchNorm the rows of a batch do not change the answers, so both ways take the same steps."""
    whole = fitted(task, aware("GIN"), batch_size=100)
    by_query = fitted(task, aware("GIN"), query_batch_size=10_000)
    assert [epoch.steps for epoch in by_query.epochs] == [epoch.steps for epoch in whole.epochs] == [1, 1, 1]
    assert [each.loss for each in by_query.epochs] == pytest.approx([each.loss for each in whole.epochs], abs=1e-5)


def test_a_single_graph_is_prepared_once(monkeypatch):
    prepared, prepare = [], IdentityAwareModel.prepare

    def counted(model, x, edge_index, **options):
        prepared.append(edge_index)
        return prepare(model, x, edge_index, **options)

    monkeypatch.setattr(IdentityAwareModel, "prepare", counted)
    model, graph = aware("GIN"), graph_for("node-regression")
    whole = train(graph, "node-regression", model=model, training=QUICK)
    assert len(prepared) == 2  # for training and for validation, not in each epoch
    by_query = train(graph, "node-regression", model=model, training=replace(QUICK, query_batch_size=60))
    assert [each.loss for each in by_query.epochs] == pytest.approx([each.loss for each in whole.epochs], abs=1e-5)


def test_batches_of_queries_are_prepared_by_workers_too():
    runs = [fitted("node-regression", aware("GIN"), query_batch_size=20, workers=workers) for workers in (0, 1)]
    assert [each.loss for each in runs[0].epochs] == [each.loss for each in runs[1].epochs]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("options", [{"batch_size": 6}, {"query_batch_size": 30}])
def test_two_processes_take_the_steps_of_one(options, tmp_path):
    def fit(processes=None):
        run = fitted("node-regression", aware("GIN", seed=0 if processes is None else processes.rank), **options)
        return [epoch.loss for epoch in run.epochs], run.model.state_dict()

    losses, weights = fit()
    for found, theirs in in_two(fit, tmp_path):
        assert found == pytest.approx(losses, abs=1e-4)
        assert all(torch.allclose(value, weights[name], atol=1e-3) for name, value in theirs.items())


@pytest.mark.parametrize("options", [{}, {"query_batch_size": 20}, {"keep": "best"}])
def test_a_run_that_was_stopped_ends_as_if_it_had_not_been(options, tmp_path):
    task, training = "node-clustering", replace(QUICK, **options)
    whole = fitted(task, aware("MyNet"), tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        train(
            graphs_for(task),
            settings_for(task),
            model=aware("MyNet"),
            training=training,
            folder=tmp_path / "stopped",
            callbacks=[StopAfterOne()],
        )
    resumed = train(
        graphs_for(task),
        settings_for(task),
        model=aware("MyNet", seed=5),  # its weights do not matter: they come from the checkpoint
        training=training,
        folder=tmp_path / "stopped",
        resume=True,
    )
    assert [each.loss for each in resumed.epochs] == [each.loss for each in whole.epochs]
    expected = whole.model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in resumed.model.state_dict().items())


def test_a_run_of_another_network_is_not_resumed(tmp_path):
    task, options = "node-clustering", {"training": QUICK, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        train(graphs_for(task), task, model=aware("GIN"), callbacks=[StopAfterOne()], **options)
    for other in (aware("GAT"), ModelSettings(width=8)):
        with pytest.raises(ValueError, match="has other settings"):
            train(graphs_for(task), task, model=other, resume=True, **options)
    wider = identity_aware(GIN(2, 16, num_layers=2))
    with pytest.raises(ValueError, match="is a checkpoint of another network"):
        train(graphs_for(task), task, model=wider, resume=True, **options)
    with pytest.raises(
        ValueError, match=r"trains GIN, a model of your own\. Resume it in Python: .*identity_aware\(GIN"
    ):
        Train(resume=tmp_path)()


def test_a_run_is_not_resumed_with_queries_that_are_read_in_another_way(tmp_path):
    task, options = "node-clustering", {"training": QUICK, "folder": tmp_path}
    with pytest.raises(KeyboardInterrupt):
        mean = identity_aware(MyNet(), colors=2, pool="mean")
        train(graphs_for(task), task, model=mean, callbacks=[StopAfterOne()], **options)
    with pytest.raises(ValueError, match="has other settings"):
        largest = identity_aware(MyNet(), colors=2, pool="max")
        train(graphs_for(task), task, model=largest, resume=True, **options)
    again = identity_aware(MyNet(), colors=2, pool="mean")
    assert train(graphs_for(task), task, model=again, resume=True, **options).epochs[-1].epoch == QUICK.epochs


@pytest.mark.parametrize("directed", [False, True])
def test_a_model_that_does_not_see_the_direction_of_pairs_is_warned_of(directed):
    pairs = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    graphs = [
        Data(graph.x, graph.edge_index, edge_label_index=pairs, edge_label=torch.tensor([0, 1, 0, 1]))
        for graph in graphs_for("node-clustering")
    ]
    model = identity_aware(MyNet(), colors=2, directed=directed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted("pair-classification", model, graphs=graphs)
    assert any("wrap it with directed=True" in str(each.message) for each in caught) != directed


def test_the_given_model_is_not_changed_and_its_weights_are_the_start():
    model = aware("MyNet")
    before = copy.deepcopy(model.state_dict())
    run = fitted("node-regression", model)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    again, other = fitted("node-regression", model), fitted("node-regression", aware("MyNet", seed=1))
    assert [each.loss for each in again.epochs] == [each.loss for each in run.epochs]
    assert other.epochs[0].loss != run.epochs[0].loss


def test_the_folder_says_whose_network_it_is(tmp_path):
    run = fitted("node-clustering", aware("MyNet"), tmp_path)
    settings = json.loads((tmp_path / "run.json").read_text())["settings"]
    assert (settings["own_network"], settings["model"]) == ("MyNet", None)
    assert RunSettings.from_dict(settings).own_network == "MyNet"
    written = json.loads((tmp_path / "model.json").read_text())["settings"]["encoder"]
    assert written == {"own_network": "MyNet", "in_channels": 2, "hidden_channels": 6, "reading": ""}
    assert run.result["width"] == 6


def test_it_is_not_loaded_into_a_model_that_reads_queries_in_another_way(tmp_path):
    """The weights are those of any pool and any second nodes."""
    given = {"colors": 2, "pool": "mean", "second": "ball", "radius": 2}
    run = fitted("node-clustering", identity_aware(MODELS["MyNet"](), **given), tmp_path)
    graphs = graphs_for("node-clustering", 3, seed=9)
    again = Run.load(tmp_path, model=identity_aware(MODELS["MyNet"](), **given))
    assert again.predict(graphs, device="cpu") == run.predict(graphs, device="cpu")
    run.model.encoder.save(tmp_path / "weights.safetensors")
    said = r"saved with pool='mean', second='ball', radius=2, and the model has "
    for other, now in (({"pool": "sum"}, "pool='sum', second='ball', radius=2"), ({"radius": 3}, ".*radius=3")):
        model = identity_aware(MODELS["MyNet"](), **given | other)
        with pytest.raises(ValueError, match=said + now):
            Run.load(tmp_path, model=model)
        model(graphs[0].x, graphs[0].edge_index)
        before = copy.deepcopy(model.state_dict())
        with pytest.raises(ValueError, match=said + now):
            model.load(tmp_path / "weights.safetensors")
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    one = aware("MyNet")
    with pytest.raises(ValueError, match=r"saved with pool='mean', .*the model has one color"):
        one.load(tmp_path / "weights.safetensors")


def test_its_code_is_not_in_the_folder(tmp_path):
    fitted("node-clustering", aware("MyNet"), tmp_path)
    with pytest.raises(
        ValueError, match=r"is MyNet, a model of your own, .* Run\.load\(folder, model=idgnn\.identity_aware\(MyNet\("
    ):
        Run.load(tmp_path)
    with pytest.raises(ValueError, match=r"model is GIN, but the network in .* is MyNet\. Pass that"):
        Run.load(tmp_path, model=aware("GIN"))
    with pytest.raises(ValueError, match=r"model\.safetensors does not hold the weights of this model"):
        Run.load(tmp_path, model=identity_aware(MyNet(channels=7)))
    with pytest.raises(
        ValueError, match=r"model is MyNet, a plain module\. Wrap it: model=idgnn\.identity_aware\(MyNet"
    ):
        Run.load(tmp_path, model=MyNet())


def test_a_run_of_settings_needs_no_model(tmp_path):
    fitted("node-clustering", ModelSettings(width=8, layers=2), tmp_path)
    with pytest.raises(ValueError, match=r"model is GIN, but .* is an IDGNN, which is made from its settings\. Leave"):
        Run.load(tmp_path, model=aware("GIN"))


def test_edge_weights_are_read_by_models_that_take_them():
    graphs = graphs_for("node-regression")
    for graph in graphs:
        graph.edge_weight = torch.ones(graph.num_edges)
    model = identity_aware(Weighted())
    plain = fitted("node-regression", model, graphs=graphs)
    for graph in graphs:
        graph.edge_weight = torch.rand(graph.num_edges)
    for options in ({}, {"query_batch_size": 20}):
        assert fitted("node-regression", model, graphs=graphs, **options).epochs[0].loss != plain.epochs[0].loss
    with pytest.raises(ValueError, match="without edge weights, but the network was trained with them"):
        fitted("node-regression", model, graphs=graphs).predict(graphs_for("node-regression", 2), device="cpu")


@pytest.mark.parametrize("options", [{}, {"query_batch_size": 20}])
def test_categories_stay_integers(options, tmp_path):
    graphs = graphs_for("node-regression")
    for graph in graphs:
        graph.x = torch.arange(graph.num_nodes).view(-1, 1) % 5
        graph.y = graph.x.flatten().float()
    run = fitted("node-regression", identity_aware(Coded()), tmp_path, graphs, **options)
    again = Run.load(tmp_path, model=identity_aware(Coded()))
    assert again.predict(graphs[:3], device="cpu") == run.predict(graphs[:3], device="cpu")
    graphs[0].x = graphs[0].x + 2**24
    with pytest.raises(ValueError, match=r"x holds integers of 16,777,216 or more\. Number the categories from 0 on"):
        fitted("node-regression", identity_aware(Coded()), graphs=graphs)


def test_tied_weights_are_trained_and_saved_as_one(tmp_path):
    run = fitted("node-regression", identity_aware(Tied()), tmp_path)
    for trained in (run, Run.load(tmp_path, model=identity_aware(Tied()))):
        network = trained.model.encoder.module
        assert network.first.lin.weight is network.second.lin.weight
    graphs = graphs_for("node-regression", 3, seed=9)
    assert trained.predict(graphs, device="cpu") == run.predict(graphs, device="cpu")


def test_widths_that_are_found_at_the_first_call(tmp_path):
    run = fitted("node-regression", identity_aware(GCN(-1, 8, num_layers=2)), tmp_path)
    again = Run.load(tmp_path, model=identity_aware(GCN(-1, 8, num_layers=2)))
    graphs = graphs_for("node-regression", 3, seed=9)
    assert again.predict(graphs, device="cpu") == run.predict(graphs, device="cpu")


def test_files_are_read_and_edge_features_that_the_model_does_not_take_are_reported(tmp_path):
    edges = [(i, (i + step) % 24) for i in range(24) for step in (1, 2)]
    rows = "".join(f"p{a},p{b},{a / 24}\n" for a, b in edges)
    (tmp_path / "edges.csv").write_text(f"source,target,length\n{rows}")
    kinds = "".join(f"p{i},{'cat' if i % 3 else 'dog'},{i}\n" for i in range(24))
    (tmp_path / "nodes.csv").write_text(f"id,kind,age\n{kinds}")
    files = FileSource(tmp_path / "edges.csv", tmp_path / "nodes.csv", label="kind")
    model = identity_aware(GIN(1, 8, num_layers=2))
    with pytest.warns(UserWarning, match="the edges have features, which GIN does not take: edge_attr"):
        run = train(files, "node-classification", model=model, training=QUICK, folder=tmp_path / "run")
    again = Run.load(tmp_path / "run", model=model)
    assert again.schema == run.schema and set(again.classes) == {"cat", "dog"}


def test_graphs_with_other_features_are_refused():
    run = fitted("node-clustering", aware("GIN"))
    graph = Data(x=torch.ones(3, 5), edge_index=torch.tensor([[0], [1]]))
    with pytest.raises(ValueError, match="have 5 node features, but the network was trained with 2"):
        run.predict([graph], device="cpu")


@pytest.mark.parametrize(
    "model, sentence",
    [
        (MyNet(), r"model is MyNet, a plain module\. Wrap it: model=idgnn\.identity_aware\(MyNet\(\.\.\.\)\)"),
        (SAGEConv(2, 4), r"model is SAGEConv, a single layer\. Write a model"),
        (identity_aware(SAGEConv(2, 4)), r"model is SAGEConv, a single layer\. Write a model"),
        (IDGNN(2, 4, None), r"model is an IDGNN, which is made from settings here: model=idgnn\.ModelSettings"),
        ("gin", r"model is 'gin', expected idgnn\.ModelSettings, or a model of your own"),
        (
            identity_aware(Two()),
            r"Two returns a tuple, expected one tensor of shape \[num_nodes, channels\]",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused(model, sentence):
    with pytest.raises(ValueError, match=sentence):
        fitted("node-clustering", model)


@pytest.mark.parametrize(
    "options", [{"compile": True}, {"cuda_graphs": "on"}, {"query_batch_size": 20, "fanout": (5, 5)}]
)
def test_options_for_named_layers_are_refused(options):
    with pytest.raises(ValueError, match=r"is for the named layers \(conv='gcn', \.\.\.\).* Leave it out"):
        train(graphs_for("node-clustering"), "node-clustering", model=aware("GIN"), training=TrainOptions(**options))
