"""A dataset as the network of a run is given it: the problem with its features standardized, and warnings of those
that it will not read as the user may expect."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.schema import Schema, fit_standardization, standardize
from idgnn.identity.adjacency import is_symmetric
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.predictor import Predictor
from idgnn.tasks.problem import Problem, make_problem
from idgnn.tasks.query_set import QuerySet, restore_integers
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings


def ready(dataset: Dataset, settings: RunSettings, own_network: bool) -> tuple[Dataset, Problem]:
    """The problem, and the dataset with what was fitted on its training part.

    A model of the user's own is given integers as they are.
    """
    problem = make_problem(dataset, settings.task, settings.seed)
    if own_network:
        problem = _with_features(problem, lambda name, values: restore_integers(dataset.graphs, name, values))
    else:
        _warn_of_integers(dataset)
    if dataset.schema is None:
        return dataset, problem
    schema = fit_standardization(dataset.schema, problem.train.x, problem.train.edge_attr)
    return replace(dataset, schema=schema), _standardized(problem, schema)


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


def warn_of_unused_edge_data(problem: Problem, model: Predictor) -> None:
    """Warns if the edges of files have features or weights that the layers do not read."""
    encoder = model.settings["encoder"]
    own = encoder.get("own_network")
    for name, values, what, layer in (
        ("edge_attr", problem.train.edge_attr, "features", "gine"),
        ("edge_weight", problem.train.edge_weight, "weights", "gcn"),
    ):
        if values is not None and not model.encoder.takes(name):
            unused = f"{encoder['conv']} does not read; {layer} does" if own is None else f"{own} does not take: {name}"
            warnings.warn(f"the edges have {what}, which {unused}.", stacklevel=2)


def warn_of_lost_direction(problem: Problem, task: TaskSettings, model: IdentityAwareModel) -> None:
    """Warns if pairs have a direction that a wrapped model with two colors does not see; settings see to it."""
    if problem.level != "pair" or problem.symmetric or model.second_nodes is None or model.second_nodes.directed:
        return
    if task.name == "shortest-path" and is_symmetric(problem.train.edge_index, problem.train.owner.numel()):
        return
    warnings.warn(
        "the model has two colors and answers the pairs (u, v) and (v, u) alike, but in this task they may have "
        "different labels. If they do, wrap it with directed=True: idgnn.identity_aware(..., colors=2, directed=True).",
        stacklevel=2,
    )
