"""`idgnn counts`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from idgnn.cli.arguments import File, Name, Output, OwnFiles, read

if TYPE_CHECKING:
    from torch import Tensor

    from idgnn.tasks.query_set import QuerySet


@dataclass(frozen=True)
class Counts:
    """Count the closed walks at every node, or the walks between pairs of nodes: features for any other tool.

    idgnn counts --edges edges.csv --length 10 --output counts.csv

    idgnn counts ENZYMES --pairs pairs.csv --scale log
    """

    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name; idgnn data lists them."""
    files: tyro.conf.OmitArgPrefixes[OwnFiles] = field(default_factory=OwnFiles)
    length: int = 10
    """The longest walk."""
    scale: Literal["counts", "log", "walk"] = "counts"
    """Whole numbers, log(1 + count), or the probability that a random walk returns (nodes only)."""
    pairs: File = None
    """A table with the columns source, target and, if there are many graphs, graph: the walks from source to target."""
    output: Output = Path("counts.csv")
    """Where the table is written: .csv, .parquet or .npz."""

    def __call__(self) -> None:
        """Writes a row for each node, or for each pair in the order of its table."""
        from idgnn.cli.pairs import read_pair_rows
        from idgnn.identity.adjacency import pointers
        from idgnn.tasks.query_set import stack
        from idgnn.training.prediction_tables import check_format, query_columns, write_table

        check_format(self.output)
        if self.pairs is not None and self.scale == "walk":
            raise ValueError("--scale walk is for nodes, not for --pairs. Use --scale counts or --scale log.")
        graphs = read(self.files.source(self.dataset)).graphs
        part = stack("node", graphs)
        if self.pairs is not None:
            rows = read_pair_rows(self.pairs, graphs)
            start = pointers(part.owner, part.num_graphs)  # the first node of each graph
            part = replace(part, level="pair", queries=rows.nodes + start[rows.owner])
        counts = self._counts(part)  # [nodes, length] or [pairs, length]
        queries = query_columns(part, graphs, range(len(graphs)))
        walks = {f"walks_{k}": self._cells(column) for k, column in enumerate(counts.unbind(1), 1)}
        write_table({**queries, **walks}, self.output)
        what = "nodes" if self.pairs is None else "pairs"
        print(f"walks of {counts.size(0):,} {what}, a row each: {self.output}")

    def _counts(self, part: QuerySet) -> Tensor:
        from idgnn.identity.cycle_features import cycle_features
        from idgnn.identity.walk_counts import walk_counts

        num_nodes, progress = part.owner.numel(), True
        if part.queries is None:
            return cycle_features(part.edge_index, num_nodes, self.length, self.scale, progress=progress)
        with warnings.catch_warnings():
            if self.scale == "log":  # a rounded count has the right logarithm
                warnings.filterwarnings("ignore", message=".*2\\^53")
            counts = walk_counts(part.edge_index, num_nodes, part.queries, self.length, progress=progress)
        return counts.log1p() if self.scale == "log" else counts

    def _cells(self, column: Tensor) -> list[Any]:
        """A column of the table: whole numbers where all of its counts are exact."""
        exact = self.scale == "counts" and bool((column < 2**53).all())
        return (column.long() if exact else column).tolist()
