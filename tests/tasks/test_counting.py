"""Counts of patterns as labels, several by one network."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.load import load
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import make_problem, objective_from_dict
from idgnn.tasks.quantities import Quantities
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train
from tests.tasks.test_problem import dataset_for, small_graphs

NODES = TaskSettings("node-counting", split="provided", patterns=("cycle4", "cycle3"), error="absolute")


def counted(dataset: Dataset, parts: tuple[str, ...], name: str, columns: list[int]) -> np.ndarray:
    ids = torch.cat([dataset.provided_split[part] for part in parts]).tolist()
    return torch.cat([dataset.graphs[i][name] for i in ids])[:, columns].double().numpy()


@pytest.fixture(scope="module")
def counting(data_dir):
    return load("counting")


def test_counts_of_nodes_are_in_units_of_training_and_validation(counting):
    problem = make_problem(counting, NODES)
    train = counted(counting, ("train",), "node_counts", [1, 0])
    known = counted(counting, ("train", "valid"), "node_counts", [1, 0])
    objective = problem.objective
    assert isinstance(objective, Quantities) and objective.names == ("cycle4", "cycle3") and objective.num_outputs == 2
    assert np.allclose(objective.mean, train.mean(0)) and np.allclose(objective.scale, train.std(0, ddof=1))
    assert np.allclose(objective.unit, known.std(0, ddof=1))
    assert np.array_equal(problem.train.target.numpy(), train)
    assert problem.held_out["test"].num_graphs == 2500 and problem.train.queries is None


def test_counts_of_graphs_are_in_units_of_all_parts(counting):
    problem = make_problem(counting, TaskSettings("graph-counting", split="provided", patterns=("star3",)))
    every = counted(counting, ("train", "valid", "test"), "graph_counts", [2])
    assert np.allclose(problem.objective.unit, every.std(0, ddof=1))
    assert problem.train.target.shape == (1500, 1)


@pytest.mark.parametrize("error", ["squared", "absolute"])
def test_loss_and_metrics_are_those_of_numpy(error):
    objective = Quantities(("a", "b"), (1.0, -2.0), (2.0, 0.5), (4.0, 10.0), error)
    rng = np.random.default_rng(0)
    out, target = rng.normal(size=(7, 2)), rng.normal(size=(7, 2))
    difference = out - (target - [1.0, -2.0]) / [2.0, 0.5]
    loss = objective.loss(torch.tensor(out), torch.tensor(target).float()).item()
    assert loss == pytest.approx((difference**2 if error == "squared" else abs(difference)).mean(), rel=1e-5)
    found = objective.measure(torch.tensor(out), torch.tensor(target).float(), torch.zeros(7))
    each = abs(out * [2.0, 0.5] + [1.0, -2.0] - target).mean(0) / [4.0, 10.0]
    assert [found["a"], found["b"], found["mae"]] == pytest.approx([*each, each.mean()], rel=1e-5)
    read = objective.read(torch.tensor(out))
    assert read["b"].tolist() == pytest.approx(out[:, 1] * 0.5 - 2.0, rel=1e-5)
    assert objective_from_dict(json.loads(json.dumps(objective.as_dict()))) == objective


def test_a_regression_by_absolute_error_has_that_loss():
    settings = TaskSettings("graph-regression", error="absolute")
    objective = make_problem(dataset_for("graph-regression"), settings).objective
    out, target = torch.tensor([[0.5], [-1.0]]), torch.tensor([1.0, 3.0])
    standardized = (target - objective.mean) / objective.scale
    assert objective.loss(out, target).item() == pytest.approx((out[:, 0] - standardized).abs().mean().item())
    assert objective_from_dict(objective.as_dict()) == objective


def test_counts_are_predicted_and_written_by_name(counting, tmp_path):
    few = counting.graphs[:12]
    training = TrainOptions(epochs=2, batch_size=4, device="cpu")
    run = train(
        few, replace(NODES, split="random"), model=ModelSettings(width=4), training=training, folder=tmp_path / "run"
    )
    assert {"mae", "cycle3", "cycle4"} <= set(run.result["last"]["valid"])
    header, first = (tmp_path / "run" / "predictions.csv").read_text().splitlines()[:2]
    assert header == "part,graph,node,label_cycle4,label_cycle3,cycle4,cycle3" and first.startswith("valid,")
    assert set(run.predict(few[:2])) >= {"cycle3", "cycle4"}


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ValueError, match=r"patterns are \['cycle7'\], expected some of cycle3, "):
        make_problem(Dataset("python", small_graphs()), TaskSettings("node-counting", patterns=("cycle7",)))
    with pytest.raises(ValueError, match="a graph has graph_counts None, but graph-counting expects the counts of"):
        make_problem(Dataset("python", small_graphs()), TaskSettings("graph-counting"))
    with pytest.raises(ValueError, match="error is 'cubed', expected one of squared, absolute"):
        TaskSettings("node-regression", error="cubed")
