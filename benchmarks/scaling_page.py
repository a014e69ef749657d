"""Writes `docs/scaling.md` from a record of `benchmarks.scaling`: `python -m benchmarks.scaling_page`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speed_page import record, table, where
from idgnn.writing import write_text

PAGE = Path("docs/scaling.md")
HEAD = """# How the cost grows

Exact ID-GNN-Full embeddings of all nodes of random graphs by a GCN of width {width}: the plain GNN, ours
(`IDGNN.embed`), and ego networks (Algorithm 1 of the paper). "With hubs", one end of each edge is drawn in favor
of a few nodes, so that the largest degree grows with the graph, up to {hub:,}. {machine},
on a machine with other work to do; ego networks were run for up to 200 nodes, and their figures scaled
to all. `python -m benchmarks.scaling` gives
[all figures](../benchmarks/results/scaling.json).

![Messages and seconds against nodes, mean degree and depth](figures/scaling.svg)

Dashed lines are graphs with hubs.
"""
TITLES = {
    "nodes": ("nodes", "Nodes (mean degree 8, *K* = 3)"),
    "mean degree": ("degree", "Mean degree (20,000 nodes, *K* = 3)"),
    "K": ("K", "Depth *K* (20,000 nodes, mean degree 4)"),
}
COLUMNS = ("rows, ours", "messages, ours", "seconds, plain", "ours", "ego networks", "ego : ours")
SLOPES = (("ours", "messages"), ("ours", "seconds"), ("ego", "messages"), ("ego", "seconds"))
TAIL = """
For *K* up to 3 cost is linear in the edges, hubs or not: a colored row receives only what the color changes, and
for *K* = 3 that comes from its neighbors and from triangles. Every second layer beyond that takes the balls one
step further, and with hubs two steps are most of the graph. In training it is the same. For layers that do not sum
(GAT, SAGE with a maximum) a row has all in-edges of its node, and hubs cost the square of their degree.
"""


def main() -> None:
    """Reads the record and writes the page."""
    write_text(PAGE, page())


def page() -> str:
    """The whole page."""
    found = record("scaling")
    hub = max(each["largest degree"] for each in found["figures"])
    lines = [HEAD.format(width=found["width"], hub=hub, machine=where(found["machine"]))]
    for sweep, (key, title) in TITLES.items():
        rows = [_figure(each, key) for each in found["figures"] if each["sweep"] == sweep]
        lines += [f"## {title}\n", *table((sweep, "hubs", *COLUMNS), rows, left=2), ""]
    lines += ["## Slopes\n", "The exponent with which cost grows with the number of edges; 1 is linear.\n"]
    heads = [f"{what}, {'ego networks' if who == 'ego' else who}" for who, what in SLOPES]
    rows = []
    for sweep in ("nodes", "mean degree"):
        for kind in ("without hubs", "with hubs"):
            slopes = [f"{found['slopes'][f'{sweep}, {kind}, {who}: {what}']:.2f}" for who, what in SLOPES]
            rows.append([sweep, "yes" if kind == "with hubs" else "", *slopes])
    lines += table(("what grows", "hubs", *heads), rows, left=2)
    return "\n".join([*lines, TAIL])


def _figure(each: dict[str, Any], key: str) -> list[str]:
    plain, ours, ego = (each[who] for who in ("plain", "ours", "ego"))
    return [
        f"{each[key]:,}",
        "yes" if each["graph"] == "with hubs" else "",
        f"{ours['rows']:,}",
        f"{ours['messages']:,}",
        *(_rounded(who["seconds"]) for who in (plain, ours, ego)),
        _rounded(ego["seconds"] / ours["seconds"]),
    ]


def _rounded(value: float) -> str:
    """Two digits."""
    value = float(f"{value:.2g}")
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


if __name__ == "__main__":
    main()
