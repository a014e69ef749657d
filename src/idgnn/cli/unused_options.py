"""Options that were given but have no effect with the others: a result would look as if they mattered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from idgnn.training.run_settings import RunSettings, TrainOptions


def unused_options(settings: RunSettings, identity_given: bool = True) -> list[str]:
    """A sentence for each option that is not at its default and has no effect.

    Those that depend on the identity are left out if it is still to be chosen.

    Example:
        >>> from idgnn.models.settings import ModelSettings
        >>> from idgnn.tasks.task_settings import TaskSettings
        >>> unused_options(RunSettings("Cora", TaskSettings(name="node-classification"), ModelSettings(heads=4)))
        ['--heads has no effect without --conv gat. Leave it out.']
    """
    task, model, training = settings.task, settings.model, settings.training
    second_nodes = model.colors == 2 and task.level != "pair"  # of a pair, the second node is its other end
    found = [
        *_without(model, ("symmetric", "pair_head"), task.level == "pair", "a task about pairs of nodes"),
        *_without(model, ("aggr",), model.conv == "sage", "--conv sage"),
        *_without(model, ("heads",), model.conv == "gat", "--conv gat"),
        *_without(model, ("pool",), model.colors == 2, "--colors 2"),
        *_without(model, ("second", "with_self"), second_nodes, "--colors 2 and a task about nodes or graphs"),
        *_without(model, ("radius",), second_nodes and model.second == "ball", "--colors 2 --second ball"),
        *_without(task, ("bins",), task.name.endswith("clustering"), "a clustering task"),
        *_without(task, ("pairs", "cutoff"), task.name == "shortest-path", "--task shortest-path"),
        *_without(task, ("supervision",), task.name == "link-prediction", "--task link-prediction"),
        *_without(task, ("error",), task.name.endswith(("regression", "counting")), "a regression"),
        *_without(task, ("patterns",), task.name.endswith("counting"), "a task that counts patterns"),
        *_without(task, ("folds", "fold"), task.split == "folds", "--split folds"),
    ]
    if identity_given:
        found += _without(model, ("cycle_length", "cycle_scale"), model.identity == "fast", "--identity fast")
        found += _without(model, ("color",), model.identity == "full", "--identity full")
    if model.width is not None and model.budget != type(model).budget:
        found.append("--budget has no effect beside --width. Leave one of them out.")
    if training.query_batch_size is not None and training.batch_size != TrainOptions.batch_size:
        found.append("--batch-size has no effect beside --query-batch-size. Leave one of them out.")
    return found


def _without(given: Any, names: tuple[str, ...], used: bool, condition: str) -> Iterator[str]:
    default = {each.name: each.default for each in fields(given)}
    for name in names:
        if not used and getattr(given, name) != default[name]:
            yield f"--{name.replace('_', '-')} has no effect without {condition}. Leave it out."
