"""What the networks that are trained in place of the library's have in common: they are cut into batches, and learn."""

from dataclasses import replace

import torch

from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.training.batches import Batches
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.trainer import Trainer
from tests.training.small_problems import problem_for, settings_for


def settings(task: str, model: ModelSettings) -> RunSettings:
    return RunSettings("python", settings_for(task), model)


def double(part: QuerySet) -> QuerySet:
    return replace(part, x=part.x.double())


def asked(problem: Problem, seed: int = 0) -> QuerySet:
    """The training part of one epoch, in float64."""
    return double(problem.train.epoch(torch.Generator().manual_seed(seed)))


def preparing(model: torch.nn.Module):
    """What batches are prepared by."""
    return model if hasattr(model, "prepare") else model.encoder


@torch.no_grad()
def answers(model: torch.nn.Module, part: QuerySet, graphs: list[int] | None = None) -> torch.Tensor:
    """What a network says about a batch that is cut out of a part."""
    batch = Batches(part, preparing(model)).cut(
        torch.arange(part.num_graphs) if graphs is None else torch.tensor(graphs)
    )
    return model.eval()(batch.ready, batch.graph, batch.num_graphs)


@torch.no_grad()
def prepared_alone(model: torch.nn.Module, part: QuerySet, graphs: list[int]) -> torch.Tensor:
    """The same for a batch that is prepared by itself."""
    few = part.subset(torch.tensor(graphs))
    ready = preparing(model).prepare(few.x, few.edge_index, queries=few.queries)
    return model.eval()(ready, few.query_owner, few.num_graphs)


def scores(build, task: str, model: ModelSettings, epochs: int = 2, seed: int = 0) -> list[tuple[float, float]]:
    """Loss and validation score of every epoch."""
    problem = problem_for(task)
    torch.manual_seed(seed)
    options = TrainOptions(epochs=epochs, batch_size=4, device="cpu")
    trainer = Trainer(build(settings(task, model), problem), problem, options, seed)
    return [(epoch.loss, epoch.metrics["valid"][problem.objective.metric]) for epoch in trainer.epochs()]
