"""`idgnn embed`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from idgnn.cli.arguments import Memory, Output
from idgnn.cli.new_graphs import NewGraphs


@dataclass(frozen=True)
class Embed(NewGraphs):
    """Embed the nodes of graphs, or pairs of them, with a trained network: what its last layer reads.

    idgnn embed runs/my-run --edges new.csv --nodes new_nodes.csv --output embeddings.npz

    Graphs of any size: colors are for as many nodes at a time as fit into --memory, beside the plain states of all. If
    it is stopped, even by kill -9, the same command goes on where it stopped.
    """

    memory: Memory = None
    """What it may take, for example 4GiB or 512MiB; half of what is free if it is not given."""
    output: Output = Path("embeddings.npz")
    """Where they are written: .npz (one array), .csv or .parquet (a column for each number)."""

    def __call__(self) -> None:
        """Writes a row for each node or pair."""
        from idgnn.training.partial import discard
        from idgnn.training.prediction_tables import PredictionTable, check_format, write_table

        check_format(self.output)
        run, graphs, pairs = self.load()
        partial = self.output.with_name(f".{self.output.name}.partial")
        try:
            asked, embedding = run.embed(
                graphs,
                pairs,
                memory=self.memory,
                device=self.device,
                progress=sys.stdout.isatty(),
                partial=partial,
            )
        except KeyboardInterrupt:
            print("Stopped. The same command goes on where it stopped.")
            raise
        if self.output.suffix == ".npz":
            numbers: PredictionTable = {"embedding": list(embedding.numpy())}
        else:
            numbers = {f"e{i}": column.tolist() for i, column in enumerate(embedding.unbind(1))}
        write_table({**asked, **numbers}, self.output)
        discard(partial)
        print(f"{embedding.size(0):,} embeddings of width {embedding.size(1)}: {self.output}")
