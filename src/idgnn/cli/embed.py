"""`idgnn embed`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import tyro

from idgnn.cli.arguments import File, Name, NewFiles, Output, read
from idgnn.cli.predict import RunPath


@dataclass(frozen=True)
class Embed:
    """Embed the nodes of graphs, or pairs of them, with a trained network: what its last layer reads.

    idgnn embed runs/my-run --edges new.csv --nodes new_nodes.csv --output embeddings.npz
    """

    run: tyro.conf.Positional[RunPath]
    """The folder of a run."""
    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name."""
    files: tyro.conf.OmitArgPrefixes[NewFiles] = field(default_factory=NewFiles)
    pairs: File = None
    """For networks that look at pairs: a table with the columns source, target and, if there are many graphs, graph."""
    output: Output = Path("embeddings.npz")
    """Where they are written: .npz (one array), .csv or .parquet (a column for each number)."""
    batch_size: int = 128
    """Graphs at a time; halved by itself when memory runs out."""
    device: str = "auto"
    """cpu, cuda, cuda:1, mps; auto takes a GPU if there is one."""

    def __call__(self) -> None:
        """Writes a row for each node or pair."""
        from idgnn.cli.pairs import read_pairs
        from idgnn.training.tables import Table, check_format, write_table
        from idgnn.training.trained import Run

        check_format(self.output)
        run = Run.load(self.run)
        graphs = read(self.files.source(self.dataset), run.schema).graphs
        pairs = None if self.pairs is None else read_pairs(self.pairs, graphs)
        asked, embedding = run.embed(graphs, pairs, batch_size=self.batch_size, device=self.device)
        if self.output.suffix == ".npz":
            numbers: Table = {"embedding": embedding.tolist()}
        else:
            numbers = {f"e{i}": column.tolist() for i, column in enumerate(embedding.unbind(1))}
        write_table({**asked, **numbers}, self.output)
        print(f"{embedding.size(0):,} embeddings of width {embedding.size(1)}: {self.output}")
