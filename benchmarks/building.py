"""Building identity graphs: beside networkx on ENZYMES, and on two large inputs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import psutil
from torch_geometric.data import Batch
from torch_geometric.utils import from_networkx, to_networkx

from benchmarks.data import douban, molhiv, tu_graphs
from benchmarks.measure import Figure, at_least, at_most, in_own_process, ratio, seconds, take_turns
from idgnn import ToIdentityGraph, identity_graph

LAYERS = 3


def run(folder: Path) -> list[Figure]:
    """All of ENZYMES, all of molhiv, and one graph of 154,908 nodes, K = 3."""
    graphs = tu_graphs(folder, "ENZYMES")
    batch = Batch.from_data_list(graphs)
    transform = ToIdentityGraph(LAYERS)
    whole = [to_networkx(graph, to_undirected=True) for graph in graphs]

    def egos() -> Iterator[nx.Graph]:
        return (nx.ego_graph(graph, node, radius=LAYERS) for graph in whole for node in graph)

    identity_graph(batch, LAYERS)  # the first call sets PyTorch up
    times = take_turns(
        {
            "ours": lambda: identity_graph(batch, LAYERS),
            "one by one": lambda: [transform(graph) for graph in graphs],
            "egos": lambda: list(egos()),
            "as PyG": lambda: [from_networkx(ego) for ego in egos()],
        },
        rounds=3,
        warm_up=0,
    )
    molecules = molhiv(folder)
    in_one_go = min(take_turns({"molhiv": lambda: identity_graph(molecules, LAYERS)}, rounds=2, warm_up=0)["molhiv"])
    spent, memory = in_own_process(measure_douban, folder)
    name = "identity graphs of ENZYMES"
    return [
        at_least(f"{name}, networkx ego graphs : ours", ratio(times, "egos", "ours"), 200, "x"),
        at_least(f"{name}, networkx ego graphs as PyG graphs : ours", ratio(times, "as PyG", "ours"), 200, "x"),
        Figure(
            f"{name}, networkx ego graphs as PyG graphs : ours, graph by graph",
            ratio(times, "as PyG", "one by one"),
            "x",
        ),
        at_most("identity graphs of all 41,127 molhiv molecules", in_one_go, 20, "s"),
        at_most("identity graph of soc-douban (154,908 nodes)", spent, 10, "s"),
        at_most("identity graph of soc-douban, memory beside the loaded graph", memory, 1, "GiB"),
    ]


def measure_douban(folder: Path) -> tuple[float, float]:
    """Seconds and GiB of one build, the first of its process; memory is read every two milliseconds."""
    graph = douban(folder)
    process = psutil.Process()
    before = highest = process.memory_info().rss
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.is_set():
            highest = max(highest, process.memory_info().rss)
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    spent = seconds(lambda: identity_graph(graph, LAYERS))
    done.set()
    watcher.join()
    return spent, (highest - before) / 2**30
