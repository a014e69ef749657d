from collections import Counter
from unittest.mock import patch

import torch
from hypothesis import given

from idgnn.identity.walks.twins import twins
from tests.identity.plain_walks import awkward_graphs


def neighbors(edge_index, num_nodes):
    source, target = edge_index.tolist()
    out, into = [Counter() for _ in range(num_nodes)], [Counter() for _ in range(num_nodes)]
    for s, t in zip(source, target, strict=True):
        out[s][t] += 1
        into[t][s] += 1
    return list(zip(out, into, strict=True))


@given(awkward_graphs())
def test_the_first_node_with_the_same_edges_stands_for_all(graph):
    edges = neighbors(*graph)
    assert twins(*graph[0], graph[1]).tolist() == [edges.index(of_node) for of_node in edges]


@given(awkward_graphs())
def test_equal_hashes_do_not_make_twins(graph):
    with patch.object(torch, "randint", lambda *_, **__: torch.zeros(2, graph[1], dtype=torch.long)):
        first = twins(*graph[0], graph[1]).tolist()
    edges = neighbors(*graph)
    assert all(edges[node] == edges[other] for node, other in enumerate(first))
