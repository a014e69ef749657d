"""Closed-walk counts of length 10: beside PyG's AddRandomWalkPE on ENZYMES, and on all of ogbg-molhiv."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from torch_geometric.data import Batch
from torch_geometric.transforms import AddRandomWalkPE

from benchmarks.data import molhiv, tu_graphs
from benchmarks.measure import Figure, at_least, at_most, ratio, take_turns
from idgnn import AddCycleCounts, cycle_counts

LENGTH = 10


def run(folder: Path) -> list[Figure]:
    """PyG's transform takes graphs one by one; ours is measured so too, and on the batch of all graphs."""
    graphs = tu_graphs(folder, "ENZYMES")
    batch, molecules = Batch.from_data_list(graphs), molhiv(folder)
    pyg, ours = AddRandomWalkPE(LENGTH), AddCycleCounts(LENGTH)
    times = take_turns(
        {
            "AddRandomWalkPE": lambda: [pyg(graph) for graph in graphs],
            "one call": lambda: cycle_counts(batch.edge_index, batch.num_nodes, LENGTH),
            "graph by graph": lambda: [ours(graph) for graph in graphs],
        },
        rounds=15,
    )
    molhiv_times = take_turns(
        {"one call": lambda: cycle_counts(molecules.edge_index, molecules.num_nodes, LENGTH)}, rounds=3
    )
    return [
        at_least(
            "closed-walk counts of ENZYMES, AddRandomWalkPE : ours, one call",
            ratio(times, "AddRandomWalkPE", "one call"),
            10,
            "x",
        ),
        Figure(
            "closed-walk counts of ENZYMES, AddRandomWalkPE : ours, graph by graph",
            ratio(times, "AddRandomWalkPE", "graph by graph"),
            "x",
        ),
        at_most("closed-walk counts of all 41,127 molhiv molecules", median(molhiv_times["one call"]), 10, "s"),
    ]
