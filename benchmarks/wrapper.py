"""A wrapped PyG model beside the plain one, in a plain training loop over ENZYMES with PyG's `DataLoader`.

`python -m benchmarks.wrapper` trains 3-layer GIN, GAT and GATv2 of `torch_geometric.nn`, plain and identity-aware, and
the layers of `IDGNN` beside them. Identity graphs are built in the loop, for each batch, or once by a transform of the
dataset. The loop is the user's: batches of 128, forward, backward, optimizer step.

The last round of ID-GNN-Full has as many messages as the plain GNN's, those before it five to six times as many.
So that widths are those of `IDGNN`, all rounds have 64 channels, and a linear layer follows. With `--narrow` the last
round has as many channels as there are classes, as PyG's models have it with `out_channels`: it then costs the plain
model next to nothing, and the slowdown is that of the other rounds.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch_geometric.nn as pyg
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from benchmarks.data import tu_graphs
from benchmarks.measure import at_most, describe, ratio, take_turns
from idgnn import IDGNN, ToIdentityGraph, identity_aware
from idgnn.writing import write_text

LAYERS, WIDTH, CLASSES, BATCH = 3, 64, 6, 128
MODELS: dict[str, Callable[[int, int | None], nn.Module]] = {
    "gin": lambda channels, out: pyg.GIN(channels, WIDTH, LAYERS, out, norm="batch"),
    "gat": lambda channels, out: pyg.GAT(channels, WIDTH, LAYERS, out, norm="batch"),
    "gatv2": lambda channels, out: pyg.GAT(channels, WIDTH, LAYERS, out, v2=True, norm="batch"),
}
OURS: dict[str, Any] = {"gin": "gin", "gat": "gat", "gatv2": "gat"}  # the layer of IDGNN that each is compared with


def main() -> None:
    """Measures, prints a table, and writes the figures if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wrapper", description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("IDGNN_DATA"), help="the folder with TUDataset")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--rounds", type=int, default=5, help="epochs that are measured")
    parser.add_argument("--narrow", action="store_true", help="the last round has a channel for each class")
    parser.add_argument("--output", type=Path, default=None)
    options = parser.parse_args()
    graphs = tu_graphs(options.data, "ENZYMES")
    figures = [figure for name in options.models for figure in measured(name, graphs, options)]
    machine = describe()
    table = Table("slowdown of a training epoch", "times", "target", title=json.dumps(machine["machine"]))
    for figure in figures:
        table.add_row(figure.name, f"{figure.value:.2f}", figure.target, style="" if figure.met else "red")
    Console().print(table)
    if options.output is not None:
        record = machine | {"figures": [figure.as_dict() for figure in figures]}
        write_text(options.output, json.dumps(record, indent=2) + "\n")


class Classifier(nn.Module):
    """An encoder and a linear layer behind it."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder, self.lin = encoder, nn.Linear(WIDTH, CLASSES)

    def forward(self, *args: Any, **kwargs: Any) -> Tensor:
        """Of each node, a number for each class."""
        return self.lin(self.encoder(*args, **kwargs))


def measured(name: str, graphs: list[Data], options: argparse.Namespace) -> list:
    """The slowdowns of one model: wrapped against plain, and of our own layers."""
    channels = graphs[0].num_features

    def model(wrap: Callable[[nn.Module], nn.Module]) -> nn.Module:
        encoder = wrap(make(channels, CLASSES if options.narrow else None))
        return encoder if options.narrow else Classifier(encoder)

    built = [ToIdentityGraph(LAYERS)(graph) for graph in graphs]
    make, conv = MODELS[name], OURS[name]
    full = [IDGNN(channels, WIDTH, CLASSES, LAYERS, conv) for _ in range(2)]
    epochs = {
        "plain": epoch(model(nn.Identity()), graphs, built=False),
        "wrapped": epoch(model(identity_aware), graphs, built=False),
        "wrapped, built before": epoch(model(identity_aware), built, built=True),
        "none": epoch(IDGNN(channels, WIDTH, CLASSES, LAYERS, conv, "none"), graphs, built=False),
        "full": epoch(full[0], graphs, built=False),
        "full, built before": epoch(full[1], built, built=True),
    }
    times = take_turns(epochs, options.rounds)
    figures = []
    for suffix in ("", ", built before"):
        ours = ratio(times, f"full{suffix}", "none")
        figures.append(
            at_most(f"identity_aware({name}){suffix}", ratio(times, f"wrapped{suffix}", "plain"), 1.3 * ours, "x")
        )
        figures.append(at_most(f"IDGNN {conv}{suffix}", ours, float("inf"), "x"))
    return figures


def epoch(model: Any, graphs: list[Data], *, built: bool) -> Callable[[], None]:
    """One pass over the graphs; all nodes have a label, which is no property of the graph."""
    loader = DataLoader(graphs, BATCH, shuffle=True)  # type: ignore[arg-type]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def run() -> None:
        for batch in loader:
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, **({"graph": batch} if built else {}))
            nn.functional.cross_entropy(out, torch.arange(out.size(0)) % CLASSES).backward()
            optimizer.step()

    return run


if __name__ == "__main__":
    main()
