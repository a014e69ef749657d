"""Table 3: real-world tasks."""

from __future__ import annotations

import json
from pathlib import Path

from idgnn.experiments.paper_models import (
    BEYOND_NOTE,
    BOTH,
    BOTH_NOTE,
    IDENTITY_GAIN,
    PAPER,
    PLAIN_AS_RELEASED,
    TWO_COLORS,
    TWO_COLORS_NOTE,
    WALKS,
    WALKS_NOTE,
    rows_of,
)
from idgnn.experiments.protocols import Setups, TaskColumn, released, specs_of, text
from idgnn.experiments.recommended import recommended, two_color_links
from idgnn.experiments.table import Table

_NODE, _LINK, _CLASS = "node-classification", "link-prediction", "graph-classification"
_NODE_GROUP, _LINK_GROUP, _GRAPH_GROUP = "Node: real-world labels", "Pair: link prediction", "Graph: real-world labels"


def _node(name: str) -> TaskColumn:
    setups: Setups = {
        "text": text(_NODE, name, 100, 1),
        "released": released(_NODE, name, 100, 1),
        "recommended": recommended(_NODE, name),
    }
    return TaskColumn(f"class-{name}", name, _NODE_GROUP, "accuracy", setups)


def _link(name: str, data: str, batch_size: int, smallest: int | None) -> TaskColumn:
    of_code = released(_LINK, data, 100, batch_size, smallest=smallest)
    setups: Setups = {
        "text": text(_LINK, name, 100, 32),
        "released": of_code,
        "recommended": recommended(_LINK, name),
    }
    beyond: Setups = {"recommended": two_color_links(name)}
    return TaskColumn(f"link-{name}", name, _LINK_GROUP, "roc_auc", setups, beyond)


def _two_classes(name: str) -> TaskColumn:
    setups: Setups = {
        "text": text(_CLASS, name, 1000),
        "released": released(_CLASS, name, 1000, 64, lr=0.1),
        "recommended": recommended(_CLASS, name),
    }
    return TaskColumn(f"class-{name}", name, _GRAPH_GROUP, "accuracy", setups)


COLUMNS = (
    _node("Cora"),
    _node("CiteSeer"),
    _link("ScaleFree", "ba", 32, None),
    _link("SmallWorld", "ws", 32, None),
    _link("ENZYMES", "ENZYMES", 8, 100),
    _link("PROTEINS", "PROTEINS", 8, 100),
    TaskColumn(
        "class-ENZYMES",
        "ENZYMES",
        _GRAPH_GROUP,
        "accuracy",
        {
            "text": text(_CLASS, "ENZYMES", 1000),
            "released": released(_CLASS, "ENZYMES", 100, min_nodes=0),
            "recommended": recommended(_CLASS, "ENZYMES"),
        },
    ),
    _two_classes("PROTEINS"),
    _two_classes("BZR"),
    TaskColumn(
        "class-ogbg-molhiv",
        "ogbg-molhiv",
        _GRAPH_GROUP,
        "roc_auc",
        {
            "text": text(_CLASS, "ogbg-molhiv", 100, split="provided"),
            "released": released(_CLASS, "ogbg-molhiv", 100, split="provided", lr=0.001, schedule="constant"),
            "recommended": recommended(_CLASS, "ogbg-molhiv", split="provided"),
        },
    ),
)

TABLE = Table(
    "table3",
    "Table 3: Real-world tasks",
    rows_of(PAPER + WALKS + BOTH + TWO_COLORS),
    tuple(column.shown for column in COLUMNS),
    specs_of("table3", COLUMNS),
    json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8")),
    ("text", "released", "recommended"),
    note="For graphs of PROTEINS and BZR the text says ROC AUC, but the published figures are accuracies: this is "
    "what is compared, and both are among the runs of a cell. All scores are of held-out parts at the last epoch; that "
    "of ogbg-molhiv is the validation part of the split that it comes with, not the test part. "
    f"{BEYOND_NOTE}{WALKS_NOTE}, {BOTH_NOTE} and {TWO_COLORS_NOTE}.",
    expectations=(IDENTITY_GAIN, PLAIN_AS_RELEASED),
)
