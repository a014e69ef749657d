"""Over which nodes and edges numbers of files are scaled."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.files.read import read_files
from idgnn.graphs.schema import ColumnSchema
from idgnn.graphs.sources import FileSource
from idgnn.tasks.problem import Problem
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.ready_data import ready
from idgnn.training.run_settings import RunSettings
from tests.graphs.files.written import write


def read(tmp_path, num_graphs: int) -> Dataset:
    """Rings of 12 nodes with chords; `age` of the nodes, `km` of the edges, and a label of each node and graph."""
    ends = [(g, i, (i + step) % 12) for g in range(num_graphs) for i in range(12) for step in (1, 3)]
    edges = "".join(f"{u},{v},g{g},{100 * g + u * v}\n" for g, u, v in ends)
    nodes = "".join(f"{i},g{g},{1000 * g + i * i},{i % 2}\n" for g in range(num_graphs) for i in range(12))
    return read_files(
        FileSource(
            write(tmp_path / "e.csv", "source,target,graph,km\n" + edges),
            write(tmp_path / "n.csv", "id,graph,age,y\n" + nodes),
            label="y",
        )
    )


def fitted(dataset: Dataset, task: TaskSettings) -> tuple[Problem, ColumnSchema, ColumnSchema]:
    """The problem, and what was fitted for `age` and for `km`."""
    found, problem = ready(dataset, RunSettings("python", task), own_network=False)
    assert found.schema is not None
    (age,), (km,) = found.schema.node, found.schema.edge
    return problem, age, km


def assert_fitted(column: ColumnSchema, values: Tensor) -> None:
    values = values.double()
    assert column.mean == pytest.approx(values.mean().item(), rel=1e-5)
    assert column.scale == pytest.approx(values.std(correction=0).item(), rel=1e-5)


def joined(values: Iterable[Tensor]) -> Tensor:
    return torch.cat([each.flatten() for each in values])


def test_of_one_graph_over_all_nodes_and_edges_the_held_out_nodes_too(tmp_path):
    dataset = read(tmp_path, 1)
    problem, age, km = fitted(dataset, TaskSettings(name="node-classification"))
    (graph,) = dataset.graphs
    assert problem.train.queries is not None and problem.train.queries.numel() < graph.num_nodes
    assert_fitted(age, graph.x)
    assert_fitted(km, graph.edge_attr)


def test_of_links_over_the_edges_that_carry_messages_in_training(tmp_path):
    dataset = read(tmp_path, 1)
    problem, age, km = fitted(dataset, TaskSettings(name="link-prediction"))
    (graph,) = dataset.graphs
    weight = dict(zip(map(tuple, graph.edge_index.t().tolist()), graph.edge_attr.flatten().tolist(), strict=True))
    carried = [weight[u, v] for u, v in problem.train.edge_index.t().tolist()]
    assert len(carried) < graph.num_edges
    assert_fitted(age, graph.x)
    assert_fitted(km, torch.tensor(carried))


@pytest.mark.parametrize("name", ["node-classification", "shortest-path"])
def test_of_many_graphs_over_those_of_the_training_part(tmp_path, name):
    dataset = read(tmp_path, 10)
    problem, age, km = fitted(dataset, TaskSettings(name=name))
    training = [dataset.graphs[i] for i in problem.graph_ids["train"]]
    assert len(training) == 8
    assert_fitted(age, joined(graph.x for graph in training))
    assert_fitted(km, joined(graph.edge_attr for graph in training))
