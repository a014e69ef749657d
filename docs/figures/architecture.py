"""Draws architecture.svg: the packages, the types that pass between them, and who imports whom."""

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

# name, what it answers, column, row
PACKAGES = [
    ("graphs", "where graphs come from", 0, 3),
    ("identity", "which rows, from which rows", 1, 3),
    ("layers", "one round of messages", 2, 3),
    ("models", "networks, wrapped models", 3, 3),
    ("tasks", "what is asked, loss, metric", 0, 1.5),
    ("training", "one loop, its record", 1.5, 1.5),
    ("experiments", "the tables of the paper", 3, 1.5),
    ("report", "tables, figures, pages", 2, 0),
    ("cli", "the verbs of the command line", 0.5, 0),
]
# from, to, the type that is handed over
ARROWS = [
    ("graphs", "identity", "Data"),
    ("identity", "layers", "Round"),
    ("layers", "models", "states"),
    ("graphs", "tasks", "list[Data]"),
    ("models", "training", "Predictor"),
    ("tasks", "training", "Problem"),
    ("training", "experiments", "Run"),
    ("experiments", "report", "RunRecord"),
    ("training", "cli", "Run"),
    ("report", "cli", "ResultTable"),
]
LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
WIDTH, HEIGHT, X, Y = 2.9, 0.8, 4.3, 1.25


def main() -> None:
    """Writes the picture beside this file."""
    plt.rcParams.update({"svg.hashsalt": "idgnn", "font.family": "sans-serif", "font.size": 9})
    figure, axes = plt.subplots(figsize=(13, 5.2))
    places = {name: (X * column, Y * row) for name, _, column, row in PACKAGES}
    for name, question, *_ in PACKAGES:
        x, y = places[name]
        box = FancyBboxPatch((x, y), WIDTH, HEIGHT, boxstyle="round,pad=0.06", facecolor="#eef3fb", edgecolor="#3b5b92")
        axes.add_patch(box)
        axes.text(x + WIDTH / 2, y + 0.55, name, ha="center", va="center", weight="bold")
        axes.text(x + WIDTH / 2, y + 0.22, question, ha="center", va="center", fontsize=8)
    for source, target, kind in ARROWS:
        start, end = _ends(places[source], places[target])
        arrow = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color="#555555", shrinkA=3, shrinkB=3)
        axes.add_patch(arrow)
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        axes.text(*middle, kind, ha="center", va="center", fontsize=7.5, family="monospace", bbox=LABEL)
    axes.set_xlim(-0.3, 3 * X + WIDTH + 0.3)
    axes.set_ylim(-0.4, 3 * Y + HEIGHT + 0.4)
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})


def _ends(source: tuple[float, float], target: tuple[float, float]) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow leaves one box and meets the other."""
    (x, y), (u, v) = source, target
    if y == v and x > u:
        return (x - 0.06, y + HEIGHT / 2), (u + WIDTH + 0.06, v + HEIGHT / 2)
    if y == v:
        return (x + WIDTH + 0.06, y + HEIGHT / 2), (u - 0.06, v + HEIGHT / 2)
    return (x + WIDTH / 2, y - 0.06), (u + WIDTH / 2, v + HEIGHT + 0.06)


if __name__ == "__main__":
    main()
