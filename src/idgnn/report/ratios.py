"""Table 4 as ratios, which depend less on the machine than milliseconds do."""

from __future__ import annotations

from statistics import median

from idgnn.experiments.spec import RunRecord
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.layout import Heading
from idgnn.report.tables import ResultTable

_GCN, _EGO, _OURS = "gcn", "full-gcn-ego", "full-gcn"
# Name, dividend, divisor, and the two of the published ratio: the published ID-GNN-Full is the one on ego networks.
_RATIOS = (
    ("ID-GNN-Fast : GCN", "fast-gcn", _GCN, ("fast-gcn", _GCN)),
    ("GCN on ego networks : GCN", "gcn-ego", _GCN, ("gcn-ego", _GCN)),
    ("ID-GNN-Full on ego networks : GCN", _EGO, _GCN, (_EGO, _GCN)),
    ("ID-GNN-Full, ours : GCN", _OURS, _GCN, (_EGO, _GCN)),
    ("ID-GNN-Full, ego networks : ours", _EGO, _OURS, None),
)
_CAPTION = (
    "How many times longer the first takes than the second, on the same batch and machine, taking turns. A ratio is "
    "the median over the turns, and over seeds the median of those. The published ratio of ID-GNN-Full is that on ego "
    "networks; it is also shown beside ours, which computes the same embeddings."
)


def ratios(table: ResultTable) -> Block | None:
    """The ratios of Table 4, published and ours; None for other tables."""
    if table.layout.name != "table4":
        return None
    headings = table.layout.headings
    cell = table.cell("text", _GCN, headings[0])  # all cells share the measurements, one for each seed
    assert cell is not None
    records = [run.record for run in cell.runs if run.record is not None and run.record.result is not None]
    heads, lines = list[Head](), []
    for heading in headings:
        heads += [Head("published", heading.title)] if heading.compared else []
        heads.append(Head("ours", heading.title))
    for name, first, second, published in _RATIOS:
        cells = []
        for heading in headings:
            cells += [_published(table, heading, published)] if heading.compared else []
            ours = [ratio for each in records if (ratio := _ratio(each, heading, first, second)) is not None]
            hint = ", ".join(f"{each:.2f}" for each in ours)
            cells.append(Shown(f"{median(ours):.1f}" if ours else "not run", hint=hint))
        lines.append(Line(name, tuple(cells)))
    machines = sorted({record.machine.partition(",")[0] for record in records})
    caption = _CAPTION + (f" Ours: {' and '.join(machines)}." if machines else "")
    return Block("ratios", "Ratios", caption, "", tuple(heads), tuple(lines))


def _published(table: ResultTable, heading: Heading, rows: tuple[str, str] | None) -> Shown:
    cells = [table.cell("published", row, heading) for row in rows or ()]
    means = [cell.mean for cell in cells if cell is not None and cell.mean is not None]
    return Shown(f"{means[0] / means[1]:.1f}" if len(means) == 2 else "")


def _ratio(record: RunRecord, heading: Heading, first: str, second: str) -> float | None:
    """A record has ratios to the GCN, the median over its turns; with CUDA graphs only on a GPU."""
    assert record.result is not None
    name = heading.part.replace("ms", "ratio")
    one, two = (record.result[heading.column][row].get(name) for row in (first, second))
    return None if one is None or two is None else one / two
