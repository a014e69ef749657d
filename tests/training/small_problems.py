"""Problems that a network learns within a second, and trainers for them."""

import networkx as nx
import torch
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem, make_problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.trainer import Trainer

# One task for each kind of objective, and for each level.
TASKS = ("node-clustering", "node-regression", "link-prediction", "shortest-path", "graph-classification")
SMALL = ModelSettings(width=8, layers=2, cycle_length=4)
QUICK = TrainOptions(epochs=3, batch_size=4, device="cpu")


def graphs_for(task: str, number: int = 16, seed: int = 0) -> list[Data]:
    """Random graphs of 6 to 9 nodes, with the labels that the task needs."""
    found = []
    for i in range(number):
        graph = nx.gnp_random_graph(6 + i % 4, 0.3 + 0.3 * (i % 2), seed=1000 * seed + i)
        size = graph.number_of_nodes()
        edges = torch.tensor(sorted(graph.to_directed().edges)).view(-1, 2).t()
        generator = torch.Generator().manual_seed(1000 * seed + i)
        data = Data(x=torch.randn(size, 2, generator=generator), edge_index=edges)
        if task == "node-regression":
            data.y = 10 + 5 * data.x[:, 0]
        elif task == "graph-classification":
            data.y = torch.tensor([i % 2])
        found.append(data)
    return found


def settings_for(task: str) -> TaskSettings:
    return TaskSettings(name=task, valid=0.25, bins=4, pairs=12, cutoff=3)  # type: ignore[arg-type]


def problem_for(task: str, number: int = 16) -> Problem:
    return make_problem(Dataset("python", graphs_for(task, number)), settings_for(task))


def trainer_for(
    problem: Problem, options: TrainOptions = QUICK, model: ModelSettings = SMALL, seed: int = 0
) -> Trainer:
    return Trainer(network_for(problem, model, seed), problem, options, seed)


def network_for(problem: Problem, model: ModelSettings = SMALL, seed: int = 0) -> Predictor:
    torch.manual_seed(seed)
    return make_predictor(model, problem.level, problem.in_channels, problem.objective.num_outputs, problem.edge_dim)


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def assert_same_weights(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    different = [name for name in ours if not torch.equal(ours[name], theirs[name])]
    assert not different, f"{different} differ"
