"""The verbs on a folder of tables: train, predict, embed and inspect with `--tables`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from idgnn.choices import ColumnEncoding, RelationalKind
from idgnn.cli.arguments import File, Name, changed, check_unused

if TYPE_CHECKING:
    from torch_geometric.data import HeteroData

    from idgnn.graphs.relational.tables import KeyedTable
    from idgnn.tasks.relational import RelationalProblem
    from idgnn.training.relational import RelationalSettings
    from idgnn.training.relational_runs import TableRun

Folder = Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")]


@dataclass(frozen=True)
class TableFiles:
    """A folder of tables with keys and times, in place of graphs."""

    tables: Folder = None
    """A folder of tables, with schema.toml and tasks.toml (docs/relational.md)."""
    schema: File = None
    """The schema, if it is not schema.toml in the folder."""

    def check_unused(self) -> None:
        """Refuses options that say how tables are read, if there are none."""
        if self.tables is None:
            check_unused(changed(self), "without --tables FOLDER")

    @property
    def schema_file(self) -> Path:
        """Where the schema is."""
        from idgnn.graphs.relational.schema import SCHEMA_FILE

        assert self.tables is not None
        return self.tables / SCHEMA_FILE if self.schema is None else self.schema


@dataclass(frozen=True)
class TableOptions(TableFiles):
    """A folder of tables with keys and times, in place of graphs, and how it is trained on."""

    tasks: File = None
    """The tasks, if they are not in tasks.toml in the folder."""
    target: Name = None
    """The task of tasks.toml, if there are several of the kind that --task names."""
    window_years: float | None = None
    """How old a row may be to be seen."""
    columns: ColumnEncoding = "linear"
    """Who encodes columns: a linear layer, or the encoders of pytorch-frame (pip install 'idgnn[relational]')."""


def train_tables(
    options: TableOptions,
    kind: RelationalKind,
    device: str,
    settings: Sequence[RelationalSettings],
    folders: Sequence[Path],
) -> None:
    """Trains a network for each of the settings, and prints its metrics beside those of heuristics."""
    from idgnn.tasks.relational_files import TASKS_FILE, choose_task, read_tasks
    from idgnn.training.relational_runs import TableRun

    assert options.tables is not None
    tasks = (options.tables / TASKS_FILE if options.tasks is None else options.tasks).resolve()
    name = choose_task(read_tasks(tasks), kind, options.target, str(tasks))
    files = str(options.tables.resolve()), str(options.schema_file.resolve()), str(tasks)
    runs = [TableRun(*files, name, options.columns, device, each) for each in settings]
    _train(runs, folders)


def resume_tables(folder: Path) -> None:
    """Goes on with a run on tables that was stopped."""
    from idgnn.training.relational_runs import TableRun

    _train([TableRun.load(folder)], [folder])


def _train(runs: Sequence[TableRun], folders: Sequence[Path]) -> None:
    """Trains runs on the same task, each in its folder, and prints the results of all."""
    from rich.console import Console

    from idgnn.training.processes import check_single_process

    check_single_process("training on --tables")
    source, task = runs[0].read()
    _check_effect(runs[0], source.problem)
    console = Console()
    for table, columns in source.text_columns.items():
        console.print(_left_out(table, columns), highlight=False, soft_wrap=True)
    metrics: dict[str, dict[str, dict[str, float]]] = {}
    for run, folder in zip(runs, folders, strict=True):
        done = run.train(
            folder,
            source,
            task,
            begin=lambda size, run=run: console.print(
                _network(run, size), highlight=False, soft_wrap=True, markup=False
            ),
            show=lambda epoch: console.print(_line(epoch), highlight=False),
        )
        metrics[f"{run.settings.identity}, seed {run.settings.seed}"] = done.metrics
    _show(console, source.problem, metrics, runs[0].task)
    for folder in folders:
        console.print(f"The run: {folder}", highlight=False, soft_wrap=True)


def _check_effect(run: TableRun, problem: RelationalProblem) -> None:
    """Refuses options that have no effect on these tables."""
    from idgnn.graphs.relational.graph import last_time

    if run.settings.window_years is not None and last_time(problem.graph) is None:
        check_unused(["--window-years"], "on tables without times (time = ... in schema.toml)")
    if problem.columns is not None and all(code.kind == "text" for codes in problem.columns.values() for code in codes):
        check_unused(["--columns"], "on tables that have no columns but keys, times and text")


@dataclass(frozen=True)
class SchemaPicture:
    """What the picture of a schema shows."""

    path: Path
    root: str | None
    """The table that is colored; the first by default."""
    num_layers: int


def inspect_tables(files: TableFiles, seconds: float, picture: SchemaPicture | None) -> None:
    """Prints the schema, how many layers a color needs from table to table, and the cost of ID-GNN-Full."""
    from rich.console import Console
    from rich.table import Table

    from idgnn.graphs.relational.columns import find_codes, left_out
    from idgnn.graphs.relational.graph import to_graph
    from idgnn.graphs.relational.schema import read_schema
    from idgnn.graphs.relational.tables import read_tables
    from idgnn.graphs.relational.times import as_text

    assert files.tables is not None
    tables = read_tables(files.tables, read_schema(files.schema_file))
    codes = find_codes(tables)
    graph = to_graph(tables, codes)
    needed = layers_needed(graph)
    if picture is not None:  # first: its errors appear at once
        _draw(picture, tables, needed)
    console = Console()
    shown = Table("table", "rows", "from", "to", "features", "refers to", title="The schema")
    for name, table in tables.items():
        span = ["", ""] if table.time is None or not len(table) else [as_text(t) for t in _span(table.time)]
        features = ", ".join(f"{code.name} ({code.kind})" for code in codes[name] if code.kind != "text")
        refers = ", ".join(f"{column} → {target}" for column, target in table.schema.foreign.items())
        shown.add_row(name, f"{len(table):,}", *span, features, refers)
    console.print(shown)
    for name, columns in left_out(codes).items():
        console.print(_left_out(name, columns), highlight=False, soft_wrap=True)
    reach = Table("colored", *tables, title="Layers that a color needs from a table (row) to another (column)")
    for name, row in needed.items():
        reach.add_row(name, *(str(row[other]) if other in row else "–" for other in tables))
    console.print(reach)
    console.print(_cost_table(graph, _entities(tables), seconds))
    for name in tables:
        if not needed[name]:
            sentence = f"No foreign key starts or ends at table {name!r}: its rows are seen by no others."
            console.print(sentence, highlight=False, soft_wrap=True)
    if picture is not None:
        console.print(f"The picture: {picture.path}", highlight=False, soft_wrap=True)


def _draw(picture: SchemaPicture, tables: dict[str, KeyedTable], needed: dict[str, dict[str, int]]) -> None:
    from idgnn.cli.schema_picture import draw_schema

    if picture.num_layers < 1:
        raise ValueError(f"--layers is {picture.num_layers}, expected 1 or more.")
    if picture.root is not None and picture.root not in tables:
        raise ValueError(f"--node is {picture.root!r}, expected one of the tables {', '.join(tables)}.")
    root = picture.root or next(iter(tables))
    draw_schema(tables, needed[root], root, picture.num_layers, picture.path)


def layers_needed(graph: HeteroData) -> dict[str, dict[str, int]]:
    """The number of message steps from each node type to each other, and back to itself; absent if there is no way."""
    from idgnn.tasks.heuristics import shortest_path

    found: dict[str, dict[str, int]] = {}
    for one in graph.node_types:
        paths = {other: shortest_path(graph, one, other) for other in graph.node_types}
        found[one] = {other: len(path) for other, path in paths.items() if path is not None}
    return found


def _left_out(table: str, columns: Sequence[str]) -> str:
    return f"Columns of text or without values are left out: {', '.join(columns)} of {table}."


def _entities(tables: dict[str, KeyedTable]) -> list[str]:
    """The tables that are asked about: those that foreign keys refer to, and those without times; others are events."""
    foreign = {name: set(table.schema.foreign.values()) for name, table in tables.items()}
    referred = set().union(*foreign.values())
    return [name for name, table in tables.items() if name in referred or (foreign[name] and table.time is None)]


def _cost_table(graph: HeteroData, kinds: Sequence[str], seconds: float) -> Any:
    """Rows and messages per colored node of each table, on the whole graph, from a sample of its nodes."""
    import time

    import torch
    from rich.table import Table

    from idgnn.identity.cost import identity_cost

    shown = Table("colored", "K", "rows", "messages", title="Cost of ID-GNN-Full for a node (mean of up to 20)")
    plain_rows = sum(int(graph[kind].num_nodes) for kind in graph.node_types)
    plain_edges = sum(graph[kind].edge_index.size(1) for kind in graph.edge_types)
    end = time.monotonic() + seconds
    for kind in kinds:
        size = int(graph[kind].num_nodes)
        ids = torch.randperm(size, generator=torch.Generator().manual_seed(0))[:20]
        for num_layers in (2, 3, 4):
            if not ids.numel() or time.monotonic() > end:
                break
            cost = identity_cost(graph, num_layers, (kind, ids))
            rows, edges = cost.rows - plain_rows, cost.edges - plain_edges
            shown.add_row(kind, str(num_layers), f"{rows / ids.numel():,.0f}", f"{edges / ids.numel():,.0f}")
    return shown


def _span(times: Any) -> tuple[float, float]:
    return float(times.min()), float(times.max())


def _network(run: TableRun, num_parameters: int) -> str:
    """What is trained."""
    chosen = run.settings
    return (
        f"{Path(run.tables).name}, {run.task}: identity {chosen.identity}, "
        f"{chosen.num_layers} layer{'s' * (chosen.num_layers != 1)}, width {chosen.hidden_channels}, "
        f"{num_parameters:,} parameters, {chosen.epochs} epoch{'s' * (chosen.epochs != 1)}, lr {chosen.lr:g}, "
        f"seed {chosen.seed}"
    )


def _line(epoch: dict[str, Any]) -> str:
    metric, value = next(iter(epoch["valid"].items()))
    return f"epoch {epoch['epoch'] + 1}  loss {epoch['loss']:.4f}  {metric} {value:.4f}  {epoch['seconds']:.1f} s"


def _show(console: Any, problem: Any, metrics: dict[str, dict[str, dict[str, float]]], name: str) -> None:
    """Prints, for each part of the split, the metrics of the networks and those of heuristics."""
    from rich.table import Table

    for part in next(iter(metrics.values())):
        networks = {row: values[part] for row, values in metrics.items()}
        names = list(next(iter(networks.values())))
        table = Table("", *names, title=f"{name}, {part}")
        for row, values in (networks | problem.heuristics(part)).items():
            table.add_row(row, *(f"{values[metric]:.4f}" if metric in values else "" for metric in names))
        console.print(table)
