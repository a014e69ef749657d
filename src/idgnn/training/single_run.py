"""One run: its network is made, trained, judged and written into its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.sources import FileSource
from idgnn.models.budget import num_parameters
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.predictor import Predictor, make_predictor, wrapped_predictor
from idgnn.tasks.problem import TASKS, Problem
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.callbacks import Callback
from idgnn.training.checkpoint import load_checkpoint, save_checkpoint
from idgnn.training.evaluation import Predictions
from idgnn.training.prediction_tables import (
    PredictionTable,
    class_names_of,
    prediction_columns,
    query_columns,
    write_table,
)
from idgnn.training.processes import Processes
from idgnn.training.ready_data import ready, warn_of_lost_direction, warn_of_unused_edge_data
from idgnn.training.run_folder import PREDICTIONS, Epoch, RunFolder
from idgnn.training.run_settings import RunSettings
from idgnn.training.seeds import seed_of
from idgnn.training.trained import Run
from idgnn.training.trainer import Trainer


def run(
    settings: RunSettings,
    wrapped: IdentityAwareModel | None,
    dataset: Dataset,
    files: RunFolder | None,
    resume: bool,
    callbacks: Sequence[Callback],
    processes: Processes,
) -> Run:
    """Trains the network of the settings, or a wrapped model, on a dataset, with the other processes."""
    dataset, problem = ready(dataset, settings, own_network=wrapped is not None)
    model = _make_model(settings, problem, wrapped)
    record = _record(dataset, problem)
    if isinstance(settings.data, FileSource):
        warn_of_unused_edge_data(problem, model)
    trainer = Trainer(model, problem, settings.training, settings.seed, processes)
    written = files if processes.first else None  # by one process; all read it
    epochs: list[Epoch] = []
    if files is not None and resume:
        epochs = _restore(files, settings, record, trainer)
    elif written is not None:
        written.begin(settings, record["dataset"], record["task"])
    with _told(callbacks, {"settings": settings.as_dict(), **record}, trainer) as outcome:
        for epoch in trainer.epochs():
            epochs.append(epoch)
            if written is not None:
                written.add(epoch)
                save_checkpoint(trainer, written.checkpoint)
            for callback in callbacks:
                callback.epoch(epoch)
        result = _result(trainer, epochs)
        outcome.append(result)
        model = trainer.finish()
        if files is not None:
            predictions = {name: trainer.predict(name) for name in problem.held_out}  # by all processes
            if written is not None:
                write_table(_prediction_table(predictions, problem, dataset, settings.task), written.path / PREDICTIONS)
                model.save(written.path)
                written.finish(result)
            processes.wait()
    return Run(
        model.cpu().eval(),
        problem.objective,
        settings.task,
        dataset.schema,
        problem.classes,
        record["task"]["weighted"],
        epochs,
        result,
        None if files is None else files.path,
        problem.features,
    )


def _make_model(settings: RunSettings, problem: Problem, wrapped: IdentityAwareModel | None) -> Predictor:
    """The network with a head for the problem, with weights drawn from the seed."""
    torch.manual_seed(seed_of(settings.seed, "weights"))
    outputs = problem.objective.num_outputs
    if wrapped is None:
        return make_predictor(
            settings.model,
            problem.level,
            problem.in_channels,
            outputs,
            problem.edge_dim,
            problem.symmetric,
            problem.features.num_embeddings,
        )
    if problem.features.kind == "embedding":
        raise ValueError(
            "features is 'embedding', learned vectors in the first layer of an IDGNN, but model is a model of your "
            "own. Use onehot, or give the nodes their numbers as x and look vectors up in your model."
        )
    warn_of_lost_direction(problem, settings.task, wrapped)
    return wrapped_predictor(wrapped, problem.level, outputs, _first_graph(problem.train), problem.symmetric)


@contextmanager
def _told(callbacks: Sequence[Callback], record: dict[str, Any], trainer: Trainer) -> Iterator[list[dict[str, Any]]]:
    """Tells callbacks of the beginning, of steps, and of the end, also after an error: those that have begun.

    The block appends its result to the list that it is given; without one, callbacks are told `None`.
    """
    outcome: list[dict[str, Any]] = []
    begun: list[Callback] = []

    def step(done: int, steps: int) -> None:
        for callback in callbacks:
            callback.step(trainer.epoch + 1, done, steps)

    trainer.on_step = step
    try:
        for callback in callbacks:
            callback.begin(record, num_parameters(trainer.model))
            begun.append(callback)
        yield outcome
    finally:
        for callback in begun:
            callback.end(outcome[0] if outcome else None)


def _record(dataset: Dataset, problem: Problem) -> dict[str, dict[str, Any]]:
    """The entries of `run.json` about the data and the task."""
    return {
        "dataset": {
            "name": dataset.name,
            "graphs": len(dataset),
            "checksum": dataset.checksum(),
            "schema": None if dataset.schema is None else dataset.schema.as_dict(),
        },
        "task": {
            "level": problem.level,
            "objective": problem.objective.as_dict(),
            "metric": problem.objective.metric,
            "classes": problem.classes,
            "weighted": problem.train.edge_weight is not None,
            "features": problem.features.as_dict(),
        },
    }


def _first_graph(part: QuerySet) -> Data:
    """The first graph of a part that has edges, if there is one."""
    first = part.owner[part.edge_index[0, :1]]
    graph = part.subset(first.cpu() if first.numel() else torch.zeros(1, dtype=torch.long))
    return Data(graph.x, graph.edge_index, graph.edge_attr, edge_weight=graph.edge_weight)


def _restore(files: RunFolder, settings: RunSettings, record: dict[str, Any], trainer: Trainer) -> list[Epoch]:
    """Restores the state of the trainer after the last saved epoch; returns the epochs up to it."""
    written = files.read()
    if written["result"] is not None:
        raise ValueError(f"the run in {files.path} is finished. Start another in a new folder to train longer.")
    if RunSettings.from_dict(written["settings"]) != settings:
        raise ValueError(f"the run in {files.path} has other settings. Resume it with its own, or start a new one.")
    if written["dataset"]["checksum"] != record["dataset"]["checksum"]:
        raise ValueError(
            f"the data have changed since the run in {files.path} was started. Restore them, or start a new run."
        )
    if files.checkpoint.is_file():
        load_checkpoint(trainer, files.checkpoint)
    trainer.processes.wait()  # all have read the files before the first one writes
    if trainer.processes.first:
        return files.discard_after(trainer.epoch)
    return [epoch for epoch in files.epochs() if epoch.epoch <= trainer.epoch]


def _result(trainer: Trainer, epochs: list[Epoch]) -> dict[str, Any]:
    """The metrics at the last epoch and at the best one on the validation part, and the size of the network."""
    best = next(epoch for epoch in epochs if epoch.epoch == (trainer.best_epoch or epochs[-1].epoch))
    return {
        "metric": trainer.problem.objective.metric,
        "last": {"epoch": epochs[-1].epoch, **epochs[-1].metrics},
        "best": {"epoch": best.epoch, **best.metrics},
        "num_parameters": num_parameters(trainer.model),
        "width": trainer.model.width,
        "seconds": sum(epoch.seconds for epoch in epochs),
    }


def _prediction_table(
    predictions: Mapping[str, Predictions], problem: Problem, dataset: Dataset, task: TaskSettings
) -> PredictionTable:
    """The predictions for all held-out queries, with their labels."""
    classes = problem.classes
    found: dict[str, list[Any]] = {}
    for name, part in problem.held_out.items():
        predicted, ids = predictions[name], problem.graph_ids[name]
        table = {
            "part": [name] * predicted.target.size(0),
            **query_columns(part, [dataset.graphs[i] for i in ids], ids, TASKS[task.name].pair_columns),
            **{
                column: class_names_of(values, classes)
                for column, values in problem.objective.labels(predicted.target).items()
            },
            **prediction_columns(problem.objective.read(predicted.out), classes),
        }
        for column, values in table.items():
            found.setdefault(column, []).extend(values)
    return found
