"""Memory (appendix): a step of ID-GNN-Full on some roots of a large graph, compared with a mini-batch GNN."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn.experiments.protocols import PAPER_NETWORK
from idgnn.graphs.load import load
from idgnn.identity.ego import ego_networks
from idgnn.identity.identity_graph import identity_graph
from idgnn.identity.row_graph import RowGraph, trimmed, whole
from idgnn.identity.schedule import Schedule
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.prepared import Prepared

LAYERS = 3
_DRAWS = 20  # the ego networks of CiteSeer have from 1 to hundreds of nodes
_FLOAT = 4  # bytes


def measure_memory(arguments: Mapping[str, int | str], seed: int, device: str) -> dict[str, Any]:
    """Rows and bytes of a training step on `roots` random nodes of a dataset, the mean of `draws` batches of them.

    All have the parameters of a GCN of width 256. `"rows"` counts the states that a step computes and keeps for its
    gradients, before the first round and after each round. `"bytes"` on CUDA is the peak
    that is allocated in a step; elsewhere it is an estimate, rows times width times 4.

    * `"shared"`: the plain GCN on the union of the ego networks, every node of it in every round: what the paper
      compares with;
    * `"shared-trimmed"`: the same, with only the nodes that a round still needs;
    * `"full-gcn-ego"`: ID-GNN-Full on disjoint ego networks, as published;
    * `"full-gcn"`: ours.

    `"overhead"` is that of the last two over `"shared"`, in bytes: 0.34 means 34 % more; `"overhead-trimmed"` over
    `"shared-trimmed"`.
    """
    num_roots, draws = int(arguments["roots"]), int(arguments.get("draws", _DRAWS))
    graph = load(str(arguments["dataset"])).graphs[0].to(device)
    size = int(graph.num_nodes or 0)
    if not 0 < num_roots <= size:
        raise ValueError(f"roots is {num_roots}, expected a number from 1 to {size}, the nodes of the graph.")
    assert graph.x is not None
    plain, full = _network("none", graph.x.size(1), device), _network("full", graph.x.size(1), device)
    rows: dict[str, list[int]] = {}
    bytes_: dict[str, list[int]] = {}
    generator = torch.Generator().manual_seed(seed)
    for _ in range(draws):
        roots = torch.randperm(size, generator=generator)[:num_roots].to(device)
        for name, model, ready in (
            ("shared", plain, _shared(plain, graph, roots)),
            ("shared-trimmed", plain, _trimmed(plain, graph, roots)),
            ("full-gcn-ego", full, _full(full, graph, roots, ego=True)),
            ("full-gcn", full, _full(full, graph, roots, ego=False)),
        ):
            ready = _compact(ready)
            rows.setdefault(name, []).append(num_states(ready))
            bytes_.setdefault(name, []).append(_bytes(model, ready, device))
    taken = {name: mean(each) for name, each in bytes_.items()}
    ours = ("full-gcn-ego", "full-gcn")
    return {
        "device": device,
        "measured": device.startswith("cuda"),
        "rows": {name: mean(each) for name, each in rows.items()},
        "bytes": taken,
        "overhead": {name: taken[name] / taken["shared"] - 1 for name in ours},
        "overhead-trimmed": {name: taken[name] / taken["shared-trimmed"] - 1 for name in ours},
    }


def num_states(ready: Prepared) -> int:
    """Rows before the first round and after every round."""
    assert isinstance(ready.plan, Schedule)
    return ready.plan.node.numel() + sum(round_.num_targets for round_ in ready.plan.rounds)


def _network(identity: Any, in_channels: int, device: str) -> Predictor:
    torch.manual_seed(0)
    settings = replace(PAPER_NETWORK, conv="gcn", identity=identity)
    return make_predictor(settings, "node", in_channels, 2, None).to(device)


def _full(model: Predictor, graph: Data, roots: Tensor, ego: bool) -> Prepared:
    assert graph.edge_index is not None and graph.x is not None
    return model.encoder.prepare(graph.x, graph.edge_index, queries=roots, engine="ego" if ego else None)


def _shared(model: Predictor, graph: Data, roots: Tensor) -> Prepared:
    """The plain network on the union of the ego networks: each node once."""
    assert graph.edge_index is not None and graph.x is not None
    copies = ego_networks(Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes), LAYERS, roots)
    node, place = torch.unique(copies.node, return_inverse=True)
    edge, which = torch.unique(copies.edge, return_inverse=True)
    first = torch.empty_like(edge).scatter(0, which, torch.arange(which.numel(), device=which.device))
    color = torch.zeros_like(node, dtype=torch.bool)
    rows = RowGraph(place[copies.edge_index[:, first]], edge, node, color, place[copies.query_row])
    plain = model.encoder.prepare(graph.x, graph.edge_index)
    return replace(plain, plan=whole(rows, LAYERS, graph.edge_index.size(1)))


def _trimmed(model: Predictor, graph: Data, roots: Tensor) -> Prepared:
    """The same with only the nodes that a round needs: those from which a root is reached in the rounds left."""
    assert graph.edge_index is not None and graph.x is not None
    rows = identity_graph(Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes), LAYERS, queries=roots)
    rows.query_row = rows.plain_row[roots]  # read there, nothing is colored
    plain = model.encoder.prepare(graph.x, graph.edge_index)
    return replace(plain, plan=trimmed(rows, LAYERS, graph.edge_index.size(1)))


def _compact(ready: Prepared) -> Prepared:
    """Keeps only the features of the nodes that are used, as a loader of mini-batches does."""
    assert isinstance(ready.plan, Schedule)
    used, node = torch.unique(ready.plan.node, return_inverse=True)
    return replace(ready, x=ready.x[used], plan=replace(ready.plan, node=node))


def _bytes(model: Predictor, ready: Prepared, device: str) -> int:
    if not device.startswith("cuda"):
        return num_states(ready) * model.settings["encoder"]["hidden_channels"] * _FLOAT
    before = 0
    for _ in range(2):  # the first time gradients and workspaces are allocated, and kept
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        model(ready, ready.x, 1).sum().backward()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before
