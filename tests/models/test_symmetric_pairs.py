"""Pairs without a direction: both are read, in every path, and the answer is the mean."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GraphSAGE

from idgnn import ModelSettings, Run, identity_aware, train
from idgnn.graphs.dataset import Dataset
from idgnn.models.predictor import Predictor, make_predictor, wrapped_predictor
from idgnn.tasks.problem import make_problem
from idgnn.training.batches import Batches
from idgnn.training.trainer import Trainer
from tests.training.small_problems import QUICK, graphs_for, problem_for, settings_for

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
IDENTITIES = ("full", "fast", "none")


def network(identity: str, pair_head: str, symmetric: bool) -> Predictor:
    torch.manual_seed(0)
    settings = ModelSettings(identity=identity, width=8, layers=2, cycle_length=4, pair_head=pair_head)
    return make_predictor(replace(settings, symmetric=symmetric), "pair", 2, 1, None).eval()


@torch.no_grad()
def answers(model: Predictor, part) -> torch.Tensor:
    batch = Batches(part, model).cut(torch.arange(part.num_graphs))
    return model(batch.ready, batch.graph, batch.num_graphs)


@pytest.mark.parametrize("pair_head", ["mlp", "paper"])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_answer_is_the_mean_of_both_directions(identity, pair_head):
    part = problem_for("link-prediction").held_out["valid"]
    turned = replace(part, queries=part.queries.flip(0))
    one, both = (network(identity, pair_head, symmetric) for symmetric in (False, True))
    ahead, back = answers(one, part), answers(one, turned)
    assert not torch.allclose(ahead, back)
    torch.testing.assert_close(answers(both, part), (ahead + back) / 2)
    torch.testing.assert_close(answers(both, turned), answers(both, part))


def test_full_reads_pairs_by_an_mlp_or_as_the_paper():
    assert [len(list(network("full", each, True).head.parameters())) for each in ("mlp", "paper")] == [4, 2]


@pytest.mark.parametrize("task", ["link-prediction", "shortest-path"])
def test_links_of_undirected_graphs_are_symmetric_unless_said_otherwise(task):
    graphs = graphs_for(task)
    directed = [Data(x=each.x, edge_index=each.edge_index[:, ::3]) for each in graphs]
    found = [make_problem(Dataset("python", some), settings_for(task)).symmetric for some in (graphs, directed)]
    assert found == [task == "link-prediction", False]
    settings = ModelSettings(width=8, layers=2)
    for asked, expected in ((None, found[0]), (True, True), (False, False)):
        model = make_predictor(replace(settings, symmetric=asked), "pair", 2, 1, None, found[0])
        assert model.symmetric is expected


@pytest.mark.parametrize("identity", IDENTITIES)
def test_trained_predicted_and_loaded_alike(identity, tmp_path):
    settings = ModelSettings(identity=identity, width=8, layers=2, cycle_length=4)
    graphs = graphs_for("link-prediction")
    run = train(graphs, settings_for("link-prediction"), model=settings, training=QUICK, folder=tmp_path / "run")
    assert run.model.symmetric
    pairs = torch.tensor([[0, 1, 2], [3, 4, 5]])
    ahead, back = (run.predict(graphs[0], [each], device="cpu")["probability"] for each in (pairs, pairs.flip(0)))
    assert ahead == pytest.approx(back)
    with torch.no_grad():
        model = run.model.eval()
        ready = model.prepare(graphs[0].x, graphs[0].edge_index, queries=pairs)
        expected = model(ready, torch.zeros(3, dtype=torch.long), 1).squeeze(-1).sigmoid()
    assert ahead == pytest.approx(expected.tolist(), abs=1e-6)
    read = Run.load(tmp_path / "run")
    assert read.predict(graphs[0], [pairs], device="cpu")["probability"] == pytest.approx(ahead)
    assert read.predict(graphs[0], [pairs[:, :0]], device="cpu")["probability"] == []


@pytest.mark.parametrize("identity", IDENTITIES)
def test_batches_of_pairs_give_what_batches_of_graphs_give(identity):
    problem = problem_for("link-prediction")
    model = network(identity, "mlp", True)
    by_graph, by_pair = (
        Trainer(model, problem, options).predict("valid").out for options in (QUICK, replace(QUICK, query_batch_size=7))
    )
    torch.testing.assert_close(by_pair, by_graph)


def test_wrapped_models_are_read_in_both_directions():
    problem = problem_for("link-prediction")
    part = problem.held_out["valid"]
    first = Data(x=part.x, edge_index=part.edge_index)
    encoder = identity_aware(GraphSAGE(2, 8, num_layers=2), color="message+update")
    encoder(first.x, first.edge_index)
    for weight in encoder.colors.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    one, both = (wrapped_predictor(encoder, "pair", 1, first, symmetric).eval() for symmetric in (False, True))
    both.head.load_state_dict(one.head.state_dict())
    ahead, back = answers(one, part), answers(one, replace(part, queries=part.queries.flip(0)))
    assert not torch.allclose(ahead, back)
    torch.testing.assert_close(answers(both, part), (ahead + back) / 2)
