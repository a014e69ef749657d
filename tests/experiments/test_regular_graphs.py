import networkx as nx
import numpy as np
import pytest
import torch

from idgnn.experiments.regular_graphs import TOLERANCE, measure_regular_graphs, num_distinct
from idgnn.graphs.synthetic import random_regular

ARGUMENTS = {"num_nodes": 12, "degree": 3, "num_graphs": 20}


@pytest.fixture(scope="module")
def found():
    return measure_regular_graphs(ARGUMENTS, seed=0, device="cpu")


def test_the_sum_and_the_multiset_are_those_of_matrix_powers(found):
    graphs = []
    for data in random_regular(20, 12, 3, seed=0):
        graph = nx.Graph(data.edge_index.t().tolist())
        matrix = nx.to_numpy_array(graph, nodelist=range(12), dtype=np.int64)
        graphs.append([np.diag(np.linalg.matrix_power(matrix, k)) for k in range(1, 7)])
    for layers in (3, 4, 5, 6):
        sums = {tuple(int(counts.sum()) for counts in graph[:layers]) for graph in graphs}
        multisets = {tuple(sorted(zip(*graph[:layers], strict=True))) for graph in graphs}
        assert found["sum"][str(layers)] == len(sums) / 20
        assert found["multiset"][str(layers)] == len(multisets) / 20


def test_the_network_distinguishes_what_the_multiset_does_and_the_plain_network_nothing(found):
    for layers in ("3", "4", "5", "6"):
        assert found["network"][layers] >= found["multiset"][layers] >= found["sum"][layers]
        assert found["plain"][layers] == 1 / 20


def test_it_repeats_and_the_seed_draws_other_graphs(found):
    assert measure_regular_graphs(ARGUMENTS, seed=0, device="cpu") == found
    assert measure_regular_graphs(ARGUMENTS, seed=1, device="cpu")["sum"] != found["sum"]


def test_rows_within_the_tolerance_are_one():
    rows = torch.tensor([[1.0, 4.0], [1.0, 4.0 + TOLERANCE], [1.0, 4.0 + 100 * TOLERANCE], [2.0, 4.0]]).double()
    assert num_distinct(rows) == 2 + (rows[2, 1] - rows[0, 1] > 4 * TOLERANCE)
    assert num_distinct(torch.zeros(3, 2).double()) == 1
