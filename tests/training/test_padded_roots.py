"""A step on a padded batch of roots is the step on the batch."""

import copy
import warnings

import pytest
import torch
from torch_geometric.data import Data

from idgnn.models.large_graph import LargeGraph
from idgnn.training.batches import GraphBatch
from idgnn.training.padded_roots import _MOST_RENEWALS, PaddedRoots
from idgnn.training.recorder import Recorder
from tests.training.fake_cache import FakeCache
from tests.training.test_padded_batches import assert_same, network, part_of, result, values_of

DOUBLE = torch.float64


def large_graph(model, part) -> LargeGraph:
    data = Data(part.x, part.edge_index, part.edge_attr, edge_weight=part.edge_weight)
    graph = LargeGraph(model.encoder, data)
    graph.blocks, graph.by_source = None, True  # as for a network on a GPU
    return graph


@pytest.mark.parametrize("asked", ["node", "pair"])
@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin", "gine"])
def test_padding_changes_nothing(conv, identity, asked):
    part = part_of(asked, DOUBLE, "cpu")
    start = network(part, conv, identity)
    graph, padded = large_graph(start, part), PaddedRoots(torch.device("cpu"))
    size = part.x.size(0)
    every = torch.arange(size)
    batches = [every[5:20], every[:9], every, every[3:16:2]]
    for roots, fanout in [(some, ()) for some in batches] + [(every[4:14], (2, 3, 2))]:
        queries = roots if asked == "node" else torch.stack([roots, (roots + 2) % size])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ready = graph.prepare(queries, fanout, seed=3)
        batch = GraphBatch(ready, torch.zeros_like(roots), 1, roots.double())
        found = padded.load(batch)
        assert found is not None and padded.padded is not None
        ours, theirs = copy.deepcopy(start), copy.deepcopy(start)
        mine = padded.padded.cut(found)
        assert torch.equal(mine.target[mine.real], batch.target)
        assert mine.real.numel() > roots.numel(), "nothing was padded"
        if asked == "pair" and identity == "full":  # the head reads both directions; here the encoder alone is compared
            ours.symmetric = theirs.symmetric = False
        expected = values_of(result(theirs, batch), theirs)
        assert_same(values_of(result(ours, mine), ours), expected, expected, 1e-12)


def test_what_was_recorded_is_dropped_when_a_batch_does_not_fit():
    """A larger batch has other tensors, and a recording would go on with the old ones."""
    part = part_of("node", DOUBLE, "cpu")
    model = network(part, "gcn", "full")
    graph, cache = large_graph(model, part), FakeCache()
    recorder, every = Recorder(cache), torch.arange(part.x.size(0))
    seen = []
    for roots in (every[:4], every[:4], every.repeat(40), every[:4]):
        batch = GraphBatch(graph.prepare(roots), torch.zeros_like(roots), 1, roots.double())

        def step(given, batch=batch):
            assert torch.equal(given.target[given.real], batch.target)
            return model(given.ready, given.graph, given.num_graphs)[given.real].detach()

        out = recorder.run_roots("predict", batch, torch.device("cpu"), step)
        assert torch.allclose(out, model(batch.ready, batch.graph, 1), atol=1e-9)
        seen.append(len(cache.kept))
    assert seen == [1, 1, 1, 2]


def test_batches_of_many_forms_are_run_as_they_are():
    part = part_of("node", DOUBLE, "cpu")
    model = network(part, "gcn", "full")
    graph, padded = large_graph(model, part), PaddedRoots(torch.device("cpu"))
    padded._renewals = _MOST_RENEWALS
    batch = GraphBatch(graph.prepare(torch.arange(9)), torch.zeros(9), 1, torch.zeros(9))
    with pytest.warns(match="steps are not recorded"):
        padded.load(batch)
    assert padded.load(batch) is None
