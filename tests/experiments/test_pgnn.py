"""P-GNN against its formulas, written for one graph, node by node, with networkx's distances."""

import math
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
import torch
from torch.nn.functional import normalize

from idgnn.experiments.anchors import GraphDistances, set_sizes
from idgnn.experiments.pgnn import FORMS, build_pgnn
from idgnn.models.budget import num_parameters
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.query_set import QuerySet
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import Trainer
from tests.experiments.variants import asked, scores, settings
from tests.training.small_problems import problem_for

SMALL = ModelSettings(width=8)


def network(problem, form="original", model=SMALL):
    return build_pgnn(settings("link-prediction", model), problem, form).double()


def batch_of(model, part, graphs):
    return model.batches(part).cut(torch.tensor(graphs))


@torch.no_grad()
def answers(model, part, graphs=None):
    batch = batch_of(model.eval(), part, list(range(part.num_graphs)) if graphs is None else graphs)
    return model(batch.ready, batch.graph, batch.num_graphs)


def graph_of(part: QuerySet, which: int):
    """One graph of a part for networkx, with the nodes of the part."""
    graph = nx.DiGraph()
    graph.add_nodes_from((part.owner == which).nonzero().flatten().tolist())
    graph.add_edges_from((s, t) for s, t in part.edge_index.t().tolist() if s in graph)
    return graph


@pytest.mark.parametrize("sets", [0.5, 1.0])
def test_the_closest_member_of_each_set_is_found(sets):
    """A set is the first nodes of its graph by random numbers; networkx knows the distances."""
    part = problem_for("link-prediction").train
    found = GraphDistances.of(part, sets)
    graphs = torch.tensor([4, 1, 7])
    drawn = found.draw(graphs, torch.Generator().manual_seed(3))
    random = torch.rand(drawn.closest.shape, generator=torch.Generator().manual_seed(3))
    start = 0
    for which in graphs.tolist():
        graph = graph_of(part, which)
        nodes, sizes = sorted(graph), set_sizes(len(graph), sets)
        distance = dict(nx.all_pairs_shortest_path_length(graph))
        rows = slice(start, start + len(nodes))
        assert drawn.exists[rows].sum(1).tolist() == [len(sizes)] * len(nodes)
        for number, size in enumerate(sizes):
            members = [nodes[i] for i in random[rows, number].argsort()[:size].tolist()]
            for i, v in enumerate(nodes):
                closest = nodes[int(drawn.closest[start + i, number]) - start]
                assert closest in members
                reached = [distance[u][v] for u in members if v in distance[u]]
                near = 1 / (min(reached) + 1) if reached else 0
                assert float(drawn.near[start + i, number]) == pytest.approx(near)
                assert not reached or distance[closest][v] == min(reached)
        start += len(nodes)


@pytest.mark.parametrize("form", FORMS)
@torch.no_grad()
def test_positions_are_what_the_formulas_say(form):
    problem = problem_for("link-prediction")
    model, part = network(problem, form).eval(), replace(problem.held_out["valid"])
    part = replace(part, x=part.x.double())
    batch = batch_of(model, part, [0, 2]).ready
    h = model.lin_in(batch.x)
    for layer in model.layers:
        weight = torch.cat([layer.lin_anchor.weight, layer.lin_self.weight], dim=1)
        messages = []
        for v in range(len(h)):
            sets = batch.exists[v].nonzero().flatten().tolist()
            near = [batch.near[v, i] if form == "fixed" else layer.distance_net(batch.near[v, i].view(1)) for i in sets]
            read = [torch.cat([s * h[batch.closest[v, i]], h[v]]) for s, i in zip(near, sets, strict=True)]
            messages.append([(weight @ each + layer.lin_self.bias).relu() for each in read])
        h = torch.stack([torch.stack(sent).mean(0) for sent in messages])
    ours = model.positions(batch)
    for v, sent in enumerate(messages):
        expected = normalize(torch.stack([model.layers[-1].lin_position(each)[0] for each in sent]), dim=-1)
        torch.testing.assert_close(ours[v, : len(sent)], expected)
        assert not ours[v, len(sent) :].any()
    found = answers(model, part, [0, 2]).squeeze(-1)
    torch.testing.assert_close(found, (ours[batch.queries[0]] * ours[batch.queries[1]]).sum(1))


def test_the_original_starts_with_xavier_weights_and_has_a_distance_net():
    torch.manual_seed(0)
    model = network(problem_for("link-prediction"), "original", ModelSettings(width=128))
    layer = model.layers[0]
    bound = math.sqrt(12 / (2 * 128 + 128))
    for linear in (layer.lin_anchor, layer.lin_self):
        assert 0.95 * bound < float(linear.weight.detach().max()) <= bound
    assert not layer.lin_self.bias.any() and not layer.distance_net[0].bias.any()
    assert network(problem_for("link-prediction"), "fixed").layers[0].distance_net is None


def test_anchors_of_the_original_are_redrawn_in_training_alone():
    problem = problem_for("link-prediction")
    for form, same in (("original", False), ("fixed", True)):
        model, part = network(problem, form), asked(problem)
        one, again = (batch_of(model, part, [0, 1, 2]).ready.closest for _ in range(2))
        assert torch.equal(one, again) == same
        held_out = problem.held_out["valid"]
        one, again = (batch_of(model, held_out, [0, 1, 2]).ready.closest for _ in range(2))
        assert torch.equal(one, again)


def test_states_between_the_layers_of_the_original_are_dropped_in_training():
    problem = problem_for("link-prediction")
    for form, same in (("original", False), ("fixed", True)):
        model = network(problem, form).train()
        batch = batch_of(
            model, replace(problem.held_out["valid"], x=problem.held_out["valid"].x.double()), [0, 1]
        ).ready
        assert torch.equal(model.positions(batch), model.positions(batch)) == same
        assert torch.equal(model.eval().positions(batch), model.positions(batch))


def test_a_batch_that_is_cut_out_gives_what_its_graphs_give():
    problem = problem_for("link-prediction")
    held_out = problem.held_out["valid"]
    part = replace(held_out, x=held_out.x.double())
    model = network(problem)
    every = answers(model, part)
    for graphs in ([0, 1, 2], [3, 1], [2]):
        rows = torch.cat([(part.query_owner == which).nonzero().flatten() for which in graphs])
        torch.testing.assert_close(answers(model, part, graphs), every[rows])


def test_a_pair_and_its_reverse_get_the_same_prediction():
    problem = problem_for("link-prediction")
    model, part = network(problem, "fixed"), asked(problem)
    turned = replace(part, queries=part.queries.flip(0))
    torch.testing.assert_close(answers(model, turned), answers(model, part))


@pytest.mark.parametrize("sets", [0.5, 1.0])
@pytest.mark.parametrize("num_nodes", [1, 2, 3, 10, 33, 64, 620])
def test_there_are_c_log_squared_n_anchor_sets_of_sizes_that_double(num_nodes, sets):
    found = set_sizes(num_nodes, sets)
    sizes = max(int(math.log2(num_nodes)), 1)
    assert len(found) == sizes * max(int(sets * sizes), 1)
    different = sorted(set(found))
    assert different[0] == 1 and different[-1] <= max(num_nodes // 2, 1)
    assert all(abs(large - 2 * small) <= 1 for small, large in pairwise(different))


def test_the_seed_decides_the_anchors():
    problem = problem_for("link-prediction")
    part = problem.held_out["valid"]
    run = settings("link-prediction", SMALL)
    one, again, other = (build_pgnn(replace(run, seed=seed), problem) for seed in (0, 0, 1))
    closest = [batch_of(model, part, [0, 1]).ready.closest for model in (one, again, other)]
    assert torch.equal(closest[0], closest[1]) and not torch.equal(closest[0], closest[2])


@pytest.mark.parametrize("form", FORMS)
def test_it_has_as_many_parameters_as_the_other_models(form):
    problem = problem_for("link-prediction")
    model = ModelSettings(identity="none", budget=64)
    gcn = make_predictor(model, "pair", problem.in_channels, 1, None)
    ours, theirs = num_parameters(network(problem, form, model)), num_parameters(gcn)
    assert abs(ours - theirs) < 0.03 * theirs


@pytest.mark.parametrize("form", FORMS)
def test_it_is_trained_and_repeats(form):
    def build(settings, problem):
        return build_pgnn(settings, problem, form)

    assert scores(build, "link-prediction", SMALL) == scores(build, "link-prediction", SMALL)


def test_other_graphs_tasks_and_options_are_refused():
    problem = problem_for("link-prediction")
    model = network(problem)
    with pytest.raises(ValueError, match="no anchors for these graphs"):
        model.batches(problem_for("link-prediction", 8).train.epoch(torch.Generator()))
    with pytest.raises(ValueError, match="expected link prediction"):
        network(problem_for("shortest-path"))
    with pytest.raises(ValueError, match="PGNN prepares its own batches"):
        Trainer(model, problem, TrainOptions(query_batch_size=8, device="cpu"))
