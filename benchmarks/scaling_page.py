"""Writes `docs/scaling.md` from records of `benchmarks.scaling` and `benchmarks.two_colors`.

`python -m benchmarks.scaling_page`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.speed_page import CONVS, record, table, where
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

TWO_COLORS = """
## Two colors

128 ENZYMES graphs, *K* = 3, neighbors as second nodes: {pairs:,} pairs (v, w), {nodes_rows:,} rows of the identity
graph of one color. Copies of the 3-hop ego network for each pair have {copies:,} rows, {both_ratio:.1f} times the
{both:,} rows under both colors. With the plain rows and those under one color, which pairs share, the identity graph
has {rows:,} rows, {ratio:.1f} times fewer than the copies. The trimmed rounds of a step compute {computed:.1f} times
fewer rows than rounds on all copies.

A training step (forward, backward, optimizer; equal parameters; contenders take turns; {machine}, on a
machine with other work to do, so that ratios say more than times):
"""
TWO_COLORS_GPU = """
{memory}

On one {machine}, where steps are replayed as CUDA graphs (`python -m benchmarks.two_colors --device cuda` gives
[all figures](../benchmarks/results/two_colors_h200.json), eager steps as well):
"""
TWO_COLORS_GROWTH = """
In eager mode, without recorded steps, copies take about as long there as two colors:
{eager} times.

{memory}

Rows of random graphs of 2,000 nodes. For *K* = 3 rows under both colors grow with the square of the degree, where
those of one color grow with the degree and copies with its fourth power, up to the size of the graph.
`python -m benchmarks.two_colors` gives [all figures](../benchmarks/results/two_colors.json).
"""


def main() -> None:
    """Reads the records and writes the page."""
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
    return "\n".join([*lines, TAIL, *_two_colors()])


def _two_colors() -> list[str]:
    """The section about a second color."""
    found = record("two_colors")
    value = {each["name"]: each["value"] for each in found["figures"]}
    head = TWO_COLORS.strip("\n").format(
        pairs=int(value["pairs of a node and a neighbor"]),
        nodes_rows=int(value["rows of the identity graph of one color"]),
        copies=int(value["rows of copies of ego networks"]),
        both=int(value["rows under both colors"]),
        rows=int(value["rows of the identity graph"]),
        both_ratio=value["copies : rows under both colors"],
        ratio=value["copies : rows of the identity graph"],
        computed=value["copies : rows, computed in all rounds"],
        machine=where(found["machine"]),
    )
    growth = [
        [str(each["K"]), str(each["degree"]), f"{each['pairs']:,}", *(f"{each['rows'][who]:,}" for who in each["rows"])]
        for each in found["growth"]
    ]
    gpu = record("two_colors_h200")
    there = {each["name"]: each["value"] for each in gpu["figures"]}
    return [
        head,
        "",
        *_steps(value, "step", digits=0),
        TWO_COLORS_GPU.format(memory=_memory(value), machine=where(gpu["machine"])),
        *_steps(there, "replayed step", digits=2),
        TWO_COLORS_GROWTH.format(memory=_memory(there), eager=_eager(there)),
        *table(("K", "mean degree", "pairs", "rows, one color", "two colors", "copies"), growth),
        "",
    ]


def _steps(value: dict[str, float], step: str, digits: int) -> list[str]:
    """Steps with two colors, as times and as ratios to others."""
    ratios = ("two colors : plain GNN", "two colors : one color", "copies : two colors")
    rows = [
        [
            title,
            f"{value[f'{conv}, {step}, two colors']:.{digits}f} ms",
            *(f"{value[f'{conv}, {step}, {each}']:.1f}" for each in ratios),
        ]
        for conv, title in CONVS.items()
        if f"{conv}, {step}, two colors" in value
    ]
    return table(("", "two colors", *ratios), rows)


def _eager(value: dict[str, float]) -> str:
    """Steps that are not recorded: copies to two colors."""
    found = [f"{value[f'{conv}, step, copies : two colors']:.2f} ({title})" for conv, title in CONVS.items()]
    return f"{', '.join(found[:-1])} and {found[-1]}"


def _memory(value: dict[str, float]) -> str:
    who = "plain GNN", "one color", "two colors", "copies"
    used = {name: value[f"gin, memory of a step, {name}"] for name in who}
    return f"Memory of a step of GIN: {', '.join(f'{name} {mib:,.0f} MiB' for name, mib in used.items())}."


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
