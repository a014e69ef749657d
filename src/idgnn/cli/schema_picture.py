"""A picture of a schema: tables with their rows, foreign keys as arrows, distances from one table as colors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import networkx as nx
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from idgnn.cli.identity_picture import BOTH_WAYS, COLORED, PLAIN, Place, check_picture
from idgnn.graphs.relational.tables import KeyedTable
from idgnn.writing import replacing

NEAR = ("#bfe3cf", "#cfe0f3", "#ddd3f0", "#f5dbe6")  # one, two, three, and four or more steps from the colored table
LETTER, KEY_LETTER = 0.085, 0.065  # inches, of the names of tables and of foreign keys
HEIGHT, GAP, MARGIN, TITLE = 0.5, 0.7, 0.55, 0.4  # inches: of a box, between boxes, around all, above
LABEL = 0.16  # inches, the height of the name of a foreign key
BEND = 0.3  # of arrows that would cover others, or pass behind a box


@dataclass(frozen=True)
class Key:
    """A foreign key: the table that has it, the table that it refers to, and its column."""

    table: str
    target: str
    column: str


def draw_schema(
    tables: Mapping[str, KeyedTable], steps: Mapping[str, int], root: str, num_layers: int, path: Path
) -> None:
    """Draws the tables in columns by `steps`, the number of message steps from `root` to each that can be reached.

    Tables that a color does not reach with `num_layers` layers have a dashed border.
    """
    check_picture(path)
    keys = [
        Key(name, target, column) for name, each in tables.items() for column, target in each.schema.foreign.items()
    ]
    away = {name: 0 if name == root else steps.get(name) for name in tables}
    text = {name: f"{name}\n{len(table):,} row{'s' * (len(table) != 1)}" for name, table in tables.items()}
    width = 0.3 + LETTER * max(len(line) for each in text.values() for line in each.split("\n"))
    across = width + GAP + KEY_LETTER * max((len(key.column) for key in keys), default=0)
    place = {name: (across * x, (HEIGHT + GAP) * y) for name, (x, y) in columns(away, keys).items()}
    right, top = (max(each[axis] for each in place.values()) for axis in (0, 1))
    layers = f"{num_layers} layer{'s' * (num_layers != 1)}"
    title = f"message steps from {root}, which is colored;\ndashed: not reached with {layers}"
    broad = max(right + width, LETTER * max(map(len, title.split("\n"))))
    size = broad + 2 * MARGIN, top + HEIGHT + 2 * MARGIN + TITLE
    figure = Figure(figsize=size)
    axes = figure.add_axes((0, 0, 1, 1 - TITLE / size[1]))
    boxes = {name: _box(place[name], width, away[name], num_layers) for name in tables}
    for name, box in boxes.items():
        axes.add_patch(box)
        axes.text(*place[name], text[name], ha="center", va="center", fontsize=9, parse_math=False, zorder=4)
    _draw_keys(axes, keys, place, boxes)
    # One unit of the axes is an inch, so that arcs and their labels meet.
    axes.set_xlim((right - size[0]) / 2, (right + size[0]) / 2)
    axes.set_ylim(-HEIGHT / 2 - MARGIN, top + HEIGHT / 2 + MARGIN)
    axes.axis("off")
    axes.set_title(title, fontsize=10, parse_math=False, pad=-6)
    dated = {"Date": None} if path.suffix == ".svg" else None
    with matplotlib.rc_context({"svg.hashsalt": "idgnn"}), replacing(path) as temporary:  # the same file every time
        figure.savefig(temporary, format=path.suffix[1:], dpi=150, metadata=dated)


def columns(steps: Mapping[str, int | None], keys: Sequence[Key]) -> dict[str, Place]:
    """The column and row of each table: a column for each number of steps, the last for tables that have no way.

    In a column, tables are in the order of those that they are connected to in the columns before.

    Example:
        >>> keys = [Key("visits", "users", "user"), Key("visits", "items", "item")]
        >>> columns({"users": 0, "visits": 1, "items": 2, "codes": None}, keys)
        {'users': (0.0, 0.0), 'visits': (1.0, 0.0), 'items': (2.0, 0.0), 'codes': (3.0, 0.0)}
    """
    last = 1 + max(step for step in steps.values() if step is not None)
    column = {name: last if step is None else step for name, step in steps.items()}
    graph = nx.Graph((key.table, key.target) for key in keys)
    graph.add_nodes_from(steps)
    members = [[name for name in steps if column[name] == number] for number in range(last + 1)]
    tallest = max(map(len, members))
    place: dict[str, Place] = {}
    for number, names in enumerate(members):
        before = {name: [place[other][1] for other in graph[name] if other in place] for name in names}
        names.sort(key=lambda name: sum(before[name]) / max(len(before[name]), 1))
        first = (tallest - len(names)) / 2
        place |= {name: (float(number), first + row) for row, name in enumerate(names)}
    return place


def bends(keys: Sequence[Key], place: Mapping[str, Place]) -> list[float]:
    """How much the arrow of each key is bent: several keys of two tables differ, and those past a box are bent."""
    found, count = [], dict[frozenset[str], int]()
    for key in keys:
        pair = frozenset((key.table, key.target))
        number = count[pair] = count.get(pair, -1) + 1
        (x, y), (u, v) = place[key.table], place[key.target]
        past = any(
            min(x, u) <= a <= max(x, u)
            and min(y, v) <= b <= max(y, v)
            and abs((u - x) * (b - y) - (v - y) * (a - x)) < 0.1
            for name, (a, b) in place.items()
            if name not in pair
        )
        direction = 1 if (x, y) < (u, v) else -1  # the same side for arrows of both directions
        found.append(direction * BEND * ((number + 1) // 2 * (-1) ** number + past))
    return found


def _box(place: Place, width: float, steps: int | None, num_layers: int) -> FancyBboxPatch:
    color = PLAIN if steps is None else (COLORED, *NEAR)[min(steps, len(NEAR))]
    reached = steps is not None and steps <= num_layers
    x, y = place[0] - width / 2, place[1] - HEIGHT / 2
    border = {"facecolor": color, "edgecolor": BOTH_WAYS, "linestyle": "-" if reached else "--", "zorder": 3}
    return FancyBboxPatch((x, y), width, HEIGHT, "round,pad=0,rounding_size=0.08", mutation_scale=1, **border)


def _draw_keys(
    axes: Axes, keys: Sequence[Key], place: Mapping[str, Place], boxes: Mapping[str, FancyBboxPatch]
) -> None:
    """Arrows from the tables that have the keys to those that they refer to, with the names of the columns."""
    loops: dict[str, int] = {}
    labels: list[tuple[Place, float]] = []  # where they are, and their widths
    bent = zip(keys, bends(keys, place), strict=True)
    # Flat arrows first: labels of steep ones find other places.
    for key, bend in sorted(bent, key=lambda each: abs(place[each[0].table][1] - place[each[0].target][1])):
        (x, y), (u, v), width = place[key.table], place[key.target], KEY_LETTER * len(key.column)
        style = {"arrowstyle": "-|>", "mutation_scale": 11, "color": BOTH_WAYS, "zorder": 2}
        if key.table == key.target:  # an arc above the box, and the next below
            number = loops[key.table] = loops.get(key.table, -1) + 1
            side, reach = (-1) ** number, 0.2 * (1 + number // 2)
            edge = y + side * HEIGHT / 2
            arc = {"connectionstyle": f"arc3,rad={-1.6 * side}", "shrinkA": 0, "shrinkB": 0}
            axes.add_patch(FancyArrowPatch((x - reach, edge), (x + reach, edge), **style, **arc))
            label = x, edge + side * (1.6 * reach + 0.04)
        else:
            ends = {"patchA": boxes[key.table], "patchB": boxes[key.target], "shrinkA": 1, "shrinkB": 1}
            axes.add_patch(FancyArrowPatch((x, y), (u, v), connectionstyle=f"arc3,rad={bend:g}", **style, **ends))
            label = _free(_arc((x, y), (u, v), bend), width, labels)
        labels.append((label, width))
        behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        axes.text(*label, key.column, ha="center", va="center", fontsize=7, parse_math=False, bbox=behind, zorder=2.5)


def _arc(start: Place, end: Place, bend: float) -> list[Place]:
    """Points of an arrow, those near its middle first."""
    (x, y), (u, v) = start, end
    control = (
        (x + u) / 2 + bend * (v - y),
        (y + v) / 2 - bend * (u - x),
    )  # of matplotlib's arc3, a quadratic Bezier curve
    weights = [((1 - t) ** 2, 2 * t * (1 - t), t**2) for t in (0.5, 0.42, 0.58, 0.36, 0.64)]
    return [(a * x + b * control[0] + c * u, a * y + b * control[1] + c * v) for a, b, c in weights]


def _free(points: Sequence[Place], width: float, labels: Sequence[tuple[Place, float]]) -> Place:
    """The first of the points at which a label covers no other; the first of all if there is none."""

    def apart(point: Place, other: Place, both: float) -> bool:
        return abs(point[0] - other[0]) > both / 2 or abs(point[1] - other[1]) > LABEL

    free = (point for point in points if all(apart(point, other, width + wide) for other, wide in labels))
    return next(free, points[0])
