"""The networks of the released code against its formulas, written with dense matrices and one copy a root."""

import itertools

import networkx as nx
import pytest
import torch
from torch.nn.functional import leaky_relu, normalize
from torch_geometric.data import Data

from idgnn.experiments.released import build_released, return_features, scale_of, waves, with_returns
from idgnn.graphs.dataset import Dataset
from idgnn.models.prepared import PreparedGraphs
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.trainer import Trainer
from tests.training.small_problems import graphs_for, problem_for, settings_for

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
CONVS = ("gcn", "sage", "gat", "gin")
TASKS = {"node": "node-clustering", "pair": "shortest-path", "graph": "graph-classification"}


def network(conv, identity, level="node", layers=3, width=6, problem=None):
    problem = problem or problem_for(TASKS[level])
    model = ModelSettings(conv=conv, identity=identity, width=width, layers=layers)
    settings = RunSettings("python", settings_for(TASKS[level]), model)
    made = build_released(settings, problem).double().eval()
    for module in made.modules():  # the statistics of a BatchNorm that has seen something
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.uniform_(module.running_mean, -0.5, 0.5)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.5, 0.5)
    return made


def norm(module, x):
    norm = getattr(module, "module", module)
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def dense(encoder, x, adjacency, root):
    """The embedding of every node when `root` is colored. `adjacency[s, t]` is 1 if s sends to t."""
    size = x.size(0)
    color = torch.zeros(size, 1, dtype=x.dtype)
    if encoder.identity == "full":
        color[root] = 1
    h = norm(encoder.lin_in.norm, x @ encoder.lin_in.weight.t()).relu()
    loops = adjacency.t() + torch.eye(size, dtype=x.dtype)  # [target, source]
    for conv, batch_norm in zip(encoder.convs, encoder.norms, strict=True):
        layer = conv.operator
        kind = encoder.settings["conv"]
        if kind in ("gcn", "gat"):
            sent = h @ layer.lin.weight.t()
            if layer.lin_colored is not None:
                sent = sent + color * (h @ layer.lin_colored.weight.t())
        if kind == "gcn":
            degree = loops.sum(1)
            h = (loops / (degree.unsqueeze(1) * degree).sqrt()) @ sent
        elif kind == "gat":
            score = leaky_relu((sent @ layer.att_source[0]) + (sent @ layer.att_target[0]).unsqueeze(1), 0.2)
            h = score.masked_fill(loops == 0, -torch.inf).softmax(1) @ sent
        elif kind == "sage":
            mean = adjacency.t() @ h / adjacency.t().sum(1, keepdim=True).clamp(min=1)
            y = torch.cat([h, mean], dim=1)
            h = y @ layer.lin.weight.t()
            if layer.lin_colored is not None:
                h = h + color * (y @ layer.lin_colored.weight.t())
        else:
            y = h + adjacency.t() @ h
            h = layer.mlp(y)
            if layer.mlp_colored is not None:
                h = h + color * layer.mlp_colored(y)
        h = norm(batch_norm, h).relu()
    return normalize(h, dim=-1)


def random_graphs(number=4):
    """Undirected, with isolated nodes and more than one component among them."""
    found = []
    for i in range(number):
        graph = nx.gnp_random_graph(7 + i, 0.15 + 0.1 * i, seed=i)
        edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.long).view(-1, 2).t()
        x = torch.randn(len(graph), 2, dtype=torch.double, generator=torch.Generator().manual_seed(i))
        found.append(Data(x=x, edge_index=edges))
    return found


def adjacency_of(data):
    matrix = torch.zeros(data.num_nodes, data.num_nodes, dtype=torch.double)
    matrix[data.edge_index[0], data.edge_index[1]] = 1
    return matrix


@pytest.mark.parametrize("layers", [1, 2, 3, 5])
@pytest.mark.parametrize("identity", ["none", "full"])
@pytest.mark.parametrize("conv", CONVS)
def test_nodes_and_pairs_are_embedded_as_the_released_formulas_say(conv, identity, layers):
    encoder = network(conv, identity, layers=layers).encoder
    for data in random_graphs():
        every = [dense(encoder, data.x, adjacency_of(data), root) for root in range(data.num_nodes)]
        ours = encoder.run(encoder.prepare(data.x, data.edge_index))
        torch.testing.assert_close(ours, torch.stack([h[root] for root, h in enumerate(every)]))
        pairs = torch.tensor(list(itertools.product(range(data.num_nodes), repeat=2))).t()
        ours = encoder.run(encoder.prepare(data.x, data.edge_index, queries=pairs))
        read, colored = pairs.tolist()
        if identity == "full":
            expected = [every[v][u] for u, v in zip(read, colored, strict=True)]
        else:
            expected = [torch.cat([every[0][u], every[0][v]]) for u, v in zip(read, colored, strict=True)]
        torch.testing.assert_close(ours, torch.stack(expected))


@pytest.mark.parametrize("conv", CONVS)
def test_a_batch_that_is_cut_out_gives_what_its_graphs_give(conv):
    encoder = network(conv, "full").encoder
    graphs = random_graphs()
    start = torch.tensor([0, *(data.num_nodes for data in graphs)]).cumsum(0)
    x = torch.cat([data.x for data in graphs])
    edge_index = torch.cat([data.edge_index + start[i] for i, data in enumerate(graphs)], dim=1)
    owner = torch.arange(4).repeat_interleave(start.diff())
    whole = PreparedGraphs(encoder.prepare(x, edge_index), owner, 4)
    ready, _ = whole.cut(torch.tensor([2, 0]))
    alone = [encoder.run(encoder.prepare(graphs[i].x, graphs[i].edge_index)) for i in (2, 0)]
    torch.testing.assert_close(encoder.run(ready), torch.cat(alone))


def on_cycles(conv, layers):
    """The embedding of a node of two triangles, and of a hexagon: where no plain GNN sees a difference."""
    graphs = {"triangles": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), "hexagon": nx.cycle_graph(6)}
    encoder = network(conv, "full", layers=layers, width=16).encoder
    x = torch.ones(6, 2, dtype=torch.double)
    edges = [torch.tensor(list(graph.to_directed().edges)).t() for graph in graphs.values()]
    triangles, hexagon = (encoder.run(encoder.prepare(x, edge_index))[0] for edge_index in edges)
    return (triangles - hexagon).abs().max()


@pytest.mark.parametrize("conv", ["sage", "gin"])
def test_three_rounds_of_sage_and_gin_see_no_triangles_and_four_do(conv):
    assert on_cycles(conv, 3) < 1e-14
    assert on_cycles(conv, 4) > 1e-6


@pytest.mark.parametrize("conv", ["gcn", "gat"])
def test_three_rounds_of_gcn_and_gat_see_triangles(conv):
    assert on_cycles(conv, 2) < 1e-14
    assert on_cycles(conv, 3) > 1e-6


def test_counts_are_diagonals_of_powers_of_the_normalized_adjacency_with_self_loops():
    for data in random_graphs():
        loops = adjacency_of(data) + torch.eye(data.num_nodes, dtype=torch.double)
        scale = loops.sum(1).rsqrt()
        matrix = scale.unsqueeze(1) * loops * scale
        expected = torch.stack([torch.linalg.matrix_power(matrix, k).diagonal() for k in range(1, 11)], dim=1)
        torch.testing.assert_close(return_features(data.edge_index, data.num_nodes), expected)


def test_waves_are_five_cosines_and_five_sines_of_each_count_from_fast_to_slow():
    counts = torch.rand(5, 3, dtype=torch.double)
    scale = scale_of([counts, counts / 2])
    assert scale * counts.max() == pytest.approx(5)
    found = waves(counts, scale).view(5, 3, 2, 5)
    for i in range(5):
        angle = scale * counts / 10000 ** (i / 5)
        torch.testing.assert_close(found[:, :, 0, i], angle.cos())
        torch.testing.assert_close(found[:, :, 1, i], angle.sin())


def fast(task, data="python"):
    return RunSettings(data, settings_for(task), ModelSettings(identity="fast", width=6))


@pytest.mark.parametrize(
    ("task", "data", "channels"),
    [
        ("node-clustering", "python", 10),
        ("shortest-path", "python", 10),
        ("graph-classification", "python", 100),
        ("graph-classification", "ogbg-molhiv", 10),
    ],
)
def test_fast_reads_the_counts_and_for_graphs_their_waves(task, data, channels):
    problem = problem_for(task)
    fed = with_returns(fast(task, data), problem)
    counts = {
        name: return_features(part.edge_index, part.x.size(0)).float()
        for name, part in (("train", problem.train), ("valid", problem.held_out["valid"]))
    }
    scale = scale_of(list(counts.values()))
    for name, part in (("train", fed.train), ("valid", fed.held_out["valid"])):
        assert part.x.size(1) == problem.in_channels + channels
        expected = counts[name] if channels == 10 else waves(counts[name], scale)
        torch.testing.assert_close(part.x[:, problem.in_channels :], expected)
    assert network("gcn", "fast", problem=fed).encoder.lin_in.in_features == fed.in_channels


def test_counts_contain_the_links_to_be_predicted():
    """As in the released code, which counts before it takes edges away. The protocol of the text does not."""
    graphs = graphs_for("link-prediction")
    problem = make_problem(Dataset("python", graphs), settings_for("link-prediction"))
    fed = with_returns(fast("link-prediction"), problem)
    for name, part in (("train", fed.train), ("valid", fed.held_out["valid"])):
        found = part.x[:, problem.in_channels :]
        whole = [return_features(graphs[i].edge_index, graphs[i].num_nodes) for i in problem.graph_ids[name]]
        torch.testing.assert_close(found, torch.cat(whole).float())
        assert not torch.allclose(found, return_features(part.edge_index, part.x.size(0)).float())


def test_other_versions_have_the_features_of_the_problem():
    problem = problem_for("node-clustering")
    assert with_returns(RunSettings("python", settings_for("node-clustering")), problem) is problem


@pytest.mark.parametrize("identity", ["none", "fast"])
def test_a_pair_of_nodes_is_read_by_one_linear_layer(identity):
    model = network("gcn", identity, "pair")
    linear = [module for module in model.head.modules() if isinstance(module, torch.nn.Linear)]
    assert [layer.in_features for layer in linear] == [2 * 6]


@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("task", ["node-clustering", "link-prediction", "shortest-path", "graph-classification"])
def test_every_task_can_be_trained(task, identity):
    problem = make_problem(Dataset("python", graphs_for(task)), settings_for(task))
    for conv in CONVS:
        model = ModelSettings(conv=conv, identity=identity, width=8, layers=2)
        options = TrainOptions(epochs=2, batch_size=4, device="cpu")
        settings = RunSettings("python", TaskSettings(name=task), model, options)
        fed = with_returns(settings, problem)
        epochs = list(Trainer(build_released(settings, fed), fed, options).epochs())
        assert epochs[-1].metrics["valid"]


def test_a_network_without_a_width_is_refused():
    with pytest.raises(ValueError, match="expected gcn, sage, gat or gin and a width"):
        network("gcn", "full", width=None)
