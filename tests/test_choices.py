"""Names of choices and defaults of options, which are written down once without PyTorch, agree with the code."""

import inspect
from dataclasses import MISSING, fields
from typing import get_args

import networkx as nx
import numpy as np
import pytest
import torch

from idgnn import IDGNN, AddCycleCounts, FileSource, IdentityConv, ModelSettings, TaskSettings, TrainOptions
from idgnn.choices import (
    TASK_LEVEL,
    TASK_METRICS,
    Aggregation,
    ConvName,
    CycleScale,
    EdgeInput,
    Identity,
    Level,
    MetricName,
    TaskName,
    TwoColorOptions,
)
from idgnn.graphs.sources import Selection
from idgnn.identity.cycle_features import cycle_features
from idgnn.layers.identity_conv import OPERATORS
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import EncoderConfig, LayerOptions
from idgnn.tasks.link_prediction import LinkObjective
from idgnn.tasks.objective import Binary, Classes, Quantity
from idgnn.tasks.problem import TASKS
from idgnn.tasks.quantities import Quantities


def defaults(kind: type) -> dict[str, object]:
    return {each.name: each.default for each in fields(kind)}


def test_layers_are_the_operators():
    assert get_args(ConvName) == tuple(OPERATORS)


def test_scales_are_those_of_the_counts():
    graph = nx.lollipop_graph(4, 3)
    adjacency = nx.to_numpy_array(graph)
    edge_index = torch.tensor(sorted(graph.to_directed().edges)).t()
    walk = adjacency / adjacency.sum(1, keepdims=True)

    def closed(matrix: np.ndarray) -> np.ndarray:
        return np.stack([np.diag(np.linalg.matrix_power(matrix, k)) for k in range(1, 6)], axis=1)

    expected = {"log": np.log1p(closed(adjacency)), "counts": closed(adjacency), "walk": closed(walk)}
    assert set(get_args(CycleScale)) == {*expected, "standardized"}
    for scale in expected:
        assert np.allclose(cycle_features(edge_index, 7, 5, scale), expected[scale])
    for scale in get_args(CycleScale):
        assert AddCycleCounts(scale=scale).scale == scale
    with pytest.raises(ValueError, match="takes its statistics from the training graphs"):
        cycle_features(edge_index, 7, 5, "standardized")
    with pytest.raises(ValueError, match="scale is 'sqrt', expected one of"):
        cycle_features(edge_index, 7, 5, "sqrt")


def test_aggregations_are_those_of_sage():
    """Of the messages 1 and 3, with weights of 1 and biases of 0."""
    edge_index, x = torch.tensor([[0, 1], [2, 2]]), torch.tensor([[1.0], [3.0], [0.0]])
    found = {}
    for aggr in get_args(Aggregation):
        layer = IdentityConv("sage", 1, 1, identity=False, bias=False, aggr=aggr)
        for weight in layer.parameters():
            torch.nn.init.constant_(weight, 1.0 if weight.dim() > 1 else 0.0)
        found[aggr] = layer(x, edge_index)[2].item()
    assert found == {"max": 3.0, "mean": 2.0, "sum": 4.0}
    with pytest.raises(ValueError, match="aggr is 'median', expected 'max', 'mean' or 'sum'"):
        IdentityConv("sage", 1, 1, aggr="median")


def test_versions_of_a_network_are_those_of_idgnn():
    assert [IDGNN(1, 4, 2, identity=each).identity for each in get_args(Identity)] == ["full", "fast", "none"]


def test_levels_are_those_of_the_tasks_and_of_the_heads():
    assert set(get_args(Level)) == set(TASK_LEVEL.values())
    heads = [type(make_predictor(ModelSettings(width=4), each, 1, 2, None).head).__name__ for each in get_args(Level)]
    assert heads == ["NodeHead", "PairHead", "GraphHead"]


def test_tasks_are_those_with_a_definition():
    names = {name for kind in get_args(TaskName) for name in (get_args(kind) or (kind,))}
    assert names == set(TASKS) == set(TASK_LEVEL)


def test_metrics_are_those_of_the_objectives():
    binary, classes = set(Binary.metrics), set(Classes.metrics)
    for name, metrics in TASK_METRICS.items():
        kind = name.split("-")[-1]
        if name == "link-prediction":
            assert set(metrics) == set(LinkObjective.metrics)
        elif kind in ("regression", "counting"):
            assert set(metrics) == set(Quantity.metrics) == set(Quantities.metrics)
        else:
            assert set(metrics) == binary | classes
    assert {each for metrics in TASK_METRICS.values() for each in metrics} == set(get_args(MetricName))
    with pytest.raises(ValueError, match="metric is 'mae', but link-prediction is measured by roc_auc"):
        TaskSettings(name="link-prediction", metric="mae")


@pytest.mark.parametrize(
    ("kind", "given", "sentence"),
    [
        (ModelSettings, {"symmetric": "yes"}, "symmetric is 'yes', expected True or False"),
        (ModelSettings, {"symmetric": 1}, "symmetric is 1, expected True or False"),
        (TrainOptions, {"compile": "no"}, "compile is 'no', expected True or False"),
        (TrainOptions, {"device": 0}, "device is 0, expected a text"),
        (FileSource, {"edges": "e.csv", "directed": "no"}, "directed is 'no', expected True or False"),
        (FileSource, {"edges": "e.csv", "label": 3}, "label is 3, expected a text"),
        (TaskSettings, {"name": "link-prediction", "metric": "auc"}, "metric is 'auc', expected one of accuracy"),
        (Selection, {"min_nodes": "3"}, "min_nodes is '3', expected a whole number"),
    ],
)
def test_values_of_another_type_are_refused(kind, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        kind(**given)


def test_edge_inputs_are_arguments_of_a_network():
    assert set(get_args(EdgeInput)) < set(inspect.signature(IDGNN.forward).parameters)


def test_options_of_idgnn_are_the_fields_of_its_config():
    parameters = dict(inspect.signature(IDGNN).parameters)
    assert set(parameters) == {each.name for each in fields(EncoderConfig)}
    for each in fields(EncoderConfig):
        expected = inspect.Parameter.empty if each.default is MISSING else each.default
        assert parameters[each.name].default == expected, each.name


def test_every_option_reaches_the_config_and_the_network_again():
    given = {
        "in_channels": 1,
        "hidden_channels": 8,
        "out_channels": 2,
        "num_layers": 2,
        "conv": "sage",
        "identity": "full",
        "cycle_length": 4,
        "cycle_scale": "walk",
        "color": "message",
        "colors": 2,
        "second": "ball",
        "radius": 3,
        "pool": "mean",
        "with_self": True,
        "directed": True,
        "dropout": 0.3,
        "residual": True,
        "act": "silu",
        "normalize": False,
        "aggr": "mean",
        "heads": 2,
        "edge_dim": 5,
        "num_embeddings": 6,
    }
    same = [name for name, value in defaults(EncoderConfig).items() if given[name] == value]
    assert same == ["identity"]  # the full version alone has two colors
    for options in (given, given | {"identity": "fast", "colors": 1} | defaults(TwoColorOptions)):
        model = IDGNN(**options)
        assert model.settings == options
        assert IDGNN(**model.settings).config == model.config == EncoderConfig(**options)


def test_settings_of_a_run_have_the_defaults_of_the_encoder():
    shared = defaults(LayerOptions)
    assert {name: defaults(ModelSettings)[name] for name in shared} == shared
    assert {name: defaults(EncoderConfig)[name] for name in shared} == shared


def test_settings_of_a_run_reach_the_encoder():
    settings = ModelSettings(conv="gine", identity="fast", aggr="sum", heads=3, cycle_length=4, cycle_scale="counts")
    made = settings.encoder("pair", in_channels=2, width=6, edge_dim=7)
    assert made == EncoderConfig(
        in_channels=2,
        hidden_channels=6,
        out_channels=None,
        num_layers=5,
        conv="gine",
        identity="fast",
        aggr="sum",
        heads=3,
        cycle_length=4,
        cycle_scale="counts",
        edge_dim=7,
    )
    assert ModelSettings(conv="gin").encoder("node", 2, 6, edge_dim=7).edge_dim is None
