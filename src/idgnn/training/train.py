"""From a dataset and settings to a trained network and the folder of its run."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.choices import TaskName
from idgnn.graphs.dataset import Dataset, select
from idgnn.graphs.files.read import read_files
from idgnn.graphs.load import load
from idgnn.graphs.schema import Schema, fit_standardization, standardize
from idgnn.graphs.sources import FileSource, Selection
from idgnn.models.budget import num_parameters
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.predictor import Predictor, check_wrapped, make_predictor, wrapped_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import TASKS, Problem, make_problem
from idgnn.tasks.query_set import QuerySet, as_list, restore_integers
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
from idgnn.training.processes import Processes, joined
from idgnn.training.run_folder import PREDICTIONS, Epoch, RunFolder
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.seeds import seed_of
from idgnn.training.trained import Run
from idgnn.training.trainer import Trainer

PYTHON = "python"  # the name, in settings, of graphs that were passed in Python
GRAPHS = "the graphs"  # their name in error messages


def train(
    data: str | FileSource | Data | Sequence[Data],
    task: TaskName | TaskSettings,
    *,
    model: ModelSettings | IdentityAwareModel | None = None,
    training: TrainOptions | None = None,
    selection: Selection | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Trains a network on a dataset by name, on files, or on graphs.

    Started by `torchrun`, all processes train together. Each of them returns the run; only the first one writes files
    and calls the callbacks.

    Args:
        data: The name of a dataset, files, a graph or graphs.
        task: The task, by name or with all its settings.
        model: The network: its settings, or a model of your own that :func:`idgnn.identity_aware` wrapped. A copy of it
            is trained, starting from its weights, with a head for the task on its output; the given model is not
            changed. It is called with `x` and `edge_index`, and with `edge_attr` and `edge_weight` if it takes them;
            integer features stay integers.
        training: How it is trained.
        selection: Which graphs are used.
        seed: Determines the split, the initial weights, and all randomness in training.
        folder: The folder that the run is written to; `None` writes nothing.
        resume: Whether to continue the run in `folder`, which must have the same settings and data.
        callbacks: Called before the first epoch, after each epoch and at the end.

    Example:
        >>> from idgnn.graphs.synthetic import random_regular
        >>> graphs = random_regular(8, num_nodes=10, degree=3, seed=0)
        >>> run = train(graphs, "shortest-path", training=TrainOptions(epochs=2, batch_size=4))
        >>> sorted(run.result)
        ['best', 'last', 'metric', 'num_parameters', 'seconds', 'width']
    """
    source = data.absolute() if isinstance(data, FileSource) else data if isinstance(data, str) else PYTHON
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ValueError(f"seed is {seed!r}, expected a whole number from 0 to 2^63 - 1.")
    task = task if isinstance(task, TaskSettings) else TaskSettings(name=task)
    wrapped, own_network = None, None
    if not isinstance(model, ModelSettings | None):
        check_wrapped(model)
        wrapped, own_network, model = copy.deepcopy(model), type(model.module).__name__, None
    settings = RunSettings(
        source, task, model or ModelSettings(), training or TrainOptions(), selection or Selection(), seed, own_network
    )
    if folder is None and resume:
        raise ValueError("resume continues the run in a folder, but no folder was given. Name it.")
    with joined(settings.training.device) as processes:
        with processes.one_before_others():  # one process downloads and caches for all
            dataset = dataset_of(data, settings)
        return train_dataset(dataset, settings, processes, wrapped, folder, resume, callbacks)


def train_dataset(
    dataset: Dataset,
    settings: RunSettings,
    processes: Processes,
    wrapped: IdentityAwareModel | None = None,
    folder: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """:func:`train` on graphs that were read, in processes that have joined."""
    files = None if folder is None else RunFolder(Path(folder))
    if not processes.first:
        return _train(settings, wrapped, dataset, files, resume, (), processes)
    with nullcontext() if files is None else files.lock():
        return _train(settings, wrapped, dataset, files, resume, callbacks, processes)


def dataset_of(data: str | FileSource | Data | Sequence[Data], settings: RunSettings) -> Dataset:
    """The graphs that were given, or that a name or files stand for."""
    if isinstance(data, str | FileSource):
        return read_data(replace(settings, data=data))
    return _selected(Dataset(GRAPHS, as_list(data)), settings.selection)


def read_data(settings: RunSettings) -> Dataset:
    """The graphs that the settings name."""
    if isinstance(settings.data, str):
        dataset = load(settings.data)
    else:
        quantity = TASKS[settings.task.name].quantity
        dataset = read_files(settings.data, quantity=quantity)
    return _selected(dataset, settings.selection)


def _selected(dataset: Dataset, chosen: Selection) -> Dataset:
    if chosen == Selection():
        return dataset
    return select(dataset, min_nodes=chosen.min_nodes, min_edges=chosen.min_edges, smallest=chosen.smallest)


def _train(
    settings: RunSettings,
    wrapped: IdentityAwareModel | None,
    dataset: Dataset,
    files: RunFolder | None,
    resume: bool,
    callbacks: Sequence[Callback],
    processes: Processes,
) -> Run:
    problem = make_problem(dataset, settings.task, settings.seed)
    if wrapped is None:
        _warn_of_integers(dataset)
    else:
        problem = _with_features(problem, lambda name, values: restore_integers(dataset.graphs, name, values))
    if dataset.schema is not None:
        schema = fit_standardization(dataset.schema, problem.train.x, problem.train.edge_attr)
        dataset, problem = replace(dataset, schema=schema), _standardized(problem, schema)
    torch.manual_seed(seed_of(settings.seed, "weights"))
    objective = problem.objective
    level, outputs = problem.level, objective.num_outputs
    if wrapped is None:
        model = make_predictor(
            settings.model,
            level,
            problem.in_channels,
            outputs,
            problem.edge_dim,
            problem.symmetric,
            problem.features.num_embeddings,
        )
    else:
        if problem.features.kind == "embedding":
            raise ValueError(
                "features is 'embedding', learned vectors in the first layer of an IDGNN, but model is a model of your "
                "own. Use onehot, or give the nodes their numbers as x and look vectors up in your model."
            )
        model = wrapped_predictor(wrapped, level, outputs, _first_graph(problem.train), problem.symmetric)
    record = _record(dataset, problem)
    if isinstance(settings.data, FileSource):
        _warn_of_unused_edge_data(problem, model)
    trainer = Trainer(model, problem, settings.training, settings.seed, processes)
    written = files if processes.first else None
    epochs: list[Epoch] = []
    if files is not None and resume:
        epochs = _restore(files, settings, record, trainer)
    elif written is not None:
        written.begin(settings, record["dataset"], record["task"])
    result, begun = None, []
    try:
        for callback in callbacks:
            callback.begin({"settings": settings.as_dict(), **record}, num_parameters(model))
            begun.append(callback)
        trainer.on_step = lambda done, steps: _tell(callbacks, trainer.epoch + 1, done, steps)
        for epoch in trainer.epochs():
            epochs.append(epoch)
            if written is not None:
                written.add(epoch)
                save_checkpoint(trainer, written.checkpoint)
            for callback in callbacks:
                callback.epoch(epoch)
        result = _result(trainer, epochs)
        model = trainer.finish()
        if files is not None:
            predictions = {name: trainer.predict(name) for name in problem.held_out}  # by all processes
            if written is not None:
                write_table(_prediction_table(predictions, problem, dataset, settings.task), written.path / PREDICTIONS)
                model.save(written.path)
                written.finish(result)
            processes.wait()
    finally:
        for callback in begun:
            callback.end(result)
    assert result is not None
    path = None if files is None else files.path
    return Run(
        model.cpu().eval(),
        objective,
        settings.task,
        dataset.schema,
        problem.classes,
        record["task"]["weighted"],
        epochs,
        result,
        path,
        problem.features,
    )


def _tell(callbacks: Sequence[Callback], epoch: int, done: int, steps: int) -> None:
    for callback in callbacks:
        callback.step(epoch, done, steps)


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


def _standardized(problem: Problem, schema: Schema) -> Problem:
    """The problem with standardized features."""

    def change(name: str, values: Tensor) -> Tensor:
        columns = schema.node if name == "x" else schema.edge
        return standardize(columns, values) if columns else values

    return _with_features(problem, change)


def _with_features(problem: Problem, change: Callable[[str, Tensor], Tensor]) -> Problem:
    """The problem with changed `x` and `edge_attr`; parts that share a graph still share its features."""
    done: dict[int, Tensor] = {}

    def part(given: QuerySet) -> QuerySet:
        values: dict[str, Tensor] = {}
        for name in ("x", "edge_attr"):
            features = getattr(given, name)
            if features is not None:
                if id(features) not in done:
                    done[id(features)] = change(name, features)
                values[name] = done[id(features)]
        return replace(given, **values)

    held_out = {name: part(each) for name, each in problem.held_out.items()}
    return replace(problem, train=part(problem.train), held_out=held_out)


def _warn_of_integers(dataset: Dataset) -> None:
    """Integers are codes of categories more often than amounts, and a network reads features as amounts."""
    for name in ("x", "edge_attr"):
        given = (graph.get(name) for graph in dataset.graphs)
        kinds = {values.dtype for values in given if isinstance(values, Tensor)}
        if any(not kind.is_floating_point and kind != torch.bool for kind in kinds):
            warnings.warn(
                f"{name} holds integers, which are read as amounts. If they are categories, code them one-hot before, "
                f"with torch_geometric.utils.one_hot; if they are amounts, convert them with {name}.float().",
                stacklevel=2,
            )


def _first_graph(part: QuerySet) -> Data:
    """The first graph of a part that has edges, if there is one."""
    first = part.owner[part.edge_index[0, :1]]
    graph = part.subset(first.cpu() if first.numel() else torch.zeros(1, dtype=torch.long))
    return Data(graph.x, graph.edge_index, graph.edge_attr, edge_weight=graph.edge_weight)


def _warn_of_unused_edge_data(problem: Problem, model: Predictor) -> None:
    encoder = model.settings["encoder"]
    own = encoder.get("own_network")
    for name, values, what, layer in (
        ("edge_attr", problem.train.edge_attr, "features", "gine"),
        ("edge_weight", problem.train.edge_weight, "weights", "gcn"),
    ):
        if values is not None and not model.encoder.takes(name):
            unused = f"{encoder['conv']} does not read; {layer} does" if own is None else f"{own} does not take: {name}"
            warnings.warn(f"the edges have {what}, which {unused}.", stacklevel=2)


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
