"""`idgnn predict`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from idgnn.cli.arguments import Memory, Output
from idgnn.cli.new_graphs import NewGraphs


@dataclass(frozen=True)
class Predict(NewGraphs):
    """Predict with a trained network on other graphs: every node, every graph, or the pairs that you name.

    idgnn predict runs/my-run --edges new.csv --nodes new_nodes.csv --output predictions.csv

    Graphs of any size: colors are for as many nodes at a time as fit into --memory, beside the plain states of all.
    """

    batch_size: int = 128
    """Graphs at a time; halved by itself when memory runs out."""
    memory: Memory = None
    """What it may take, for example 4GiB or 512MiB; half of what is free if it is not given."""
    output: Output = Path("predictions.csv")
    """Where the table is written: .csv, .parquet or .npz."""

    def __call__(self) -> None:
        """Writes a row for each query."""
        from idgnn.training.prediction_tables import check_format, write_table

        check_format(self.output)
        run, graphs, pairs = self.load()
        table = run.predict(
            graphs,
            pairs,
            batch_size=self.batch_size,
            memory=self.memory,
            device=self.device,
            progress=sys.stdout.isatty(),
        )
        write_table(table, self.output)
        print(f"{len(next(iter(table.values()))):,} predictions: {self.output}")
