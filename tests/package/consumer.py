"""Checked by pyright, never run: what a user's type checker knows of the installed package."""
# pyright: strict

from pathlib import Path
from typing import Any, assert_type

from torch import Tensor
from torch_geometric.data import Data  # pyright: ignore[reportMissingTypeStubs]

import idgnn
from idgnn import IDGNN, FileSource, ModelSettings, Run, TaskSettings, TrainOptions


def networks(model: IDGNN, data: Data, edge_index: Tensor, pairs: Tensor) -> None:
    """Results are tensors, options are literals."""
    assert_type(model.embed(data, memory="1GiB"), Tensor)
    assert_type(idgnn.cycle_counts(edge_index, 4, length=3), Tensor)
    assert_type(idgnn.walk_counts(edge_index, 4, pairs, length=3), Tensor)
    IDGNN(1, 8, 4, conv="transformer")  # pyright: ignore[reportArgumentType]
    IDGNN(1, 8, 4, identity="quick")  # pyright: ignore[reportArgumentType]


def graphs(data: Data) -> None:
    """The identity graph is a class of its own, and its cost has numbers."""
    assert_type(idgnn.identity_graph(data, num_layers=3), idgnn.IdentityGraph)
    assert_type(idgnn.identity_cost(data, num_layers=3).rows, int)


def runs(data: list[Data]) -> dict[str, Any]:
    """Settings are checked, and a run knows what it holds."""
    run = idgnn.train(
        data,
        TaskSettings("node-classification", valid=0.25),
        model=ModelSettings(conv="gin", identity="full", width=16),
        training=TrainOptions(epochs=5),
    )
    assert_type(run, Run)
    TaskSettings("node-clasification")  # pyright: ignore[reportArgumentType]
    TrainOptions(epoch=5)  # pyright: ignore[reportCallIssue]
    run.predict(FileSource(Path("edges.csv")))
    return run.result
