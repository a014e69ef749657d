"""`idgnn inspect`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from idgnn.cli.arguments import File, Name, OwnFiles, read
from idgnn.cli.names import expected_names, graph_places, node_places

if TYPE_CHECKING:
    from rich.table import Table
    from torch_geometric.data import Data

    from idgnn.graphs.dataset import Dataset
    from idgnn.tasks.query_set import QuerySet

MOST_LAYERS = 6


@dataclass(frozen=True)
class Inspect:
    """Look at graphs: their statistics, what ID-GNN-Full will cost on them, and a picture of an identity graph.

    idgnn inspect ENZYMES

    idgnn inspect --edges edges.csv --picture identity.svg --node Ann --layers 3
    """

    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name; idgnn data lists them."""
    files: tyro.conf.OmitArgPrefixes[OwnFiles] = field(default_factory=OwnFiles)
    seconds: float = 20.0
    """How long the costs may be counted; those that take longer are left out."""
    picture: File = None
    """Draw a graph, and its identity graph for one colored node: .png, .svg or .pdf."""
    graph: Name = None
    """For the picture: the number of the graph, from 0, or its name. The first, unless another is asked for."""
    node: Name = None
    """For the picture: the node that is colored, by its name, or by its number in a dataset. Otherwise the first."""
    layers: int = 3
    """For the picture: the number of layers, K."""

    def __call__(self) -> None:
        """Prints two tables, and draws the picture if one is asked for."""
        from rich.console import Console

        from idgnn.tasks.query_set import stack

        if self.picture is None and (self.graph is not None or self.node is not None):
            raise ValueError("--graph and --node are for a picture. Add --picture FILE.png, or leave them out.")
        if not self.seconds >= 0:
            raise ValueError(f"--seconds is {self.seconds:g}, expected 0 or more: how long the costs may be counted.")
        dataset = read(self.files.source(self.dataset))
        if self.picture is not None:  # first, for what is wrong with it is found at once, and counting takes longer
            self._draw(dataset.graphs, self.picture)
        part = stack("node", dataset.graphs)
        console = Console()
        for table in _statistics(dataset, part):
            console.print(table)
        table, note = _costs(part, self.seconds)
        console.print(table)
        if note is not None:
            console.print(note, highlight=False, soft_wrap=True)
        if self.picture is not None:
            console.print(f"The picture: {self.picture}", highlight=False, soft_wrap=True)

    def _draw(self, graphs: list[Data], path: Path) -> None:
        from idgnn.cli.identity_picture import draw_identity_graph

        places = graph_places(graphs)
        number = 0 if self.graph is None else places.get(self.graph, _number(self.graph, len(graphs)))
        if number is None:
            expected = f"a number from 0 to {len(graphs) - 1}, or {expected_names(places)}"
            raise ValueError(f"--graph is {self.graph!r}, expected {expected}.")
        nodes = node_places(graphs[number])
        node = 0 if self.node is None else nodes.get(self.node)
        if node is None or not nodes:
            raise ValueError(f"--node is {self.node!r}, expected {expected_names(nodes)}.")
        draw_identity_graph(graphs[number], node, self.layers, list(nodes), path)


def _number(text: str, size: int) -> int | None:
    return int(text) if text.isdecimal() and int(text) < size else None


def _statistics(dataset: Dataset, part: QuerySet) -> tuple[Table, Table]:
    from rich.markup import escape
    from rich.table import Table

    from idgnn.cli.statistics import facts, sizes

    numbers = Table("", "total", "mean", "least", "most", title=escape(dataset.name))
    for column in numbers.columns[1:]:
        column.justify = "right"
    for row in sizes(part):
        numbers.add_row(*row)
    words = Table(show_header=False)
    for name, value in facts(dataset, part):
        words.add_row(escape(name), escape(value))
    return numbers, words


def _costs(part: QuerySet, seconds: float) -> tuple[Table, str | None]:
    import torch
    from rich.filesize import decimal
    from rich.table import Table
    from torch_geometric.data import Data

    from idgnn.cli.identity_costs import LeftOut, identity_costs

    # Of the features only the width counts. Whole numbers are as wide, and nobody checks a million rows of them.
    width = torch.zeros(1, dtype=torch.int32)
    data = Data(x=width.expand(part.x.shape), edge_index=part.edge_index)
    for name in ("edge_attr", "edge_weight"):
        if (values := getattr(part, name)) is not None:
            data[name] = width.expand(values.shape)
    table = Table(
        "layers K", "rows", "times the nodes", "edges", "size", title="cost of ID-GNN-Full, before it is built"
    )
    for column in table.columns:
        column.justify = "right"
    for num_layers, cost in enumerate(identity_costs(data, MOST_LAYERS, seconds), 1):
        if isinstance(cost, LeftOut):
            left = f"K = {num_layers}{f' to {MOST_LAYERS}' if num_layers < MOST_LAYERS else ''}"
            return table, f"{left} left out: {cost.why}."
        times = f"{cost.rows / max(part.owner.numel(), 1):,.1f}"
        table.add_row(str(num_layers), f"{cost.rows:,}", times, f"{cost.edges:,}", decimal(cost.bytes))
    return table, None
