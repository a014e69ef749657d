import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import networkx as nx
import pytest
import torch

from idgnn.graphs import synthetic
from idgnn.graphs.dataset import checksum
from idgnn.graphs.load import load
from idgnn.graphs.synthetic import random_regular, scale_free, small_world
from tests.graphs.corner_cases import as_networkx


@pytest.mark.parametrize("make", [scale_free, small_world])
def test_clustering_is_spread_evenly_over_connected_simple_graphs(make, cache: Path) -> None:
    graphs = make(num_graphs=24)
    counts: Counter[int] = Counter()
    for data in graphs:
        graph = as_networkx(data)
        assert nx.is_connected(graph) and graph.number_of_nodes() == 64
        assert data.num_edges == 2 * graph.number_of_edges()
        assert torch.equal(data.x, torch.ones(64, 1))
        counts[min(9, int(round(nx.average_clustering(graph), 12) * 20))] += 1
    assert sorted(counts) == list(range(10))
    assert sorted(counts.values()) == [2] * 6 + [3] * 4


def test_degrees_are_those_of_the_families(cache: Path) -> None:
    assert {graph.num_edges for graph in small_world(num_graphs=10)} == {4 * 64}
    assert {graph.num_edges for graph in scale_free(num_graphs=10)} == {2 * 2 * (64 - 2)}


def test_graphs_depend_on_the_seed_only(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = random.getstate()
    first = checksum(small_world(num_graphs=10, seed=3))
    assert random.getstate() == state
    assert checksum(small_world(num_graphs=10, seed=4)) != first
    code = (
        "from idgnn.graphs.dataset import checksum\n"
        "from idgnn.graphs.synthetic import small_world\n"
        "print(checksum(small_world(num_graphs=10, seed=3)))"
    )
    environment = {
        **os.environ,
        "IDGNN_CACHE": str(cache / "other"),
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    other = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True
    )
    assert other.stdout.strip() == first


def test_generated_graphs_are_cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = checksum(small_world(num_graphs=5))

    def never(*arguments: object) -> None:
        raise AssertionError("the graphs were made again")

    monkeypatch.setattr(synthetic, "_spread", never)
    assert checksum(small_world(num_graphs=5)) == first


def test_bins_out_of_reach_are_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synthetic, "_PATIENCE", 200)
    # 8 nodes with 4 neighbors on the ring are dense: low clustering does not occur. 5 such nodes are always complete.
    graphs = small_world(num_graphs=60, num_nodes=8)
    counts = Counter(int(round(nx.average_clustering(as_networkx(data)), 12) * 20) for data in graphs)
    full = [count for count in counts.values() if count > 10]
    assert counts.total() == 60 and 0 not in counts and len(full) > 1 and max(full) - min(full) <= 1
    with pytest.raises(ValueError, match="Choose another number of nodes"):
        small_world(num_graphs=6, num_nodes=5)


def test_regular_graphs_are_regular_simple_and_differ() -> None:
    graphs = random_regular(num_graphs=5, num_nodes=20, degree=3, seed=1)
    for data in graphs:
        assert torch.equal(data.edge_index[0].bincount(minlength=20), torch.full((20,), 3))
        assert as_networkx(data).number_of_edges() == 30
    assert len({str(data.edge_index.tolist()) for data in graphs}) == 5
    assert checksum(graphs) == checksum(random_regular(num_graphs=5, num_nodes=20, degree=3, seed=1))
    assert checksum(graphs) != checksum(random_regular(num_graphs=5, num_nodes=20, degree=3, seed=2))


@pytest.mark.parametrize(("nodes", "degree"), [(5, 3), (4, 4), (4, -1)])
def test_impossible_degrees_are_refused(nodes: int, degree: int) -> None:
    with pytest.raises(ValueError, match=f"no graph of {nodes} nodes has degree {degree}"):
        random_regular(2, nodes, degree)


def test_invalid_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="num_graphs is 0"):
        scale_free(num_graphs=0)
    with pytest.raises(ValueError, match="num_nodes is 4, expected at least 1 and 5"):
        small_world(num_nodes=4)


def test_the_named_dataset_has_the_size_that_the_catalog_says(cache: Path) -> None:
    dataset = load("smallworld", seed=1)
    assert dataset.name == "SmallWorld" and len(dataset) == 256
    assert dataset.checksum() == checksum(small_world(seed=1))
