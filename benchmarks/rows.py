"""How much there is to compute, as numbers that no busy machine changes: rows and messages of fixed graphs.

`python -m benchmarks.rows` shows them, and with `--write` records them in `results/rows.json`. The tests compare them
with the record: whoever makes more of them, or fewer, says so by recording them anew.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from idgnn import IDGNN, identity_graph
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.checks import edges_of
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.identity.schedule import Schedule
from idgnn.identity.second_nodes import SecondNodes
from idgnn.writing import write_text

RECORD = Path(__file__).parent / "results" / "rows.json"
Counts = dict[str, int]


def graphs() -> dict[str, Data]:
    """Drawn with a generator of our own, so that no library changes them."""
    generator = torch.Generator().manual_seed(0)
    num_nodes = 2000
    early = torch.rand(num_nodes - 1, generator=generator).square()
    made = {
        "sparse": torch.randint(num_nodes, (2, 2 * num_nodes), generator=generator),
        # Nodes are joined to others that came early: hubs.
        "hubs": torch.stack([torch.arange(1, num_nodes), (early * early * num_nodes).long()]),
        "star": torch.stack([torch.arange(1, num_nodes), torch.zeros(num_nodes - 1, dtype=torch.long)]),
    }
    every = {name: to_undirected(edges, num_nodes=num_nodes) for name, edges in made.items()}
    every["directed"] = made["sparse"]
    return {
        name: Data(x=torch.ones(num_nodes, 1), edge_index=edges, num_nodes=num_nodes) for name, edges in every.items()
    }


def measure() -> dict[str, Counts]:
    """Rows and edges of identity graphs, and rows and messages of all rounds of a network that trims them."""
    pairs = torch.randint(2000, (2, 500), generator=torch.Generator().manual_seed(1))
    found = {}
    for name, data in graphs().items():
        for num_layers in (1, 2, 3) if name == "star" else (1, 2, 3, 4):
            found[f"{name}, nodes, K = {num_layers}"] = _count(data, num_layers, None)
        if name != "star":
            found[f"{name}, 500 pairs, K = 5"] = _count(data, 5, pairs)
        if name in ("sparse", "directed"):
            found[f"{name}, neighbors as second nodes, K = 3"] = _count(data, 3, _triples(data))
    return found


def _triples(data: Data) -> Tensor:
    """Every node under the first color, and each of its neighbors under the second."""
    return SecondNodes("neighbors").read(IndexedGraph(edges_of(data), 2000), None).triples


def _count(data: Data, num_layers: int, queries: Tensor | None) -> Counts:
    with warnings.catch_warnings(action="ignore", category=UnreachedColorWarning):
        graph = identity_graph(data, num_layers, queries)
        model = IDGNN(1, 2, None, num_layers, "gcn", "full", colors=1 if graph.colored.dtype == torch.bool else 2)
        plan = model.prepare(data.x, data.edge_index, graph=graph).plan
    assert isinstance(plan, Schedule)
    return {
        "rows": graph.num_nodes,
        "edges": graph.num_edges,
        "rows of all rounds": sum(round_.num_targets for round_ in plan.rounds),
        "messages of all rounds": sum(
            round_.plain.source.numel() + round_.colored.source.numel() for round_ in plan.rounds
        ),
    }


def main() -> None:
    """Shows or records the counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rows", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"record them in {RECORD.name}")
    options = parser.parse_args()
    found = json.dumps(measure(), indent=2)
    print(found)
    if options.write:
        write_text(RECORD, found + "\n")


if __name__ == "__main__":
    main()
