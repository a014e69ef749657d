"""`idgnn embed`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from idgnn.cli.arguments import Output
from idgnn.cli.new_graphs import NewGraphs


@dataclass(frozen=True)
class Embed(NewGraphs):
    """Embed the nodes of graphs, or pairs of them, with a trained network: what its last layer reads.

    idgnn embed runs/my-run --edges new.csv --nodes new_nodes.csv --output embeddings.npz
    """

    output: Output = Path("embeddings.npz")
    """Where they are written: .npz (one array), .csv or .parquet (a column for each number)."""

    def __call__(self) -> None:
        """Writes a row for each node or pair."""
        from idgnn.training.tables import Table, check_format, write_table

        check_format(self.output)
        run, graphs, pairs = self.load()
        asked, embedding = run.embed(graphs, pairs, batch_size=self.batch_size, device=self.device)
        if self.output.suffix == ".npz":
            numbers: Table = {"embedding": embedding.tolist()}
        else:
            numbers = {f"e{i}": column.tolist() for i, column in enumerate(embedding.unbind(1))}
        write_table({**asked, **numbers}, self.output)
        print(f"{embedding.size(0):,} embeddings of width {embedding.size(1)}: {self.output}")
