import pytest
import torch

from idgnn.experiments import run_time
from idgnn.experiments.run_time import measure_run_time
from idgnn.experiments.tables.table4 import CONTENDERS, PASSES


@pytest.fixture(scope="module")
def found(data_dir):
    return measure_run_time({"dataset": "ENZYMES", "graphs": 6, "rounds": 3}, seed=0, device="cpu")


def test_every_contender_is_timed_with_the_same_budget(found):
    for column in PASSES:
        assert set(found[column]) == set(CONTENDERS)
        assert all(row["ms"] > 0 and row["ratio"] > 0 for row in found[column].values())
        assert found[column]["gcn"]["ratio"] == 1
    budget = found["num_parameters"]["gcn"]
    assert all(abs(number - budget) < 0.02 * budget for number in found["num_parameters"].values())


@torch.no_grad()
@pytest.mark.parametrize(("ego", "other"), [("gcn-ego", "gcn"), ("full-gcn-ego", "full-gcn")])
def test_ego_networks_give_the_same_predictions(data_dir, ego, other):
    """So that what is timed is the same network."""
    part = run_time._batch("ENZYMES", 6, seed=0)
    settings = run_time.replace(run_time.PAPER_NETWORK, conv="gcn", identity=run_time._IDENTITY[ego])
    model = run_time.make_predictor(settings, "graph", part.x.size(1), 6, None).eval()
    one, two = (run_time._ready(model, part, ego=each) for each in (True, False))
    assert one.plan.node.numel() > two.plan.node.numel()
    torch.testing.assert_close(model(one, part.owner, 6), model(two, part.owner, 6), rtol=1e-4, atol=1e-5)


def test_more_graphs_than_there_are_is_refused(data_dir):
    with pytest.raises(ValueError, match="expected a number from 1 to 600"):
        measure_run_time({"dataset": "ENZYMES", "graphs": 601}, seed=0, device="cpu")
