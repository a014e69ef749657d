"""Embedding one large graph with ID-GNN-Full: seconds, memory and rows, each network in a process of its own.

`python -m benchmarks.large_graphs douban --conv gcn gin sage gat --memory 4GiB --threads 2` embeds soc-douban;
`pubmed --sample 300` compares with ego networks (Algorithm 1) on 300 roots, whose figures are scaled to all nodes;
`synthetic --nodes 1000000 --edges 5000000 --device cuda` draws a graph with hubs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from benchmarks.data import douban, pubmed, undirected
from benchmarks.measure import in_own_process, peak_gib, write_record
from idgnn import IDGNN, identity_cost
from idgnn.identity.ego import ego_networks

EGO_BATCH = 20  # roots at a time: their ego networks are copied


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_graphs", description=__doc__.splitlines()[0])
    parser.add_argument("graph", choices=["douban", "pubmed", "synthetic"])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("IDGNN_DATA", ".")))
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the synthetic graph")
    parser.add_argument("--edges", type=int, default=5_000_000, help="drawn, undirected; some are drawn twice")
    parser.add_argument("--conv", nargs="+", default=["gcn"])
    parser.add_argument("--layers", type=int, nargs="+", default=[3])
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--memory", default="4GiB")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0, help="roots that are embedded by ego networks too")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    figures = []
    for layers in options.layers:
        for conv in options.conv:
            figures.append(in_own_process(measure, options, conv, layers))
            print(json.dumps(figures[-1]), flush=True)
    torch.set_num_threads(options.threads)  # which the record states
    write_record(options.output, figures, options.device, options={**vars(options), "data": None, "output": None})


def measure(options: argparse.Namespace, conv: str, layers: int) -> dict[str, Any]:
    """Embeds all nodes of the graph and, if asked for, some of them by ego networks."""
    torch.set_num_threads(options.threads)
    data = read(options)
    num_nodes = data.num_nodes or 0
    torch.manual_seed(0)
    model = IDGNN(1, options.width, options.width, layers, conv).eval().to(options.device)
    model.embed(data, torch.arange(10), memory=options.memory)  # what is loaded at the first call is loaded now
    before = peak_gib()
    start = time.perf_counter()
    found = model.embed(data, memory=options.memory)
    seconds = time.perf_counter() - start
    figures = {
        "graph": options.graph,
        "nodes": num_nodes,
        "edges": data.num_edges // 2,
        "conv": conv,
        "layers": layers,
        "width": options.width,
        "memory": options.memory,
        "seconds": seconds,
        "peak_gib": peak_gib(),
        "peak_gib_before": before,
        "identity_rows": identity_cost(data, layers).rows,
    }
    if options.device.startswith("cuda"):
        figures["peak_gpu_gib"] = torch.cuda.max_memory_allocated() / 2**30
    if options.sample:
        roots = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))[: options.sample]
        figures |= by_ego_networks(model, data, roots, found)
    return figures


@torch.no_grad()
def by_ego_networks(model: IDGNN, data: Data, roots: torch.Tensor, found: torch.Tensor) -> dict[str, Any]:
    """The same by Algorithm 1, scaled from these roots to all nodes."""
    start, rows, off = time.perf_counter(), 0, 0.0
    data = data.to(model.lin_in.weight.device)
    for some in roots.split(EGO_BATCH):
        theirs = model(data.x, data.edge_index, queries=some.to(data.x.device), engine="ego").cpu()
        off = max(off, float((theirs - found[some]).abs().max()))
    spent = time.perf_counter() - start
    for some in roots.split(EGO_BATCH):
        rows += ego_networks(data, model.num_layers, some.to(data.x.device)).node.numel()
    times = (data.num_nodes or 0) / roots.numel()
    return {
        "ego_roots": roots.numel(),
        "ego_seconds_scaled": spent * times,
        "ego_rows_scaled": rows * times,
        "largest_difference": off,
    }


def read(options: argparse.Namespace) -> Data:
    """The graph with the feature 1 for every node."""
    if options.graph == "synthetic":
        data = with_hubs(options.nodes, options.edges)
    else:
        data = douban(options.data) if options.graph == "douban" else pubmed(options.data)
    data.x = torch.ones(data.num_nodes or 0, 1)
    return data


def with_hubs(num_nodes: int, num_edges: int) -> Data:
    """A graph whose degrees fall as the square root of the rank: a power law with exponent 3."""
    generator = torch.Generator().manual_seed(0)
    ends = (num_nodes * torch.rand(2, num_edges, generator=generator, dtype=torch.double) ** 2).long()
    return undirected(*ends, num_nodes)


if __name__ == "__main__":
    main()
