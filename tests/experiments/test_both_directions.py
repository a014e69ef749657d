from dataclasses import replace

import pytest
import torch

from idgnn.experiments.pair_variants import build_both_directions
from idgnn.models.budget import num_parameters
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from tests.experiments.variants import answers, asked, prepared_alone, scores, settings
from tests.training.small_problems import problem_for

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
SMALL = ModelSettings(conv="gcn", identity="full", width=8, layers=3)
CONVS = ("gcn", "sage", "gat", "gin")


def network(problem, model=SMALL):
    return build_both_directions(settings("link-prediction", model), problem).double()


@pytest.mark.parametrize("conv", CONVS)
def test_a_pair_and_its_reverse_get_the_same_prediction(conv):
    problem = problem_for("link-prediction")
    model, part = network(problem, replace(SMALL, conv=conv)), asked(problem)
    turned = replace(part, queries=part.queries.flip(0))
    torch.testing.assert_close(answers(model, part), answers(model, turned))


@pytest.mark.parametrize("conv", CONVS)
def test_it_is_the_mean_of_the_predictions_of_id_gnn_full_for_both_directions(conv):
    problem = problem_for("link-prediction")
    settings_ = replace(SMALL, conv=conv)
    model, part = network(problem, settings_), asked(problem)
    full = make_predictor(settings_, "pair", problem.in_channels, problem.objective.num_outputs, None).double()
    full.load_state_dict(model.state_dict())  # it has the same parameters
    turned = replace(part, queries=part.queries.flip(0))
    ahead, back = answers(full, part), answers(full, turned)
    assert not torch.allclose(ahead, back)
    torch.testing.assert_close(answers(model, part), (ahead + back) / 2)


def test_a_batch_that_is_cut_out_gives_what_its_graphs_give():
    problem = problem_for("link-prediction")
    model, part = network(problem), asked(problem)
    for graphs in ([0, 1, 2], [5, 3], [4]):
        torch.testing.assert_close(answers(model, part, graphs), prepared_alone(model, part, graphs))


def test_it_has_the_budget_of_id_gnn_full():
    problem = problem_for("link-prediction")
    model = ModelSettings(identity="full", budget=64)
    full = make_predictor(model, "pair", problem.in_channels, problem.objective.num_outputs, None)
    assert num_parameters(network(problem, model)) == num_parameters(full)


def test_it_is_trained_and_repeats():
    assert scores(build_both_directions, "link-prediction", SMALL) == scores(
        build_both_directions, "link-prediction", SMALL
    )


def test_other_tasks_and_identities_are_refused():
    with pytest.raises(ValueError, match="expected a task on pairs"):
        network(problem_for("node-clustering"))
    with pytest.raises(ValueError, match="'full': both directions"):
        network(problem_for("shortest-path"), replace(SMALL, identity="fast"))
