"""Tables of the statistics of graphs, and of the cost of ID-GNN-Full on them, counted within a time limit."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import psutil
import torch
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table
from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.dataset import Dataset
from idgnn.graphs.structure import num_repeated_edges
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cost import IdentityCost, TooLargeError, cost_bound, cost_on
from idgnn.identity.queries import Queries, as_queries
from idgnn.identity.second_nodes import SecondNodes
from idgnn.identity.walks.components import connected_components
from idgnn.tasks.query_set import QuerySet

MOST_LAYERS = 6
MOST_FILES = 5  # that are named
MOST_CLASSES = 12  # whose sizes are shown one by one
GROWTH = 32  # of a sample: the costs of all samples together are a fraction of the whole


def size_table(dataset: Dataset, part: QuerySet, graph: IndexedGraph) -> Table:
    """Total, mean, minimum and maximum of the nodes, edges and degrees."""
    table = Table("", "total", "mean", "least", "most", title=escape(dataset.name))
    for column in table.columns[1:]:
        column.justify = "right"
    nodes = torch.bincount(part.owner, minlength=part.num_graphs)
    edges = torch.bincount(part.owner[part.edge_index[0]], minlength=part.num_graphs)
    undirected = graph.symmetric
    table.add_row("graphs", f"{part.num_graphs:,}")
    table.add_row("nodes", f"{int(nodes.sum()):,}", *_spread(nodes))
    table.add_row(f"edges{', both directions counted' * undirected}", f"{int(edges.sum()):,}", *_spread(edges))
    for end, name in ((1, "degree"),) if undirected else ((1, "in-degree"), (0, "out-degree")):
        table.add_row(name, "", *_spread(torch.bincount(part.edge_index[end], minlength=part.owner.numel())))
    return table


def fact_table(dataset: Dataset, part: QuerySet, graph: IndexedGraph) -> Table:
    """The shape of the graphs, their features and their labels."""
    table = Table(show_header=False)
    for name, value in _facts(dataset, part, not graph.symmetric):
        table.add_row(escape(name), escape(value))
    return table


def cost_table(graph: IndexedGraph, part: QuerySet, seconds: float) -> tuple[Table, str | None]:
    """The cost for each number of layers, with one color and with two, and sentences about those that are bounds.

    With two colors the second nodes are neighbors.
    """
    # Only the width of the features matters, so they are replaced by views of a single number.
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
    notes = [_add_costs(table, identity_costs(graph, data, MOST_LAYERS, seconds), graph.num_nodes)]
    table.add_section()
    try:
        costs = identity_costs(graph, data, MOST_LAYERS, seconds, SecondNodes("neighbors"))
        notes.append(_add_costs(table, costs, graph.num_nodes, ", two colors"))
    except TooLargeError as error:
        notes.append(f"two colors with neighbors as second nodes: {error}")
    found = [note for note in notes if note is not None]
    return table, "\n".join(found) if found else None


def _add_costs(
    table: Table, costs: Iterator[tuple[IdentityCost, str | None]], num_nodes: int, colors: str = ""
) -> str | None:
    """Adds a row for each number of layers; returns a sentence about those that are bounds."""
    bounds, why = [], None
    for num_layers, (cost, reason) in enumerate(costs, 1):
        most = "" if reason is None else "≤ "
        if reason is not None:
            bounds.append(num_layers)
            why = why or reason
        numbers = (f"{cost.rows:,}", f"{cost.rows / max(num_nodes, 1):,.1f}", f"{cost.edges:,}")
        table.add_row(f"{num_layers}{colors}", *(most + number for number in numbers), most + decimal(cost.bytes))
    if why is None:
        return None
    last = f" to {bounds[-1]}" if len(bounds) > 1 else ""
    return f"K = {bounds[0]}{last}{colors} are upper bounds: {why}."


def identity_costs(
    graph: IndexedGraph, data: Data, most_layers: int, seconds: float, second: SecondNodes | None = None
) -> Iterator[tuple[IdentityCost, str | None]]:
    """The costs for 1, 2, ... layers. A bound, with the reason, where counting exceeds the time limit or the memory.

    With `second` they are those of two colors.
    """
    queries = None if second is None else second.read(graph, None).queries
    end = perf_counter() + seconds
    free = psutil.virtual_memory().available
    reason: str | None = None
    for num_layers in range(1, most_layers + 1):
        cost, exact = cost_bound(graph, data, num_layers, queries)
        if not exact and reason is None:
            counted = _cost_until(graph, data, num_layers, end, second)
            if isinstance(counted, IdentityCost):
                cost = counted
            else:
                about = f"{float(f'{counted:.1e}'):,.0f}"
                reason = (
                    f"counting would take longer than {seconds:g} s (--seconds); a sample suggests about {about} rows "
                    f"for K = {num_layers}"
                )
        yield cost, None if exact else reason
        if reason is None and cost.bytes > free:
            reason = f"{num_layers} layers would take more memory than the {free / 2**30:.1f} GiB that are free"


def _facts(dataset: Dataset, part: QuerySet, directed: bool) -> Iterator[tuple[str, str]]:
    (source, target), num_nodes = part.edge_index, part.owner.numel()
    yield "directed", "yes: some edges have no reverse" if directed else "no: every edge has its reverse"
    yield "connected", _connected(part)
    isolated = num_nodes - torch.unique(part.edge_index).numel()
    yield "isolated nodes", f"{isolated:,}"
    yield "self-loops", f"{int((source == target).sum()):,}"
    yield "duplicate edges", f"{num_repeated_edges(part.edge_index, num_nodes):,}"
    no_columns = dataset.schema is not None and not dataset.schema.node
    width = [0 if part.edge_attr is None else part.edge_attr.size(1), part.x.size(1)]
    if dataset.schema is not None:
        width = [sum(column.width for column in columns) for columns in (dataset.schema.edge, dataset.schema.node)]
    yield "node features", "none: every node gets the number 1" if no_columns else f"{width[1]:,}"
    yield "edge features", f"{width[0]:,}" if width[0] else "none"
    yield "edge weights", "no" if part.edge_weight is None else "yes"
    for first_row, header in (("names the columns", True), ("does not", False)):
        if files := [name for name, has in dataset.headers.items() if has == header]:
            more = f" and {len(files) - MOST_FILES:,} more" if len(files) > MOST_FILES else ""
            yield f"first row {first_row}", ", ".join(files[:MOST_FILES]) + more
    yield from _labels(dataset, part)
    for name, ids in dataset.provided_split.items():
        yield f"split: {name}", f"{ids.numel():,}"


def _spread(values: Tensor) -> tuple[str, str, str]:
    if values.numel() < 2:
        return "", "", ""
    return f"{values.double().mean():,.1f}", f"{int(values.min()):,}", f"{int(values.max()):,}"


def _connected(part: QuerySet) -> str:
    source, target = part.edge_index
    component = connected_components(source, target, part.owner.numel())  # [nodes]
    size = torch.bincount(component)
    owner = torch.zeros_like(size).scatter_(0, component, part.owner)
    whole = int((torch.bincount(owner, minlength=part.num_graphs) == 1).sum())
    if part.num_graphs > 1:
        return f"{whole:,} of {part.num_graphs:,} graphs"
    return "yes" if whole else f"no: {size.numel():,} components, the largest has {int(size.max()):,} nodes"


def _labels(dataset: Dataset, part: QuerySet) -> Iterator[tuple[str, str]]:
    given = [graph.get("y") for graph in dataset.graphs]
    y = [labels.flatten() for labels in given if isinstance(labels, Tensor)]
    if not y:
        yield "labels", "none"
        return
    labels = torch.cat(y)
    label = None if dataset.schema is None else dataset.schema.label
    whose = "graph" if labels.numel() == part.num_graphs else "node"
    if dataset.schema is not None and dataset.schema.label_of is not None:
        whose = dataset.schema.label_of
    known = labels[~labels.isnan() if labels.is_floating_point() else labels >= 0]
    unknown = labels.numel() - known.numel()
    beside = f", {unknown:,} unknown" if unknown else ""
    if not known.numel():
        yield "labels", f"of each {whose}, all unknown"
        return
    if label.categories is None if label is not None else bool((known != known.round()).any()):
        spread = f"mean {known.mean():.4g}, least {known.min():.4g}, most {known.max():.4g}"
        yield "labels", f"of each {whose}, quantities: {spread}{beside}"
        return
    classes, number = torch.unique(known.long(), return_counts=True)
    names = None if label is None else label.categories
    yield "labels", f"of each {whose}, {classes.numel():,} classes{beside}"
    for each, count in list(zip(classes.tolist(), number.tolist(), strict=True))[:MOST_CLASSES]:
        name = each if names is None else names[each]
        yield f"class {name}", f"{count:,} ({count / known.numel():.1%})"
    if classes.numel() > MOST_CLASSES:
        rest = int(number[MOST_CLASSES:].sum())
        yield f"{classes.numel() - MOST_CLASSES:,} other classes", f"{rest:,} ({rest / known.numel():.1%})"


def _cost_until(
    graph: IndexedGraph, data: Data, num_layers: int, end: float, second: SecondNodes | None = None
) -> IdentityCost | int:
    """The cost, or an estimate of the number of rows if counting them would not be finished at `end`.

    The costs of growing samples of the nodes are counted first; the time of each predicts that of the next.
    """

    def queries_of(nodes: Tensor | None) -> Queries:
        if second is None:
            return as_queries(nodes, graph.num_nodes, graph.into.edge.device)
        return second.read(graph, nodes).queries

    num_nodes = graph.num_nodes
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    size, fixed = 1, None  # the time of the first sample hardly depends on its size
    while size < num_nodes:
        before = perf_counter()
        cost = cost_on(graph, data, num_layers, queries_of(order[:size]))
        now = perf_counter()
        taken = now - before
        fixed = taken if fixed is None else min(fixed, taken)
        larger = min(size * GROWTH, num_nodes)
        if now + fixed + (taken - fixed) * larger / size > end:
            return num_nodes + (cost.rows - num_nodes) * num_nodes // size
        size = larger
    return cost_on(graph, data, num_layers, queries_of(None))
