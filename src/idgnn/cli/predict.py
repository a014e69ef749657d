"""`idgnn predict` and `idgnn embed`: a trained network on graphs that need not be those of its training."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from idgnn.cli.arguments import File, Memory, Name, NewFiles, Output, changed, check_no_graphs, check_unused, read
from idgnn.cli.tables import Folder

if TYPE_CHECKING:
    from torch import Tensor
    from torch_geometric.data import Data

    from idgnn.training.prediction_tables import PredictionTable
    from idgnn.training.relational_runs import SavedRun
    from idgnn.training.trained import Run


@dataclass(frozen=True)
class NewGraphs:
    """The arguments that both share: a run, and graphs."""

    run: tyro.conf.Positional[Annotated[Path, tyro.conf.arg(metavar="RUN")]]
    """The folder of a run."""
    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name."""
    files: tyro.conf.OmitArgPrefixes[NewFiles] = field(default_factory=NewFiles)
    pairs: File = None
    """For networks that look at pairs: a table with the columns source, target and, if there are many graphs, graph.
    Answers come graph by graph. They may depend on which node is the source, in undirected graphs too; by default links
    of undirected graphs do not."""
    tables: Folder = None
    """For networks that were trained on tables: a folder of the same tables, in place of graphs."""
    queries: File = None
    """With --tables: a table of the entities and times that are asked about, with the columns of the training."""
    device: str = "auto"
    """cpu, cuda, cuda:1; auto takes a GPU if there is one."""
    memory: Memory = None
    """Memory that may be used, for example 4GiB or 512MiB; half of what is free if it is not given."""

    def on_tables(self) -> tuple[SavedRun, Path, Path] | None:
        """The run, the tables and the queries, if it is a run on tables."""
        from idgnn.training.processes import check_single_process
        from idgnn.training.relational_runs import is_begun, is_relational, load_run

        if not is_relational(self.run) and not is_begun(self.run):
            if self.tables is not None:
                raise ValueError(f"{self.run} was not trained on tables. Give graphs in place of --tables.")
            if self.queries is not None:
                raise ValueError(f"{self.run} was not trained on tables, and --queries is for those. Leave it out.")
            return None
        if self.tables is None or self.queries is None:
            raise ValueError(f"{self.run} was trained on tables. Add --tables FOLDER and --queries FILE.")
        check_no_graphs(self.dataset, self.files)
        check_single_process(f"what {self.run} says of --tables")
        used = ("run", "dataset", "files", "tables", "queries", "device", "output")
        check_unused(changed(self, without=used), "on a run that was trained on tables")
        return load_run(self.run), self.tables, self.queries

    def load(self, say: bool = True) -> tuple[Run, list[Data], list[Tensor] | None]:
        """The run, the graphs, and for each of them the pairs that are queried; `say` prints how files are read."""
        from idgnn.cli.pairs import read_pairs
        from idgnn.training.trained import Run

        run = Run.load(self.run)
        graphs = read(self.files.source(self.dataset), run.schema).graphs
        if say and self.files.edges is not None:
            print(_directions(run))
        if self.pairs is None:
            return run, graphs, None
        # The table has sources and targets; the network expects the node that is read, then the one that is colored.
        rows = [("source", "target").index(end) for end in run.pair_columns]
        return run, graphs, [each[rows] for each in read_pairs(self.pairs, graphs)]


@dataclass(frozen=True)
class Predict(NewGraphs):
    """Predict with a trained network on other graphs: every node, every graph, or the pairs that you name.

    idgnn predict runs/my-run --edges new.csv --nodes new_nodes.csv --output predictions.csv

    Graphs may have any size: as many nodes are colored at a time as fit into --memory. Predictions are in float32;
    those that a run with --precision tf32 or bf16 wrote for its held-out parts are coarser.
    """

    batch_size: int = 128
    """Graphs per batch; halved when memory runs out."""
    output: Output = Path("predictions.csv")
    """Where the table is written: .csv, .parquet or .npz."""

    def __call__(self) -> None:
        """Writes a row for each query."""
        from idgnn.training.prediction_tables import check_format, write_table

        check_format(self.output)
        if (given := self.on_tables()) is not None:
            from idgnn.training.relational_runs import predictions

            table = predictions(*given, self.device)
            write_table(table, self.output)
            print(f"{len(next(iter(table.values()))):,} rows: {self.output}")
            return
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


@dataclass(frozen=True)
class Embed(NewGraphs):
    """Embed the nodes of graphs, or pairs of them, with a trained network: what its last layer reads.

    idgnn embed runs/my-run --edges new.csv --nodes new_nodes.csv --output embeddings.npz

    Graphs may have any size: as many nodes are colored at a time as fit into --memory. If it is stopped, even by
    kill -9, the same command continues where it stopped. Several processes or machines share the work, with the same
    result: torchrun --nproc-per-node 4 -m idgnn embed ...
    """

    output: Output = Path("embeddings.npz")
    """Where they are written: .npz (one array), .csv or .parquet (a column per number)."""

    def __call__(self) -> None:
        """Writes a row for each node or pair."""
        from idgnn.training.partial import discard, partial_path
        from idgnn.training.prediction_tables import check_format

        check_format(self.output)
        if (given := self.on_tables()) is not None:
            from idgnn.training.relational_runs import embeddings

            self._write(*embeddings(*given, self.device))
            return
        from idgnn.training.processes import device_name, joined

        with joined(self.device) as processes:
            if not processes.first:
                warnings.simplefilter("ignore")  # the first process shows them
            with processes.one_before_others():  # one process downloads and caches for all
                run, graphs, pairs = self.load(say=processes.first)
            partial = self.output.with_name(f".{self.output.name}.partial")
            try:
                queries, embedding = run.embed(
                    graphs,
                    pairs,
                    memory=self.memory,
                    device=device_name(self.device, processes),
                    progress=sys.stdout.isatty(),
                    partial=partial,
                    processes=processes,
                )
            except KeyboardInterrupt:
                if processes.first:
                    print("Stopped. The same command continues where it stopped.")
                raise
            if processes.first:
                self._write(queries, embedding)
            processes.wait()  # until it is written, all keep what they have
            discard(partial_path(partial, processes))

    def _write(self, queries: PredictionTable, embedding: Tensor) -> None:
        from idgnn.training.prediction_tables import write_table

        if self.output.suffix == ".npz":
            numbers: PredictionTable = {"embedding": list(embedding.numpy())}
        else:
            numbers = {f"e{i}": column.tolist() for i, column in enumerate(embedding.unbind(1))}
        write_table({**queries, **numbers}, self.output)
        print(f"{embedding.size(0):,} embeddings of width {embedding.size(1)}: {self.output}")


def _directions(run: Run) -> str:
    """Which directions the edges of files have: those that they had in the training of the run."""
    if run.schema is None:
        return (
            "Edges are read in both directions: the run was not trained on files, which would say otherwise. Edges of "
            "one direction are read in Python: run.predict(idgnn.FileSource(..., directed=True))."
        )
    how = "one direction, as in training (--directed)" if run.schema.directed else "both directions, as in training"
    return f"Edges are read in {how}."
