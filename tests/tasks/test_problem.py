"""From a dataset and a task to parts, queries and an objective."""

import json
from dataclasses import replace
from typing import get_args

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data

from idgnn.choices import TASK_LEVEL, GraphPattern, NodePattern, TaskName
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.labels import node_clustering
from idgnn.graphs.synthetic import random_regular
from idgnn.tasks.link_prediction import LinkObjective
from idgnn.tasks.objective import Binary, Classes, Quantity
from idgnn.tasks.problem import TASKS, OneClassWarning, Problem, make_problem, objective_from_dict
from idgnn.tasks.quantities import Quantities
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings

NAMES = get_args(TaskName)


def test_every_task_name_has_a_definition():
    assert tuple(TASKS) == NAMES and tuple(TASK_LEVEL) == NAMES


def small_graphs(number: int = 20, seed: int = 0) -> list[Data]:
    """Graphs of different sizes, with the number of the graph and of the node as features."""
    graphs = []
    for i in range(number):
        graph = nx.gnp_random_graph(6 + i % 4, 0.5, seed=seed + i)
        edges = torch.tensor(sorted(graph.to_directed().edges)).view(-1, 2).t()
        size = graph.number_of_nodes()
        x = torch.stack([torch.full((size,), i), torch.arange(size)], dim=1).float()
        graphs.append(Data(x=x, edge_index=edges))
    return graphs


def labeled(name: str, number: int = 20) -> list[Data]:
    """Labels that a task of this name can be made from, a function of the number of the graph and of the node."""
    graphs = small_graphs(number)
    for i, graph in enumerate(graphs):
        nodes = torch.arange(graph.num_nodes)
        if name.startswith("node"):
            graph.y = (nodes + i) % 3
        elif name.startswith("graph"):
            graph.y = torch.tensor([i % 3])
        else:
            graph.edge_label_index = torch.stack([nodes, nodes.flip(0)])
            graph.edge_label = (nodes + i) % 3
        if name.endswith("regression"):
            graph.y = graph.y * 1.5
        graph.node_counts = ((nodes + i) % 3).float().unsqueeze(1).repeat(1, len(get_args(NodePattern)))
        graph.graph_counts = torch.full((1, len(get_args(GraphPattern))), float(i))
    return graphs


def dataset_for(name: str, number: int = 20) -> Dataset:
    return Dataset("python", labeled(name, number))


def parts_of(problem: Problem) -> dict[str, QuerySet]:
    return {"train": problem.train.epoch(torch.Generator().manual_seed(0)), **problem.held_out}


def graphs_in(part: QuerySet) -> list[int]:
    return part.x[:, 0].unique().int().tolist()


@pytest.mark.parametrize("options", [{}, {"test": 0.2}, {"split": "folds", "folds": 4, "fold": 3}])
@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_made_and_no_graph_is_in_two_parts(name, options):
    dataset = dataset_for(name)
    problem = make_problem(dataset, TaskSettings(name=name, bins=4, pairs=30, **options))
    assert problem.level == TASK_LEVEL[name] and problem.in_channels == 2 and problem.edge_dim is None
    parts = parts_of(problem)
    assert list(parts) == ["train", "valid", "test"][: 3 if "test" in options else 2]
    assert set(problem.graph_ids) == set(parts)
    for part_name, part in parts.items():
        assert graphs_in(part) == sorted(problem.graph_ids[part_name])
        assert part.target is not None and part.level == problem.level
        asked = part.num_graphs if part.level == "graph" else part.query_owner.numel()
        assert part.target.size(0) == asked > 0
    seen = [i for ids in problem.graph_ids.values() for i in ids]
    assert sorted(seen) == sorted(set(seen))
    if name != "link-prediction":
        assert sorted(seen) == list(range(20))
    special = {"link-prediction": LinkObjective, "node-regression": Quantity, "graph-regression": Quantity}
    special |= {"node-counting": Quantities, "graph-counting": Quantities}
    assert type(problem.objective) is special.get(name, Classes)


@pytest.mark.parametrize("name", ["node-classification", "graph-classification", "pair-classification"])
def test_queries_and_labels_stay_together(name):
    """Labels were made from the numbers of graph and node, which are also the features."""
    problem = make_problem(dataset_for(name), TaskSettings(name=name), seed=5)
    for part in parts_of(problem).values():
        if part.level == "graph":
            first = torch.cat([torch.zeros(1, dtype=torch.bool), part.owner.diff() > 0])
            first[0] = True
            expected = part.x[first, 0] % 3
        elif part.queries is None:
            expected = part.x.sum(1) % 3
        else:
            expected = part.x[part.queries if part.queries.dim() == 1 else part.queries[0]].sum(1) % 3
        assert torch.equal(part.target, expected.long())


def test_the_labels_of_clustering_are_those_of_the_graphs():
    graphs = small_graphs()
    problem = make_problem(Dataset("python", graphs), TaskSettings(name="node-clustering", bins=4))
    expected = node_clustering(graphs, 4)
    for name, part in parts_of(problem).items():
        assert torch.equal(part.target, torch.cat([expected[i].y for i in problem.graph_ids[name]]))


def test_the_distances_of_shortest_paths_are_those_of_networkx():
    graphs = small_graphs()
    problem = make_problem(Dataset("python", graphs), TaskSettings(name="shortest-path", pairs=40, cutoff=2))
    for part in parts_of(problem).values():
        graph = nx.DiGraph(list(map(tuple, part.edge_index.t().tolist())))
        graph.add_nodes_from(range(part.x.size(0)))
        for read, colored, label in zip(*part.queries.tolist(), part.target.tolist(), strict=True):
            assert label == min(2, nx.shortest_path_length(graph, colored, read))


def test_the_seed_decides_the_split_and_nothing_else():
    dataset = dataset_for("shortest-path")
    task = TaskSettings(name="shortest-path", pairs=20)
    one, again, other = (make_problem(dataset, task, seed) for seed in (1, 1, 2))
    assert one.graph_ids == again.graph_ids != other.graph_ids

    def labels(problem):
        """For each graph, its pairs and their labels."""
        return {
            graph: part.subset(torch.tensor([place])).queries.tolist()
            for name, part in parts_of(problem).items()
            for place, graph in enumerate(problem.graph_ids[name])
        }

    assert labels(one) == labels(other)


def test_folds_hold_out_every_graph_once_with_the_classes_in_equal_shares():
    dataset = dataset_for("graph-classification", 30)
    held = []
    for fold in range(5):
        problem = make_problem(dataset, TaskSettings(name="graph-classification", split="folds", folds=5, fold=fold))
        held += problem.graph_ids["valid"]
        assert problem.held_out["valid"].target.bincount().tolist() == [2, 2, 2]
    assert sorted(held) == list(range(30))


def test_folds_that_come_with_a_dataset_are_kept():
    folds = [{"train": torch.tensor([3, 1, 0]), "valid": torch.tensor([2])}, {"train": torch.tensor([2, 3])}]
    folds[1]["valid"] = torch.tensor([5, 4])
    dataset = Dataset("python", labeled("graph-classification", 6), provided_folds=folds)
    task = TaskSettings(name="graph-classification", split="folds", folds=2)
    for fold, (train, valid) in enumerate([([3, 1, 0], [2]), ([2, 3], [5, 4])]):
        assert make_problem(dataset, replace(task, fold=fold)).graph_ids == {"train": train, "valid": valid}
    with pytest.raises(ValueError, match="folds is 3, but python comes with 2 folds"):
        make_problem(dataset, replace(task, folds=3))


def test_the_provided_split_is_kept():
    split = {"train": torch.tensor([4, 1, 0]), "valid": torch.tensor([2]), "test": torch.tensor([5, 3])}
    dataset = Dataset("python", labeled("graph-classification", 6), provided_split=split)
    problem = make_problem(dataset, TaskSettings(name="graph-classification", split="provided"))
    assert {name: sorted(ids) for name, ids in problem.graph_ids.items()} == {
        "train": [0, 1, 4],
        "valid": [2],
        "test": [3, 5],
    }
    with pytest.raises(ValueError, match=r"no split comes with python. Use split random or folds"):
        make_problem(dataset_for("graph-classification"), TaskSettings(name="graph-classification", split="provided"))


def test_a_provided_split_without_a_training_part_is_refused():
    dataset = Dataset("python", labeled("graph-classification", 6), provided_split={"valid": torch.tensor([2, 3])})
    with pytest.raises(ValueError, match="train"):
        make_problem(dataset, TaskSettings(name="graph-classification", split="provided"))


def one_graph(**values) -> Dataset:
    graph = random_regular(1, 40, 3)[0]
    graph.x = torch.arange(40).float().unsqueeze(-1)
    for name, value in values.items():
        graph[name] = value
    return Dataset("python", [graph])


def test_the_nodes_of_one_graph_are_split():
    y = torch.arange(40) % 4
    problem = make_problem(one_graph(y=y), TaskSettings(name="node-classification", test=0.2), seed=3)
    parts = parts_of(problem)
    for part in parts.values():
        assert torch.equal(part.target, y[part.queries]) and part.x.size(0) == 40
    asked = torch.cat([part.queries for part in parts.values()])
    assert sorted(asked.tolist()) == list(range(40))
    assert [part.queries.numel() for part in parts.values()] == [24, 8, 8]


def test_folds_of_the_nodes_of_one_graph():
    y, held = torch.arange(40) % 4, []
    for fold in range(5):
        task = TaskSettings(name="node-classification", split="folds", folds=5, fold=fold)
        part = make_problem(one_graph(y=y), task).held_out["valid"]
        assert torch.equal(part.target, y[part.queries]) and part.target.bincount().tolist() == [2] * 4
        held += part.queries.tolist()
    assert sorted(held) == list(range(40))


def test_the_masks_of_one_graph_are_its_provided_split():
    y = torch.arange(40) % 4
    y[3] = -1
    masks = {"train_mask": torch.arange(40) < 20, "val_mask": torch.arange(40) >= 30}
    problem = make_problem(one_graph(y=y, **masks), TaskSettings(name="node-classification", split="provided"))
    assert sorted(problem.train.queries.tolist()) == [i for i in range(20) if i != 3]
    assert sorted(problem.held_out["valid"].queries.tolist()) == list(range(30, 40))


@pytest.mark.parametrize("split", ["random", "folds"])
@pytest.mark.parametrize("name", ["node-classification", "node-regression"])
@pytest.mark.parametrize("number", [1, 20])
def test_nodes_without_a_label_are_never_queries(name, split, number):
    graphs = labeled(name, number) if number > 1 else one_graph(y=torch.arange(40) % 3).graphs
    unknown = torch.nan if name == "node-regression" else -1
    known = 0
    for graph in graphs:
        graph.y = graph.y.double() if name == "node-regression" else graph.y
        graph.y[::3] = unknown
        known += int((graph.y >= 0).sum())
    graphs[-1].y[1:] = graphs[-1].y[1:] if number == 1 else unknown  # all of them: in no part
    known -= 0 if number == 1 else int((torch.arange(graphs[-1].num_nodes) % 3 > 0).sum())
    problem = make_problem(Dataset("python", graphs), TaskSettings(name=name, split=split, folds=4))
    targets = torch.cat([part.target for part in parts_of(problem).values()])
    assert targets.numel() == known and bool((targets >= 0).all())
    if number > 1:
        assert sorted(i for ids in problem.graph_ids.values() for i in ids) == list(range(number - 1))


@pytest.mark.parametrize("name", ["graph-classification", "graph-regression"])
def test_graphs_without_a_label_are_in_no_part(name):
    graphs = labeled(name)
    for graph in graphs[::4]:
        graph.y = torch.tensor([torch.nan if name == "graph-regression" else -1])
    problem = make_problem(Dataset("python", graphs), TaskSettings(name=name))
    assert sorted(i for ids in problem.graph_ids.values() for i in ids) == [i for i in range(20) if i % 4]
    assert all(bool((part.target >= 0).all()) for part in parts_of(problem).values())


def test_pairs_without_a_label_are_never_queries():
    graphs = labeled("pair-classification")
    for graph in graphs:
        graph.edge_label[0] = -1
    problem = make_problem(Dataset("python", graphs), TaskSettings(name="pair-classification"))
    for part in parts_of(problem).values():
        assert bool((part.target >= 0).all()) and part.target.numel() == part.queries.size(1)


def test_every_label_of_a_pair_needs_its_pair():
    graphs = labeled("pair-classification")
    graphs[0].edge_label = graphs[0].edge_label[:-1]
    with pytest.raises(ValueError, match="edge_label"):
        make_problem(Dataset("python", graphs), TaskSettings(name="pair-classification"))


@pytest.mark.parametrize("name", ["node-classification", "graph-classification", "pair-classification"])
@pytest.mark.parametrize(
    "dtype",
    [
        torch.uint8,
        pytest.param(torch.int32),
        pytest.param(torch.int16),
    ],
)
def test_labels_may_be_small_whole_numbers(name, dtype):
    graphs = labeled(name)
    for graph in graphs:
        for key in ("y", "edge_label"):
            if graph.get(key) is not None:
                graph[key] = graph[key].to(dtype)
    problem = make_problem(Dataset("python", graphs), TaskSettings(name=name))
    target = problem.train.target
    assert problem.objective.loss(torch.zeros(target.numel(), 3), target).isfinite()


@pytest.mark.parametrize("name", ["node-regression", "graph-regression"])
def test_quantities_may_be_negative_whole_numbers(name):
    graphs = labeled(name)
    for i, graph in enumerate(graphs):
        graph.y = torch.full_like(graph.y, i - 10, dtype=torch.long)
    problem = make_problem(Dataset("python", graphs), TaskSettings(name=name))
    assert min(float(part.target.min()) for part in parts_of(problem).values()) == -10


def test_two_classes_are_yes_and_no():
    graphs = labeled("graph-classification")
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([[i % 2]])  # as some PyG datasets have it
    found = make_problem(Dataset("python", graphs), TaskSettings(name="graph-classification")).objective
    assert replace(found, majority=None) == Binary()


def test_a_class_that_training_never_sees_is_counted():
    graphs = labeled("graph-classification")
    for graph in graphs:
        graph.y = torch.tensor([0])
    graphs[7].y = torch.tensor([5])
    problem = make_problem(Dataset("python", graphs), TaskSettings(name="graph-classification"))
    assert replace(problem.objective, majority=None) == Classes(6)


def test_quantities_are_standardized_by_the_training_part_alone():
    problem = make_problem(dataset_for("graph-regression"), TaskSettings(name="graph-regression"))
    assert problem.objective == Quantity.of(problem.train.target)


@pytest.mark.parametrize("name", ["node-classification", "node-regression", "graph-classification", "graph-regression"])
def test_graphs_without_labels_are_refused(name):
    level = name.split("-")[0]
    with pytest.raises(ValueError, match=rf"has no y, but {name} expects .* Name the column with the labels"):
        make_problem(Dataset("python", small_graphs()), TaskSettings(name=name))
    other = labeled("graph-classification" if level == "node" else "node-classification")
    with pytest.raises(ValueError, match=rf"has a y of shape .* but {name} expects"):
        make_problem(Dataset("python", other), TaskSettings(name=name))
    unknown = labeled(name)
    for graph in unknown:
        graph.y = torch.full_like(graph.y, torch.nan if graph.y.is_floating_point() else -1)
    with pytest.raises(ValueError, match=rf"no label for task {name} is known in python"):
        make_problem(Dataset("python", unknown), TaskSettings(name=name))


def test_one_graph_without_labels_is_refused():
    with pytest.raises(ValueError, match="no label for task node-classification is known in python"):
        make_problem(one_graph(y=torch.full((40,), -1)), TaskSettings(name="node-classification"))


def test_graphs_without_pairs_are_refused():
    with pytest.raises(
        ValueError, match=r"has no pairs for pair-classification. Name a table of pairs .* or set edge_label_index"
    ):
        make_problem(Dataset("python", small_graphs()), TaskSettings(name="pair-classification"))


@pytest.mark.parametrize("y", [1, ["a"] * 40, [0.5] * 40], ids=["a number", "names", "numbers"])
def test_labels_that_are_no_tensor_are_refused_with_their_type(y):
    with pytest.raises(ValueError, match=rf"a graph has y of type {type(y).__name__}, expected a tensor"):
        make_problem(one_graph(y=y), TaskSettings(name="node-classification"))


def test_pair_labels_that_are_no_tensor_are_refused_with_their_type():
    dataset = one_graph(edge_label_index=torch.tensor([[0, 1], [2, 3]]), edge_label=[0, 1])
    with pytest.raises(ValueError, match="a graph has edge_label of type list, expected a tensor"):
        make_problem(dataset, TaskSettings(name="pair-classification"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_infinite_labels_are_refused(dtype):
    y = torch.arange(40).to(dtype)
    y[3], y[5] = torch.nan, torch.inf if dtype == torch.float32 else 1e300
    with pytest.raises(ValueError, match=r"1 of 40 labels for node-regression are infinite, .* expected finite"):
        make_problem(one_graph(y=y), TaskSettings(name="node-regression"))


@pytest.mark.parametrize("name", ["node-classification", "pair-classification"])
def test_of_negative_classes_minus_1_alone_is_unknown(name):
    label = torch.arange(40) % 3
    label[7] = -1
    pairs = torch.stack([torch.arange(40), torch.arange(40)])

    def problem():
        values = {"y": label} if name.startswith("node") else {"edge_label_index": pairs, "edge_label": label}
        return make_problem(one_graph(**values), TaskSettings(name=name))

    assert replace(problem().objective, majority=None) == Classes(3)
    label[9] = -2
    with pytest.raises(ValueError, match=rf"a label for {name} is -2, expected classes 0, 1, 2, ..., or -1"):
        problem()


def test_quantities_are_no_classes():
    with pytest.raises(ValueError, match=r"labels are quantities, such as .* Use graph-regression"):
        make_problem(dataset_for("graph-regression"), TaskSettings(name="graph-classification"))


def test_folds_of_the_edges_of_one_graph_are_refused():
    """Only shares of the edges can be held out; an option that has no effect is refused."""
    with pytest.raises(ValueError, match="split"):
        make_problem(one_graph(), TaskSettings(name="link-prediction", split="folds"))


def test_one_class_is_no_task():
    dataset = one_graph(y=torch.zeros(40, dtype=torch.long))
    with pytest.raises(ValueError, match="all labels for node-classification are the same, expected at least two"):
        make_problem(dataset, TaskSettings(name="node-classification"))


@pytest.mark.parametrize("name", NAMES)
def test_no_graphs_are_refused(name):
    with pytest.raises(ValueError, match="there are no graphs, expected at least one"):
        make_problem(Dataset("python", []), TaskSettings(name=name))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"valid": 0.0}, "valid is 0.0 and test is 0.0"),
        ({"valid": 0.6, "test": 0.4}, "leave something to train on"),
        ({"test": -0.1}, "test is -0.1"),
        ({"supervision": 1.0}, "supervision is 1.0"),
        ({"fold": 10}, "fold is 10 of 10"),
        ({"fold": -1}, "fold is -1, expected a whole number of at least 0"),
        ({"fold": "a"}, "fold is 'a', expected a whole number"),
        ({"folds": 1}, "folds is 1, expected a whole number of at least 2"),
        ({"valid": "a"}, "valid is 'a', expected a finite number"),
        ({"test": None}, "test is None, expected a finite number"),
        ({"bins": 0}, "bins is 0, expected a whole number of at least 1"),
        ({"pairs": 0}, "pairs is 0"),
        ({"cutoff": 0}, "cutoff is 0"),
        ({"split": "kfold"}, "split is 'kfold'"),
        ({"name": "graph-coloring"}, "name is 'graph-coloring', expected one of node-classification"),
    ],
)
def test_settings_that_make_no_task_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        TaskSettings(**{"name": "graph-clustering", **options})


def test_a_held_out_part_of_a_single_class_is_warned_of():
    graphs = [
        Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([0])) for _ in range(9)
    ]
    graphs[0].y = torch.tensor([1])
    with pytest.warns(OneClassWarning, match=r"labels of the valid part are the same, and roc_auc, .* NaN\. Hold more"):
        make_problem(Dataset("some", graphs), TaskSettings("graph-classification", valid=0.3))


@pytest.mark.parametrize("name", ["shortest-path", "pair-classification", "link-prediction"])
def test_a_provided_split_of_nodes_cannot_split_the_pairs_of_one_graph(name):
    masks = {"train_mask": torch.arange(40) < 20, "val_mask": torch.arange(40) >= 30}
    nodes = torch.arange(40)
    pairs = {"edge_label_index": torch.stack([nodes, nodes.flip(0)]), "edge_label": nodes % 3}
    expected = f"split is 'provided', but {name} .* of a single graph.* Use split='random'"
    with pytest.raises(ValueError, match=expected):
        make_problem(one_graph(**masks, **pairs), TaskSettings(name=name, split="provided"))


def test_rare_classes_count_as_much_as_others_and_the_metric_is_chosen():
    graph = Data(x=torch.ones(10, 1), edge_index=torch.zeros(2, 0, dtype=torch.long), y=torch.tensor([0] * 8 + [1, 2]))
    settings = TaskSettings(name="node-classification", class_weights="balanced", metric="macro_f1")
    problem = make_problem(Dataset("ten", [graph]), settings)
    objective = problem.objective
    count = torch.bincount(problem.train.target, minlength=3)
    assert objective.metric == "macro_f1" and objective.majority == 0
    present = count > 0
    weighted = torch.tensor(objective.class_weights) * count
    assert torch.allclose(weighted[present], weighted[present][0].expand(int(present.sum())))
    assert objective_from_dict(json.loads(json.dumps(objective.as_dict()))) == objective
    with pytest.raises(ValueError, match=r"metric is 'mrr', but node-classification is measured by accuracy, macro_f1"):
        make_problem(Dataset("ten", [graph]), TaskSettings(name="node-classification", metric="mrr"))
    with pytest.raises(ValueError, match="class_weights are for classifications, and node-regression is none"):
        make_problem(
            Dataset("ten", [Data(x=graph.x, edge_index=graph.edge_index, y=torch.rand(10))]),
            TaskSettings(name="node-regression", class_weights="balanced"),
        )
