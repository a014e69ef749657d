"""`idgnn predict`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from idgnn.cli.arguments import File, Name, NewFiles, Output, read

RunPath = Annotated[Path, tyro.conf.arg(metavar="RUN")]


@dataclass(frozen=True)
class Predict:
    """Predict with a trained network on other graphs: every node, every graph, or the pairs that you name.

    idgnn predict runs/my-run --edges new.csv --nodes new_nodes.csv --output predictions.csv
    """

    run: tyro.conf.Positional[RunPath]
    """The folder of a run."""
    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name."""
    files: tyro.conf.OmitArgPrefixes[NewFiles] = field(default_factory=NewFiles)
    pairs: File = None
    """For networks that look at pairs: a table with the columns source, target and, if there are many graphs, graph."""
    output: Output = Path("predictions.csv")
    """Where the table is written: .csv, .parquet or .npz."""
    batch_size: int = 128
    """Graphs at a time; halved by itself when memory runs out."""
    device: str = "auto"
    """cpu, cuda, cuda:1, mps; auto takes a GPU if there is one."""

    def __call__(self) -> None:
        """Writes a row for each query."""
        from idgnn.cli.pairs import read_pairs
        from idgnn.training.tables import check_format, write_table
        from idgnn.training.trained import Run

        check_format(self.output)
        run = Run.load(self.run)
        graphs = read(self.files.source(self.dataset), run.schema).graphs
        pairs = None if self.pairs is None else read_pairs(self.pairs, graphs)
        table = run.predict(graphs, pairs, batch_size=self.batch_size, device=self.device)
        write_table(table, self.output)
        print(f"{len(next(iter(table.values()))):,} predictions: {self.output}")
