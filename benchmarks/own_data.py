"""A user's own large graph: reading five million edges, and counts and costs of a graph of a million edge entries.

python -m benchmarks.own_data
"""

from __future__ import annotations

import resource
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn import FileSource, cycle_counts
from idgnn.cli.graph_statistics import identity_costs
from idgnn.graphs.files.read import read_files
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.walks.hubs import plan_hubs

LENGTH = 10


def scale_free(num_nodes: int, num_entries: int, largest: int, seed: int = 0) -> Tensor:
    """Ends are drawn with weights (i + c)^(-3/4), c such that the largest expected degree is `largest`; undirected."""
    rng = np.random.default_rng(seed)
    low, high = 0.0, 1e5
    weight = np.ones(num_nodes)
    for _ in range(100):
        shift = (low + high) / 2
        weight = (np.arange(num_nodes) + 1 + shift) ** -0.75
        low, high = (shift, high) if weight[0] / weight.sum() * num_entries > largest else (low, shift)
    wanted, found = num_entries // 2, np.empty(0, np.int64)
    while len(found) < wanted:
        ends = rng.choice(num_nodes, size=(2, wanted), p=weight / weight.sum())
        key = (ends.min(0) * num_nodes + ends.max(0))[ends[0] != ends[1]]
        found = rng.permutation(np.unique(np.concatenate([found, key])))[:wanted]
    edges = torch.from_numpy(rng.permutation(num_nodes)[np.stack(np.divmod(found, num_nodes))])
    return torch.cat([edges, edges.flip(0)], dim=1)


def _timed(what: str, work: Callable[[], object]) -> None:
    wall, processor = perf_counter(), process_time()
    work()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{what}: {perf_counter() - wall:.1f} s, processor {process_time() - processor:.1f} s, peak {memory:.2f} GiB")


def main() -> None:
    """Prints the times and the highest memory so far."""
    warnings.simplefilter("ignore")  # counts beyond 2^53, repeated edges
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "edges.txt")
        ends = np.stack([(rng.pareto(1.2, 5_000_000) * 1000).astype(np.int64), rng.integers(0, 10**6, 5_000_000)], 1)
        np.savetxt(path, ends % 10**6, fmt="%d", delimiter="\t")
        _timed("reading five million edges", lambda: read_files(FileSource(path)))
    num_nodes = 80_000
    edges = scale_free(num_nodes, 1_000_000, 2_500)
    data = Data(x=torch.ones(num_nodes, 1), edge_index=edges)
    _timed("costs of 1 to 6 layers", lambda: list(identity_costs(IndexedGraph(edges, num_nodes), data, 6, seconds=3)))
    hubs = plan_hubs(edges, num_nodes, LENGTH, 2**30).num_hubs
    _timed(
        f"closed walks of length {LENGTH}, {hubs:,} hubs", lambda: cycle_counts(edges, num_nodes, LENGTH, progress=True)
    )


if __name__ == "__main__":
    main()
