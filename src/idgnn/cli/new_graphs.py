"""What `idgnn predict` and `idgnn embed` have in common: a trained network, and graphs to use it on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from idgnn.cli.arguments import File, Name, NewFiles, read

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from idgnn.training.trained import Run


@dataclass(frozen=True)
class NewGraphs:
    """A run, and graphs that need not be those it was trained on."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The folder of a run."""
    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name."""
    files: tyro.conf.OmitArgPrefixes[NewFiles] = field(default_factory=NewFiles)
    pairs: File = None
    """For networks that look at pairs: a table with the columns source, target and, if there are many graphs, graph.
    Answers come graph by graph. They depend on which node is the source, in undirected graphs too."""
    device: str = "auto"
    """cpu, cuda, cuda:1; auto takes a GPU if there is one."""

    def load(self) -> tuple[Run, list[Data], list[Tensor] | None]:
        """The run, the graphs, and for each of them the pairs that are asked about."""
        from idgnn.cli.pairs import read_pairs
        from idgnn.training.trained import Run

        run = Run.load(self.run)
        graphs = read(self.files.source(self.dataset), run.schema).graphs
        if self.pairs is None:
            return run, graphs, None
        # The table has sources and targets; a network, what is read and what is colored.
        rows = [("source", "target").index(end) for end in run.pair_columns]
        return run, graphs, [each[rows] for each in read_pairs(self.pairs, graphs)]
