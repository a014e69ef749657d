"""The synthetic graph with hubs that training is measured on."""

import torch

from benchmarks.data import scale_free


def test_scale_free_graphs_are_simple_and_undirected_with_the_degrees_asked_for():
    data = scale_free(20_000, 10.2, 600)
    source, target = data.edge_index
    edges = set(zip(source.tolist(), target.tolist(), strict=True))
    assert len(edges) == source.numel()  # none twice
    assert all(s != t and (t, s) in edges for s, t in edges)
    degree = torch.bincount(source, minlength=20_000)
    assert 9.5 < degree.double().mean() <= 10.3
    assert 450 < degree.max() <= 601
    assert torch.equal(scale_free(20_000, 10.2, 600).edge_index, data.edge_index)  # the seed decides
