"""Options that were given but have no effect with the others: a result would look as if they mattered."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from idgnn.cli.arguments import changed
from idgnn.training.run_settings import RunSettings


def unused_options(settings: RunSettings, written: Collection[str] = (), identity_given: bool = True) -> list[str]:
    """A sentence for each option that was written, or is not at its default, and has no effect.

    Those that depend on the identity are left out if it is still to be chosen.

    Example:
        >>> from idgnn.models.settings import ModelSettings
        >>> from idgnn.tasks.task_settings import TaskSettings
        >>> unused_options(RunSettings("Cora", TaskSettings(name="node-classification"), ModelSettings(heads=4)))
        ['--heads has no effect without --conv gat. Leave it out.']
    """
    task, model, training = settings.task, settings.model, settings.training

    def without(given: Any, names: tuple[str, ...], used: bool, condition: str) -> list[str]:
        options = [] if used else changed(given, only=names, written=written)
        return [f"{option} has no effect without {condition}. Leave it out." for option in options]

    second_nodes = model.colors == 2 and task.level != "pair"  # of a pair, the second node is its other end
    found = [
        *without(model, ("symmetric", "pair_head"), task.level == "pair", "a task about pairs of nodes"),
        *without(model, ("aggr",), model.conv == "sage", "--conv sage"),
        *without(model, ("heads",), model.conv == "gat", "--conv gat"),
        *without(model, ("pool",), model.colors == 2, "--colors 2"),
        *without(model, ("second", "with_self"), second_nodes, "--colors 2 and a task about nodes or graphs"),
        *without(model, ("radius",), second_nodes and model.second == "ball", "--colors 2 --second ball"),
        *without(task, ("bins",), task.name.endswith("clustering"), "a clustering task"),
        *without(task, ("pairs", "cutoff"), task.name == "shortest-path", "--task shortest-path"),
        *without(task, ("supervision",), task.name == "link-prediction", "--task link-prediction"),
        *without(task, ("error",), task.name.endswith(("regression", "counting")), "a regression"),
        *without(task, ("patterns",), task.name.endswith("counting"), "a task that counts patterns"),
        *without(task, ("folds", "fold"), task.split == "folds", "--split folds"),
    ]
    if identity_given:
        found += without(model, ("cycle_length", "cycle_scale"), model.identity == "fast", "--identity fast")
        found += without(model, ("color",), model.identity == "full", "--identity full")
    if model.width is not None and changed(model, only=("budget",), written=written):
        found.append("--budget has no effect beside --width. Leave one of them out.")
    if training.query_batch_size is not None and changed(training, only=("batch_size",), written=written):
        found.append("--batch-size has no effect beside --query-batch-size. Leave one of them out.")
    return found
