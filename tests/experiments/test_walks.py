import pytest
import torch

from idgnn import walk_counts
from idgnn.experiments.pair_variants import build_walks
from idgnn.models.budget import num_parameters
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from tests.experiments.variants import answers, asked, double, prepared_alone, scores, settings
from tests.training.small_problems import problem_for

SMALL = ModelSettings(conv="gcn", identity="fast", width=8, layers=2)
TASKS = ("link-prediction", "shortest-path")


def network(problem, model=SMALL):
    return build_walks(settings("link-prediction", model), problem).double()


@pytest.mark.parametrize("task", TASKS)
def test_a_batch_that_is_cut_out_has_the_counts_of_its_pairs(task):
    problem = problem_for(task)
    model, part = network(problem), asked(problem)
    for graphs in ([0, 1, 2], [5, 3], [4]):
        torch.testing.assert_close(answers(model, part, graphs), prepared_alone(model, part, graphs))


def test_the_counts_are_those_of_the_graph_that_carries_messages():
    problem = problem_for("link-prediction")
    part = asked(problem)
    ready = network(problem).encoder.prepare(part.x, part.edge_index, queries=part.queries)
    expected = walk_counts(part.edge_index, part.x.size(0), part.queries, 10).log1p()
    torch.testing.assert_close(ready.pair_x, expected)


def test_walks_do_not_use_the_queried_links():
    """An edge is a walk of one step; if the counts knew the edges that are asked for, the first would be the answer."""
    problem = problem_for("link-prediction")
    encoder = network(problem).encoder
    for part in (asked(problem), double(problem.held_out["valid"])):
        ready = encoder.prepare(part.x, part.edge_index, queries=part.queries)
        assert bool(part.target.any())
        assert not bool(ready.pair_x[:, 0].any())


@pytest.mark.parametrize("task", TASKS)
def test_the_walks_of_a_pair_matter(task):
    problem = problem_for(task)
    model, part = network(problem), asked(problem)
    before = answers(model, part)
    model.head.mlp[0].weight.data[:, -10:] = 0
    assert not torch.allclose(before, answers(model, part))


@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin"])
def test_it_has_as_many_parameters_as_the_other_models(conv):
    problem = problem_for("link-prediction")
    model = ModelSettings(conv=conv, identity="fast", budget=64)
    others = make_predictor(model, "pair", problem.in_channels, problem.objective.num_outputs, None)
    ours, theirs = num_parameters(network(problem, model)), num_parameters(others)
    assert abs(ours - theirs) < 0.03 * theirs


@pytest.mark.parametrize("task", TASKS)
def test_it_is_trained_and_repeats(task):
    assert scores(build_walks, task, SMALL) == scores(build_walks, task, SMALL)


def test_other_tasks_are_refused():
    with pytest.raises(ValueError, match="expected a task on pairs"):
        network(problem_for("node-clustering"))
    with pytest.raises(ValueError, match="expected queries of shape"):
        network(problem_for("shortest-path")).encoder.prepare(torch.ones(2, 2), torch.tensor([[0], [1]]))
