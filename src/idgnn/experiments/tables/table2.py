"""Table 2: predicting properties of graphs, many of which plain GNNs cannot compute."""

from __future__ import annotations

import json
from pathlib import Path

from idgnn.experiments.expectations import Bound, Bounds
from idgnn.experiments.paper_models import (
    BEYOND_NOTE,
    FULL,
    IDENTITY_GAIN,
    PAPER,
    PLAIN_AS_RELEASED,
    WALKS,
    WALKS_NOTE,
    rows_of,
)
from idgnn.experiments.protocols import Setups, TaskColumn, released, specs_of, text
from idgnn.experiments.recommended import recommended
from idgnn.experiments.table import Table

_NODE, _PATH, _GRAPH = "node-clustering", "shortest-path", "graph-clustering"
# The datasets of the released code, and how many of their smallest graphs it takes.
_RELEASED = {"ScaleFree": ("ba", None), "SmallWorld": ("ws", None), "ENZYMES": ("ENZYMES", 100)}
_RELEASED |= {"PROTEINS": ("PROTEINS", 100)}


def _node(name: str) -> TaskColumn:
    data, smallest = _RELEASED[name]
    setups: Setups = {
        "text": text(_NODE, name, 1000),
        "released": released(_NODE, data, 1000, smallest=smallest),
        "recommended": recommended(_NODE, name),
    }
    return TaskColumn(f"node-{name}", name, "Node: clustering coefficient", "accuracy", setups)


def _path(name: str) -> TaskColumn:
    data, smallest = _RELEASED[name]
    batch_size = 32 if smallest is None else 8
    setups: Setups = {
        "text": text(_PATH, name, 100, 32),
        "released": released(_PATH, data, 100, batch_size, smallest=smallest),
        "recommended": recommended(_PATH, name),
    }
    return TaskColumn(f"path-{name}", name, "Pair: shortest path distance", "accuracy", setups)


def _graph(name: str) -> TaskColumn:
    data = f"{_RELEASED[name][0]}500"
    setups: Setups = {
        "text": text(_GRAPH, name, 1000),
        "released": released(_GRAPH, data, 1000, 64, lr=0.1),
        "recommended": recommended(_GRAPH, name),
    }
    return TaskColumn(f"graph-{name}", name, "Graph: clustering coefficient", "accuracy", setups)


_COLUMNS = (*map(_node, _RELEASED), *map(_path, _RELEASED), _graph("ScaleFree"), _graph("SmallWorld"))


def _bound(name: str, prefix: str, rows: tuple[str, ...], score: float) -> Bound:
    return Bound(name, tuple(each.name for each in _COLUMNS if each.name.startswith(prefix)), rows, score)


_FULL = tuple(model.name for model in FULL)
_FULL_BY_ARCHITECTURE = Bounds(
    "full",
    "ID-GNN-Full by architecture",
    "Accuracy of ID-GNN-Full under the protocol of the text, where every architecture colors its messages as Eq. 3 "
    "has it. Expected on clustering coefficients of nodes: GCN and GIN at least 0.95; on shortest path distances: all "
    "four at least 0.99. Without a sign nothing is expected.",
    _FULL,
    (
        _bound("Clustering of nodes: ID-GCN and ID-GIN at least 0.95", "node-", ("full-gcn", "full-gin"), 0.95),
        _bound("Shortest paths: all four ID-GNN-Full at least 0.99", "path-", _FULL, 0.99),
    ),
)

_FULL_AS_RECOMMENDED = Bounds(
    "full-recommended",
    "ID-GNN-Full with the recommended settings",
    "Accuracy of ID-GNN-Full with the recommended settings, where the update of the colored node has second weights "
    "too, and SAGE sums. Expected: at least 0.99 on clustering coefficients of nodes and on shortest path distances, "
    "for all four.",
    _FULL,
    (
        _bound("Clustering of nodes: all four ID-GNN-Full at least 0.99", "node-", _FULL, 0.99),
        _bound("Shortest paths, recommended: all four ID-GNN-Full at least 0.99", "path-", _FULL, 0.99),
    ),
    "recommended",
)

TABLE = Table(
    "table2",
    "Table 2: Graph properties",
    rows_of(PAPER + WALKS),
    tuple(column.shown for column in _COLUMNS),
    specs_of("table2", _COLUMNS),
    json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")),
    ("text", "released", "recommended"),
    note="Of 10 quantile bins of clustering coefficients of nodes, those with equal edges become one. Left are 6 "
    "classes, but 7 on all of PROTEINS and 5 on the 100 graphs of ENZYMES that the released code takes. On its 100 "
    "graphs of PROTEINS 72 % of the pairs are in the last class of shortest paths: the published 0.722 of all "
    f"baselines is the share of that class. Of all its graphs 47 % are. {BEYOND_NOTE}{WALKS_NOTE}.",
    expectations=(IDENTITY_GAIN, _FULL_BY_ARCHITECTURE, _FULL_AS_RECOMMENDED, PLAIN_AS_RELEASED),
)
