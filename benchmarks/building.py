"""Building identity graphs: beside networkx on ENZYMES, and on two large inputs."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import networkx as nx
from torch_geometric.data import Batch
from torch_geometric.utils import to_networkx

from benchmarks.data import douban, molhiv, tu_graphs
from benchmarks.timing import Figure, at_least, at_most, seconds, take_turns
from idgnn import ToIdentityGraph, identity_graph

LAYERS = 3


def run(folder: Path) -> list[Figure]:
    """All of ENZYMES, all of molhiv, and one graph of 154,908 nodes, K = 3."""
    graphs = tu_graphs(folder, "ENZYMES")
    batch = Batch.from_data_list(graphs)
    transform = ToIdentityGraph(LAYERS)
    times = take_turns(
        {"batch": lambda: identity_graph(batch, LAYERS), "one by one": lambda: [transform(g) for g in graphs]}, rounds=5
    )
    networkx = [to_networkx(graph, to_undirected=True) for graph in graphs]
    baseline = seconds(lambda: [nx.ego_graph(graph, node, radius=LAYERS) for graph in networkx for node in graph])
    molecules = molhiv(folder)
    spent, memory = in_a_process_of_its_own(folder)
    return [
        at_least(
            "identity graphs of ENZYMES, networkx ego graphs : ours, one call", baseline / min(times["batch"]), 200, "x"
        ),
        at_least(
            "identity graphs of ENZYMES, networkx ego graphs : ours, graph by graph",
            baseline / min(times["one by one"]),
            1,
            "x",
        ),
        at_most(
            "identity graphs of all 41,127 molhiv molecules",
            seconds(lambda: identity_graph(molecules, LAYERS)),
            20,
            "s",
        ),
        at_most("identity graph of soc-douban (154,908 nodes)", spent, 10, "s"),
        at_most("identity graph of soc-douban, memory above that of the loaded graph", memory, 1, "GiB"),
    ]


def in_a_process_of_its_own(folder: Path) -> tuple[float, float]:
    """Seconds and GiB for soc-douban; a fresh process, since the highest memory of a process never falls."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.building", str(folder)], check=True, capture_output=True, text=True
    )
    spent, memory = answer.stdout.split()
    return float(spent), float(memory)


def measure_douban(folder: Path) -> tuple[float, float]:
    """Seconds and GiB of one build."""
    graph = douban(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    spent = seconds(lambda: identity_graph(graph, LAYERS))
    return spent, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20


if __name__ == "__main__":
    print(*measure_douban(Path(sys.argv[1])))
