"""Standardized counts: fitted on the training graphs alone, saved with the weights, the same in every path."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from idgnn import IDGNN, AddCycleCounts, ModelSettings, RootLoader
from idgnn.identity.cycle_features import cycle_features
from tests.models.small_graphs import ladder
from tests.training.small_problems import QUICK, problem_for, trainer_for

GRAPHS = [ladder(4), ladder(5, seed=1), ladder(3, seed=2)]


def network(**options) -> IDGNN:
    torch.manual_seed(0)
    return IDGNN(3, 8, 2, num_layers=2, conv="gin", identity="fast", cycle_length=5, **options).double().eval()


def double(graph: Data) -> Data:
    return Data(x=graph.x.double(), edge_index=graph.edge_index)


def by_hand(graphs: list[Data]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and deviation of log(1 + diag(A^k)), by matrix powers."""
    rows = []
    for graph in graphs:
        adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
        np.add.at(adjacency, tuple(graph.edge_index.numpy()), 1)
        rows.append(np.stack([np.diag(np.linalg.matrix_power(adjacency, k)) for k in range(1, 6)], axis=1))
    counts = np.log1p(np.concatenate(rows))
    return counts.mean(0), counts.std(0)


def test_it_is_the_log_scale_shifted_and_scaled():
    model, log = network(), network(cycle_scale="log")
    log.load_state_dict({name: value for name, value in model.state_dict().items() if "count_scale" not in name})
    model.fit_cycle_scale(GRAPHS)
    mean, deviation = by_hand(GRAPHS)
    assert deviation[0] == 0  # no self-loops
    deviation[0] = 1
    np.testing.assert_allclose(model.count_scale.mean, mean)
    np.testing.assert_allclose(model.count_scale.deviation, deviation)
    graph = double(GRAPHS[1])
    counts = cycle_features(graph.edge_index, graph.num_nodes, 5)
    scaled = (counts - torch.tensor(mean)) / torch.tensor(deviation)
    expected = log(graph.x, graph.edge_index, counts=scaled)
    torch.testing.assert_close(model(graph.x, graph.edge_index), expected)
    torch.testing.assert_close(model(graph.x, graph.edge_index, counts=counts), expected)
    torch.testing.assert_close(model.embed(graph), expected)
    assert not torch.allclose(log(graph.x, graph.edge_index), expected)


def test_the_transform_gives_what_the_network_is_fed_with():
    add = AddCycleCounts(length=5, scale="standardized").fit(GRAPHS)
    model = network()
    model.fit_cycle_scale(GRAPHS)
    graph = double(GRAPHS[0])
    seen = model.count_scale(model.prepare(graph.x, graph.edge_index).x)
    torch.testing.assert_close(add(graph).x, seen)
    batch = add(Batch.from_data_list([double(each) for each in GRAPHS]))
    torch.testing.assert_close(batch.x[: graph.num_nodes], seen)


def test_before_it_is_fitted_the_transform_says_what_to_do():
    with pytest.raises(ValueError, match=r"Call fit\(graphs\) with the training graphs"):
        AddCycleCounts(scale="standardized")(GRAPHS[0])
    with pytest.raises(ValueError, match="'log', which needs no statistics"):
        AddCycleCounts().fit(GRAPHS)
    with pytest.raises(ValueError, match="no nodes to standardize counts by"):
        AddCycleCounts(scale="standardized").fit([])


def test_without_a_fit_the_first_training_batch_decides_and_evaluation_never():
    model, graph = network(), double(GRAPHS[0])
    model(graph.x, graph.edge_index)
    assert not model.count_scale.fitted and model.count_scale.mean.eq(0).all()
    model.train()
    model(graph.x, graph.edge_index)
    mean = by_hand(GRAPHS[:1])[0]
    np.testing.assert_allclose(model.count_scale.mean, mean)
    other = double(GRAPHS[1])
    model(other.x, other.edge_index)
    np.testing.assert_allclose(model.count_scale.mean, mean)


def test_batches_of_roots_see_the_same_numbers():
    model, graph = network(), double(GRAPHS[1])
    model.fit_cycle_scale(GRAPHS)
    expected = model(graph.x, graph.edge_index)
    for batch in RootLoader(graph, model, batch_size=3):
        torch.testing.assert_close(model.run(batch.ready), expected[batch.queries])


def test_statistics_are_saved_with_the_weights(tmp_path):
    model, graph = network(), double(GRAPHS[1])
    model.fit_cycle_scale(GRAPHS)
    model.save(tmp_path)
    read = IDGNN.load(tmp_path)
    assert read.count_scale.fitted
    assert torch.equal(read(graph.x, graph.edge_index), model(graph.x, graph.edge_index))


@pytest.mark.parametrize("by_query", [None, 5])
def test_training_fits_on_the_training_part_alone(by_query):
    problem = problem_for("node-clustering")
    options = replace(QUICK, query_batch_size=by_query)
    trainer = trainer_for(problem, options, ModelSettings(identity="fast", width=8, layers=2, cycle_length=5))
    scale, part = trainer.model.encoder.count_scale, problem.train
    mean, _ = by_hand([Data(edge_index=part.edge_index, num_nodes=part.x.size(0))])
    np.testing.assert_allclose(scale.mean, mean, atol=1e-6)
    trainer.train_epoch()
    np.testing.assert_allclose(scale.mean, mean, atol=1e-6)
