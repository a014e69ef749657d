"""Every peer, on awkward graphs."""

import pytest
import torch

from idgnn.experiments.peers.run import BUILDERS
from tests.experiments.peers.laws import answers, check_batch_equals_each_alone, check_copies_are_independent, small
from tests.experiments.peers.small_graphs import awkward, permuted


@pytest.mark.parametrize("name", BUILDERS)
def test_the_order_of_the_nodes_does_not_matter(name):
    settings, graphs = small(name), awkward()
    torch.testing.assert_close(answers(settings, graphs), answers(settings, [permuted(each) for each in graphs]))


@pytest.mark.parametrize("name", BUILDERS)
def test_a_padded_batch_gives_what_each_graph_gives_alone(name):
    check_batch_equals_each_alone(small(name), awkward())


@pytest.mark.parametrize("name", BUILDERS)
def test_copies_are_independent(name):
    check_copies_are_independent(small(name), awkward())


@pytest.mark.parametrize("name", BUILDERS)
def test_a_repeated_edge_counts_once(name):
    graphs = awkward()
    once = [graph.coalesce() for graph in graphs]
    torch.testing.assert_close(answers(small(name), graphs), answers(small(name), once))
