"""From a dataset and settings to a trained network and the folder of its run."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from torch_geometric.data import Data

from idgnn.choices import TaskName
from idgnn.graphs.dataset import Dataset, select
from idgnn.graphs.files.read import read_files
from idgnn.graphs.load import load
from idgnn.graphs.sources import FileSource, Selection
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.predictor import check_wrapped
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import TASKS
from idgnn.tasks.query_set import as_list
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.callbacks import Callback
from idgnn.training.processes import Processes, joined
from idgnn.training.run_folder import RunFolder
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.single_run import run
from idgnn.training.trained import Run

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
    wrapped, own_network, reading = None, None, ""
    if not isinstance(model, ModelSettings | None):
        check_wrapped(model)
        wrapped, own_network, reading = copy.deepcopy(model), type(model.module).__name__, model.reading
        model = None
    settings = RunSettings(
        source,
        task,
        model or ModelSettings(),
        training or TrainOptions(),
        selection or Selection(),
        seed,
        own_network,
        reading,
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
        return run(settings, wrapped, dataset, files, resume, (), processes)
    with nullcontext() if files is None else files.lock():
        return run(settings, wrapped, dataset, files, resume, callbacks, processes)


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
