"""The sum over the marked copy of every node, against one colored copy of the graph per node."""

import pytest
import torch
from hypothesis import given, settings

from idgnn.experiments.copy_sum import CopySum, ExpressivePredictor, build_expressive, copies_of
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings
from tests.experiments.variants import answers, asked, prepared_alone, scores
from tests.laws import brute_force
from tests.laws.graphs import CHANNELS, EDGE_DIM, graphs
from tests.training.small_problems import problem_for

FULL = ModelSettings(conv="gin", identity="full", width=8, layers=3)


def network(conv: str, layers: int) -> CopySum:
    edge_dim = EDGE_DIM if conv == "gine" else None
    model = CopySum(CHANNELS, 4, None, layers, conv, edge_dim=edge_dim, normalize=False).double().eval()
    model.lin_out = torch.nn.Linear(4, 4).double()  # the brute force has one
    torch.nn.init.eye_(model.lin_out.weight)
    torch.nn.init.zeros_(model.lin_out.bias)
    return model


def reached(edge_index: torch.Tensor, root: int, steps: int) -> set[int]:
    found = {root}
    for _ in range(steps):
        found |= {target for source, target in edge_index.t().tolist() if source in found}
    return found


@pytest.mark.parametrize("conv", ["gin", "gine"])
@pytest.mark.parametrize("layers", [1, 3])
@settings(max_examples=25)
@given(data=graphs())
def test_it_is_the_sum_over_a_colored_copy_of_the_graph(conv, layers, data):
    model = network(conv, layers)
    edge = {"edge_attr": data.edge_attr} if conv == "gine" else {}
    given_x, copied_x = data.x.clone().requires_grad_(), data.x.clone().requires_grad_()
    found = model(given_x, data.edge_index, **edge)
    expected = []
    for root in range(data.num_nodes):
        colored = torch.arange(data.num_nodes) == root
        h = brute_force.network(model, copied_x, data.edge_index, colored, **edge)
        within = sorted(reached(data.edge_index, root, layers))
        expected.append(torch.cat([h[root], h[within].sum(0)]))
    wanted = torch.stack(expected)
    torch.testing.assert_close(found, wanted)
    weight = torch.linspace(-1, 1, found.numel()).double().view_as(found)
    ours, theirs = ((weight * out).sum() for out in (found, wanted))
    torch.testing.assert_close(
        torch.autograd.grad(ours, given_x)[0], torch.autograd.grad(theirs, copied_x)[0], atol=1e-9, rtol=1e-6
    )


@given(data=graphs())
@settings(max_examples=25)
def test_some_nodes_in_any_order_get_what_they_get_among_all(data):
    model = network("gin", 2)
    every = model(data.x, data.edge_index)
    chosen = torch.arange(data.num_nodes).flip(0)[::2]
    torch.testing.assert_close(model(data.x, data.edge_index, queries=chosen), every[chosen])


def test_graphs_in_a_batch_do_not_see_each_other():
    model = network("gin", 3)
    parts = [problem_for("node-regression").train.subset(torch.tensor([i])) for i in (0, 1)]
    alone = [model(torch.ones(part.x.size(0), CHANNELS).double(), part.edge_index) for part in parts]
    edges = torch.cat([parts[0].edge_index, parts[1].edge_index + parts[0].x.size(0)], dim=1)
    size = sum(part.x.size(0) for part in parts)
    torch.testing.assert_close(model(torch.ones(size, CHANNELS).double(), edges), torch.cat(alone))


def test_copies_of_nothing_are_nothing():
    begin, pairs = copies_of(torch.zeros(2, 0, dtype=torch.long), 0, 3)
    assert begin.tolist() == [0] and pairs.shape == (2, 0)


def build(task: str, copy: bool):
    def make(settings_: RunSettings, problem):
        return build_expressive(RunSettings("python", TaskSettings(task), settings_.model), problem, copy)

    return make


@pytest.mark.parametrize("task", ["node-regression", "graph-classification"])
@pytest.mark.parametrize("copy", [False, True])
def test_a_batch_that_is_cut_out_gives_what_its_graphs_give(task, copy):
    problem = problem_for(task)
    model = build(task, copy)(RunSettings("python", TaskSettings(task), FULL), problem).double()
    assert isinstance(model, ExpressivePredictor)
    part = asked(problem)
    for chosen in ([0, 1, 2], [5, 3], [4]):
        torch.testing.assert_close(answers(model, part, chosen), prepared_alone(model, part, chosen))


@pytest.mark.parametrize("copy", [False, True])
def test_it_is_trained_and_repeats(copy):
    found = scores(build("node-regression", copy), "node-regression", FULL, epochs=3)
    assert found == scores(build("node-regression", copy), "node-regression", FULL, epochs=3)
    assert found[-1][0] < found[0][0]


def test_what_it_is_not_for_is_refused():
    with pytest.raises(ValueError, match="expected nodes or graphs, a given width, and 'full'"):
        build("shortest-path", False)(
            RunSettings("python", TaskSettings("shortest-path"), FULL), problem_for("shortest-path")
        )
    fast = ModelSettings(conv="gin", identity="fast", width=8)
    with pytest.raises(ValueError, match="identity is 'fast', expected"):
        build("node-regression", True)(
            RunSettings("python", TaskSettings("node-regression"), fast), problem_for("node-regression")
        )
    with pytest.raises(ValueError, match=r"queries has shape \[2, 1\], expected nodes"):
        network("gin", 1)(torch.ones(2, CHANNELS).double(), torch.tensor([[0], [1]]), queries=torch.tensor([[0], [1]]))
