"""A batch cut out of what was prepared once is the batch that is prepared by itself."""

import pytest
import torch
from torch_geometric.data import Data

from idgnn.identity.cost import TooLargeError
from idgnn.models.predictor import make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.query_set import QuerySet, stack
from idgnn.training import batches as module
from idgnn.training.batches import Batches
from idgnn.training.evaluation import predict_all
from tests.training.small_problems import graphs_for

LEVELS = ("node", "some nodes", "pair", "graph")


def predictions(model):
    """What the model computes for a batch."""
    return lambda batch: model(batch.ready, batch.graph, batch.num_graphs)


def all_predictions(model, batches: Batches, size: int) -> torch.Tensor:
    return predict_all(model, lambda items: map(predictions(model), batches.each(items)), batches.num_items, size)


def part_of(asked: str) -> QuerySet:
    """Six graphs with everything on their edges; one has no edges, and one has no queries."""
    graphs = [*graphs_for("node-clustering", 5), Data(x=torch.randn(3, 2), edge_index=torch.empty(2, 0).long())]
    queries = None
    for data in graphs:
        data.edge_attr, data.edge_weight = torch.randn(data.num_edges, 3), torch.rand(data.num_edges) + 0.5
    if asked == "some nodes":
        queries = [torch.randint(data.num_nodes, (4,)) for data in graphs]
        queries[1] = queries[1][:0]
    elif asked == "pair":
        queries = [torch.randint(data.num_nodes, (2, 5)) for data in graphs]
        queries[1] = queries[1][:, :0]
    level = "node" if asked == "some nodes" else asked
    sizes = [1 if level == "graph" else data.num_nodes for data in graphs]
    sizes = sizes if queries is None else [each.size(-1) for each in queries]
    return stack(level, graphs, queries, [torch.randn(size) for size in sizes])


def network(part: QuerySet, conv: str = "gcn", identity: str = "full"):
    heads = 2 if conv == "gat" else 1
    model = make_predictor(
        ModelSettings(conv=conv, identity=identity, width=8, layers=3, heads=heads), part.level, 2, 4, 3
    )
    for norm in model.encoder.norms:
        norm.module.running_mean.normal_()
        norm.module.running_var.uniform_(0.5, 2)
    return model.eval()


@pytest.mark.parametrize("asked", LEVELS)
@pytest.mark.parametrize("identity", ["full", "fast", "none"])
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin", "gine"])
def test_cut_and_prepared_batches_are_answered_alike(conv, identity, asked):
    part = part_of(asked)
    model = network(part, conv, identity)
    cut, prepared = Batches(part, model.encoder), Batches(part, model.encoder)
    assert cut.whole is not None
    prepared.whole = None
    for ids in ([0, 1, 2, 3, 4, 5], [4, 1, 5, 0], [3], [2, 3]):
        ours, theirs = (each.cut(torch.tensor(ids)) for each in (cut, prepared))
        assert torch.equal(ours.graph, theirs.graph) and torch.equal(ours.target, theirs.target)
        assert ours.num_graphs == theirs.num_graphs == len(ids)
        with torch.no_grad():
            mine, other = (predictions(model)(each) for each in (ours, theirs))
        assert mine.shape[0] == ours.target.numel()
        assert torch.allclose(mine, other, atol=1e-5), (mine - other).abs().max()
        assert float(mine.std()) > 1e-3 or mine.numel() == 4


@pytest.mark.parametrize("asked", LEVELS)
def test_the_size_of_batches_changes_no_answer(asked):
    part = part_of(asked)
    model = network(part)
    batches = Batches(part, model.encoder)
    everything = all_predictions(model, batches, 100)
    for size in (2, 4):
        assert torch.allclose(all_predictions(model, batches, size), everything, atol=1e-5)


@pytest.mark.parametrize(("conv", "takes"), [("gcn", "edge_weight"), ("gine", "edge_attr")])
def test_what_lies_on_edges_reaches_the_layers_that_take_it(conv, takes):
    part = part_of("node")
    model = network(part, conv)
    batch = Batches(part, model.encoder).cut(torch.arange(6))
    with torch.no_grad():
        expected = model.head(model.encoder(part.x, part.edge_index, **{takes: getattr(part, takes)}))
        other = model.head(model.encoder(part.x, part.edge_index, **{takes: getattr(part, takes) + 1}))
        assert torch.allclose(predictions(model)(batch), expected, atol=1e-5)
    assert not torch.allclose(expected, other, atol=1e-5)


@pytest.mark.parametrize("error", [TooLargeError("too large"), torch.OutOfMemoryError("full")])
def test_what_does_not_fit_as_a_whole_is_prepared_batch_by_batch(error, monkeypatch):
    def too_large(*_):
        raise error

    part = part_of("pair")
    model = network(part)
    expected = all_predictions(model, Batches(part, model.encoder), 3)
    monkeypatch.setattr(module, "PreparedGraphs", too_large)
    batches = Batches(part, model.encoder)
    assert batches.whole is None
    assert torch.allclose(all_predictions(model, batches, 3), expected, atol=1e-5)
