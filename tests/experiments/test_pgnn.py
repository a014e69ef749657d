"""P-GNN against its formulas, written for one graph, node by node, with networkx's distances."""

import math
from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
import torch
from torch.nn.functional import normalize

from idgnn.experiments.pgnn import anchor_sets, build_pgnn, find_anchors
from idgnn.models.budget import num_parameters
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.query_set import QuerySet
from idgnn.training.seeds import generator_of
from tests.experiments.variants import answers, asked, scores, settings
from tests.training.small_problems import problem_for

SMALL = ModelSettings(width=8)


def network(problem, model=SMALL):
    return build_pgnn(settings("link-prediction", model), problem).double()


def graph_of(part: QuerySet, which: int):
    """One graph of a part for networkx, with the nodes of the part."""
    graph = nx.DiGraph()
    graph.add_nodes_from((part.owner == which).nonzero().flatten().tolist())
    graph.add_edges_from((s, t) for s, t in part.edge_index.t().tolist() if s in graph)
    return graph


def reference(model, part: QuerySet, which: int, name: str, seed: int = 0):
    """The positions of the nodes of a graph."""
    graph, encoder = graph_of(part, which), model.encoder
    nodes = sorted(graph)
    sets = anchor_sets(len(nodes), generator_of(seed, f"anchors of {name}", which))
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    h = {v: encoder.lin_in(part.x[v]) for v in nodes}
    for layer in encoder.layers:
        weight = torch.cat([layer.lin_anchor.weight, layer.lin_self.weight], dim=1)
        messages = {}
        for v in nodes:
            messages[v] = []
            for members in sets:
                reached = [nodes[u] for u in members.tolist() if v in distance[nodes[u]]]
                near = torch.zeros_like(h[v])
                if reached:
                    closest = min(reached, key=lambda u: distance[u][v])
                    near = h[closest] / (distance[closest][v] + 1)
                messages[v].append((weight @ torch.cat([near, h[v]]) + layer.lin_self.bias).relu())
        h = {v: torch.stack(sent).mean(0) for v, sent in messages.items()}
    position = {v: torch.stack([layer.lin_position(each)[0] for each in sent]) for v, sent in messages.items()}
    return {v: normalize(each, dim=-1) for v, each in position.items()}


@torch.no_grad()
def test_a_link_is_the_inner_product_of_two_positions_as_the_formulas_have_them():
    problem = problem_for("link-prediction")
    part = asked(problem)
    model = network(problem)
    ours = answers(model, part).squeeze(-1)
    for which in range(part.num_graphs):
        position = reference(model, part, which, "train")
        chosen = part.owner[part.queries[0]] == which
        expected = [position[u] @ position[v] for u, v in part.queries[:, chosen].t().tolist()]
        torch.testing.assert_close(ours[chosen], torch.stack(expected))


def test_a_batch_that_is_cut_out_gives_what_its_graphs_give():
    problem = problem_for("link-prediction")
    model, part = network(problem), asked(problem)
    every = answers(model, part)
    for graphs in ([0, 1, 2], [5, 3], [4]):
        rows = torch.cat([(part.query_owner == which).nonzero().flatten() for which in graphs])
        torch.testing.assert_close(answers(model, part, graphs), every[rows])


def test_a_pair_and_its_reverse_get_the_same_prediction():
    problem = problem_for("link-prediction")
    model, part = network(problem), asked(problem)
    before = answers(model, part)
    turned = replace(part, queries=part.queries.flip(0))
    torch.testing.assert_close(answers(model, turned), before)


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 10, 33, 64, 620])
def test_there_are_c_log_squared_n_anchor_sets_of_sizes_that_double(num_nodes):
    sets = anchor_sets(num_nodes, torch.Generator().manual_seed(0))
    sizes = max(int(math.log2(num_nodes)), 1)
    assert len(sets) == sizes * max(int(0.5 * sizes), 1)
    found = sorted({len(members) for members in sets})
    assert found[0] == 1
    assert all(abs(large - 2 * small) <= 1 for small, large in pairwise(found))
    for members in sets:
        assert members.unique().numel() == members.numel()
        assert int(members.min()) >= 0 and int(members.max()) < num_nodes


def test_the_seed_decides_the_anchors():
    part = problem_for("link-prediction").train
    one, again, other = (find_anchors(part, "train", seed) for seed in (0, 0, 1))
    assert torch.equal(one.closest, again.closest) and torch.equal(one.weight, again.weight)
    assert not torch.equal(one.closest, other.closest)


def test_it_has_as_many_parameters_as_the_other_models():
    problem = problem_for("link-prediction")
    model = ModelSettings(identity="none", budget=64)
    gcn = make_predictor(model, "pair", problem.in_channels, 1, None)
    ours, theirs = num_parameters(network(problem, model)), num_parameters(gcn)
    assert abs(ours - theirs) < 0.03 * theirs


def test_it_is_trained_and_repeats():
    assert scores(build_pgnn, "link-prediction", SMALL) == scores(build_pgnn, "link-prediction", SMALL)


def test_other_graphs_and_other_tasks_are_refused():
    problem = problem_for("link-prediction")
    with pytest.raises(ValueError, match="no anchors for these graphs"):
        network(problem).encoder.prepare(torch.ones(2, 2).double(), torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="expected link prediction"):
        network(problem_for("shortest-path"))
