"""`idgnn inspect`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from idgnn.cli.arguments import File, Name, OwnFiles, check_no_graphs, read
from idgnn.cli.pairs import expected_names, graph_places, node_places
from idgnn.cli.tables import SchemaPicture, TableFiles, inspect_tables

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Inspect:
    """Look at graphs: their statistics, what ID-GNN-Full will cost on them, and a picture of an identity graph.

    idgnn inspect ENZYMES

    idgnn inspect --edges edges.csv --picture identity.svg --node Ann --layers 3

    idgnn inspect --tables folder --picture schema.svg --node drivers
    """

    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name; idgnn data lists them."""
    files: tyro.conf.OmitArgPrefixes[OwnFiles] = field(default_factory=OwnFiles)
    table_files: tyro.conf.OmitArgPrefixes[TableFiles] = field(default_factory=TableFiles)
    seconds: float = 3.0
    """Time limit for counting the costs of one color, and of two with neighbors as second nodes; where it takes longer,
    upper bounds are shown."""
    picture: File = None
    """Draw a graph, and its identity graph for one colored node; of tables the schema: .png, .svg or .pdf."""
    graph: Name = None
    """For the picture: the number of the graph, from 0, or its name. The first by default."""
    node: Name = None
    """For the picture: the node that is colored, by its name, or by its number in a dataset; of tables the table. The
    first by default."""
    layers: int = 3
    """For the picture: the number of layers, K."""

    def __call__(self) -> None:
        """Prints tables of statistics and costs, and draws the picture."""
        from rich.console import Console

        from idgnn.cli.graph_statistics import cost_table, fact_table, size_table
        from idgnn.identity.adjacency import IndexedGraph
        from idgnn.tasks.query_set import stack

        if self.picture is None and (self.graph, self.node, self.layers) != (None, None, Inspect.layers):
            raise ValueError(
                "--graph, --node and --layers are for a picture. Add --picture FILE.png, or leave them out."
            )
        if not self.seconds >= 0:
            raise ValueError(f"--seconds is {self.seconds:g}, expected 0 or more.")
        if self.table_files.tables is not None:
            if self.graph is not None:
                raise ValueError("--graph is for graphs; tables are one. Leave it out.")
            check_no_graphs(self.dataset, self.files)
            picture = None if self.picture is None else SchemaPicture(self.picture, self.node, self.layers)
            inspect_tables(self.table_files, self.seconds, picture)
            return
        self.table_files.check_unused()
        dataset = read(self.files.source(self.dataset))
        if self.picture is not None:  # first: its errors appear at once, and counting takes longer
            self._draw(dataset.graphs, self.picture)
        part = stack("node", dataset.graphs)
        console = Console()
        graph = IndexedGraph(part.edge_index, part.owner.numel())
        console.print(size_table(dataset, part, graph))
        console.print(fact_table(dataset, part, graph))
        table, note = cost_table(graph, part, self.seconds)
        console.print(table)
        if note is not None:
            console.print(note, highlight=False, soft_wrap=True)
        if self.picture is not None:
            console.print(f"The picture: {self.picture}", highlight=False, soft_wrap=True)

    def _draw(self, graphs: list[Data], path: Path) -> None:
        from idgnn.cli.identity_picture import draw_identity_graph

        places = graph_places(graphs)
        by_number = {str(i): i for i in range(len(graphs))}
        number = 0 if self.graph is None else (by_number | places).get(self.graph)
        if number is None:
            expected = f"a number from 0 to {len(graphs) - 1}, or {expected_names(places)}"
            raise ValueError(f"--graph is {self.graph!r}, expected {expected}.")
        nodes = node_places(graphs[number])
        node = 0 if self.node is None else nodes.get(self.node)
        if node is None or not nodes:
            raise ValueError(f"--node is {self.node!r}, expected {expected_names(nodes)}.")
        draw_identity_graph(graphs[number], node, self.layers, list(nodes), path)
