"""Queries of heterogeneous graphs that are refused."""

import pytest
import torch

from idgnn import identity_graph
from tests.models.hetero.races import races


@pytest.mark.parametrize(
    ("queries", "words"),
    [
        (None, "without queries, expected a node type"),
        ("pilot", "name the node type 'pilot', but the graph has 'driver', 'race', 'circuit', 'result'"),
        (("driver", [5]), "name node 5 of 'driver', which has 5 nodes: expected ids from 0 to 4"),
        (("driver", [-1]), "name node -1 of 'driver'"),
        (("driver", []), "are none of 'driver', expected at least one|whole numbers"),
        (("driver", torch.ones(5, dtype=torch.bool)), "a mask of 'driver', expected ids"),
        (("driver", torch.rand(2)), "expected whole numbers"),
        (("driver", "first"), "expected whole numbers"),
        (torch.tensor([0, 1, 2]), "expected a node type"),
        ((("circuit", [0]), ("driver", [0, 1])), "1 nodes are read and 2 are colored"),
        ((("circuit", [3]), ("driver", [0])), "the nodes that are read name node 3 of 'circuit'"),
        ((("circuit", [0]), "driver"), "expected a node type"),
    ],
)
def test_bad_queries_get_a_sentence(queries, words):
    with pytest.raises(ValueError, match=words):
        identity_graph(races(), 4, queries)
