"""Batches, depth and identity from the cost of a step; what the user chose stays."""

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from idgnn.cli.main import main
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training import automatic
from idgnn.training.automatic import choose_settings
from idgnn.training.run_settings import TrainOptions
from tests.graphs.files.written import write
from tests.training.small_problems import graphs_for

CPU = TrainOptions(device="cpu", epochs=10)


def network(num_nodes: int = 300, degree: int = 8) -> Data:
    graph = nx.barabasi_albert_graph(num_nodes, degree // 2, seed=0)
    edges = torch.tensor(list(graph.to_directed().edges)).t()
    return Data(edge_index=edges, num_nodes=num_nodes, y=torch.arange(num_nodes) % 3)


@pytest.fixture
def timed(monkeypatch):
    """A step takes a second for each thousand messages, on every machine."""
    steps = []

    def step(self, model):
        steps.append(model)
        return self.messages(model) / 1000

    monkeypatch.setattr(automatic._Costs, "_step", step)
    return steps


def test_the_deepest_network_that_trains_in_time(timed):
    found = {}
    for limit in (1e9, 3000, 1):
        chosen = choose_settings(network(), "link-prediction", training=CPU, epoch_seconds=limit)
        found[limit] = chosen.model.layers
        assert chosen.model.identity == "full"
        assert chosen.seconds <= limit * CPU.epochs or chosen.model.layers == 2
    assert found[1e9] == 5 and 2 <= found[3000] < 5 and found[1] == 2
    assert "5 layers would take about" in chosen.reasons[0] and "times as many messages" in chosen.reasons[0]


def test_what_takes_far_too_long_is_not_timed(timed):
    choose_settings(network(), "link-prediction", training=CPU, epoch_seconds=1)
    assert {model.layers for model in timed} == {2}


def test_nodes_and_graphs_take_fast_if_full_takes_too_long(timed):
    many = "graph-classification"
    for data, task in ((network(), "node-classification"), (graphs_for(many), many)):
        for limit, identity in ((1e9, "full"), (1e-9, "fast")):
            chosen = choose_settings(data, task, training=CPU, epoch_seconds=limit)
            assert (chosen.model.identity, chosen.model.layers) == (identity, 3)


def test_a_single_graph_has_several_steps_and_many_graphs_have_batches():
    chosen = choose_settings(network(), "node-classification", training=CPU)
    assert chosen.training.query_batch_size == 64 and "4 steps an epoch" in chosen.reasons[-1]
    pairs = choose_settings(network(3000), "link-prediction", training=CPU)
    assert pairs.training.query_batch_size == 512 and "15 steps an epoch" in pairs.reasons[-1]
    assert choose_settings(network(40), "node-classification", training=CPU).training.query_batch_size is None
    assert choose_settings(graphs_for("node-clustering"), "node-clustering").training.query_batch_size is None


def test_what_the_user_chose_stays(timed):
    model, training = ModelSettings(layers=4, identity="none"), TrainOptions(query_batch_size=17, device="cpu")
    chosen = choose_settings(network(), "link-prediction", model=model, training=training, epoch_seconds=1e-9)
    assert (chosen.model, chosen.training) == (model, training)
    chosen = choose_settings(network(), "node-classification", training=CPU, fixed=("identity",), epoch_seconds=1e-9)
    assert chosen.model.identity == "full"


@pytest.mark.parametrize("identity", ["none", "fast", "full"])
def test_a_depth_that_is_chosen_is_said(timed, identity):
    model = ModelSettings(identity=identity)
    for task, layers in (("link-prediction", 5), ("node-classification", 3)):
        chosen = choose_settings(network(), task, model=model, training=CPU, fixed=("identity",), epoch_seconds=1e9)
        assert chosen.reasons[0].startswith(f"identity {identity}, {layers} layers: 10 epochs take about ")
    once = TrainOptions(device="cpu", epochs=1)
    assert ": 1 epoch takes about" in choose_settings(network(), "node-classification", training=once).reasons[0]


def test_two_colors_are_of_the_full_version(timed):
    model = ModelSettings(colors=2)
    for limit in (1e9, 1e-9):
        task = TaskSettings(name="node-classification", features="onehot")
        chosen = choose_settings(network(60), task, model=model, training=CPU, epoch_seconds=limit)
        assert (chosen.model.identity, chosen.model.colors, chosen.model.layers) == ("full", 2, 3)


def test_nodes_with_codes_of_their_own_have_no_color(timed):
    for kind, said in (("onehot", True), ("embedding", True), ("degree", False)):
        task = TaskSettings(name="node-classification", features=kind)
        chosen = choose_settings(network(), task, training=CPU, epoch_seconds=1e9)
        reason = chosen.reasons[0]
        assert chosen.model.identity == ("fast" if said else "full") and chosen.model.layers == 3
        assert (f"told apart by --features {kind} already" in reason) == said
        assert ("compare with --identity none --layers 3." in reason) == said
        given = choose_settings(network(), task, training=CPU, fixed=("identity",), epoch_seconds=1e9)
        assert "compare with" not in given.reasons[0]


def test_batches_fit_into_memory(monkeypatch):
    monkeypatch.setattr(automatic, "free_memory", lambda device: 2**22)
    chosen = choose_settings(network(1000, 20), "node-classification", training=CPU, fixed=("identity",))
    assert chosen.training.query_batch_size < 64 and "would not fit into memory" in chosen.reasons[-1]


def test_the_estimate_is_of_the_right_size():
    """Compared with what an epoch takes. Other work on the machine may slow either down, hence up to five tries."""
    from idgnn.training.train import train

    training = TrainOptions(device="cpu", epochs=3)
    for _ in range(5):
        chosen = choose_settings(network(), "node-classification", training=training)
        run = train(network(), "node-classification", model=chosen.model, training=chosen.training)
        if chosen.seconds / 10 < run.result["seconds"] < chosen.seconds * 10:
            return
    pytest.fail(f"estimated: {chosen.seconds:.2f} s, taken: {run.result['seconds']:.2f} s")


@pytest.mark.parametrize("name", ["empty", "one", "isolated"])
def test_graphs_with_few_edges(name):
    sizes = {"empty": (8, 0), "one": (8, 1), "isolated": (80, 3)}
    nodes, edges = sizes[name]
    ends = torch.stack([torch.arange(edges), torch.arange(edges) + 1])
    data = Data(edge_index=torch.cat([ends, ends.flip(0)], 1), num_nodes=nodes, y=torch.arange(nodes) % 2)
    for features, identity in (("auto", "fast"), ("constant", "full")):
        chosen = choose_settings(data, TaskSettings(name="node-classification", features=features), training=CPU)
        assert chosen.model.identity == identity and chosen.seconds > 0


def test_the_command_says_what_it_chose_and_why(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", "source,target\n" + "".join(f"{u},{v}\n" for u, v in network(60).edge_index.t().tolist()))
    command = ["train", "--edges", "e.csv", "--task", "link-prediction", "--epochs", "1", "--width", "4"]
    main([*command, "--device", "cpu"])
    said = capsys.readouterr().out
    assert "Chosen: identity full" in said and "pairs in a batch" in said and "--features degree" in said
    assert "To choose yourself: --identity, --layers, --query-batch-size." in said
    main([*command, "--device", "cpu", "--identity", "none", "--layers", "2", "--query-batch-size", "32"])
    said = capsys.readouterr().out
    assert "Chosen" not in said and "identity none" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--symmetric", "True", "--task", "node-clustering"], "--symmetric has no effect without a task about pairs"),
        (["--cycle-scale", "log", "--identity", "full", "--task", "node-clustering"], "--cycle-scale has no effect"),
        (
            ["--colors", "2", "--second", "all", "--task", "link-prediction"],
            "--second has no effect without --colors 2 and",
        ),
        (["--second", "all", "--task", "node-clustering"], "second='all' has no effect on a single color"),
        (["--pool", "sum", "--task", "node-clustering"], "--pool has no effect without --colors 2"),  # as by default
        (["--heads", "2", "--task", "node-clustering"], "--heads has no effect without --conv gat"),
        (["--bins", "3", "--task", "link-prediction"], "--bins has no effect without a clustering task"),
        (["--metric", "mrr", "--task", "node-clustering"], "metric is 'mrr', but node-clustering is measured by"),
    ],
)
def test_options_without_effect_are_refused(tmp_path, monkeypatch, capsys, options, sentence):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "e.csv", "source,target\na,b\n")
    with pytest.raises(SystemExit) as stop:
        main(["train", "--edges", "e.csv", *options])
    assert stop.value.code == 2 and sentence in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
