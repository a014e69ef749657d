"""Records and published numbers by hand, for the tests of the report."""

from functools import cache

from idgnn.experiments.published import Published
from idgnn.experiments.spec import RunRecord, Spec, job_as_dict
from idgnn.report import layout as layouts
from idgnn.report.layout import Layout
from idgnn.report.tables import ResultTable, fill

# The first column of Table 2, as the paper prints it.
NODE_SCALE_FREE = {
    "gcn": Published(0.679, 0.01), "sage": Published(0.470, 0.03), "gat": Published(0.470, 0.03),
    "gin": Published(0.693, 0.0),
    "fast-gcn": Published(0.897, 0.01), "fast-sage": Published(0.954, 0.01), "fast-gat": Published(0.889, 0.01),
    "fast-gin": Published(0.895, 0.0), "full-gcn": Published(0.985, 0.01), "full-sage": Published(0.588, 0.01),
    "full-gat": Published(0.638, 0.01), "full-gin": Published(0.716, 0.01),
}  # fmt: skip
COLUMN = "node-ScaleFree"

layout = cache(layouts.layout)  # half a second each


def published(table: str, column: str, row: str) -> Published | None:
    return NODE_SCALE_FREE.get(row) if (table, column) == ("table2", COLUMN) else None


def record(
    spec: Spec, value: float, machine: str = "H200", error: str | None = None, metric: str = "accuracy"
) -> RunRecord:
    result = {
        "valid": {metric: value},
        "best": {"epoch": 2, "valid": {metric: value}},
        "curve": [[1, 0.9, value / 2], [2, 0.5, value]],
        "metric": metric,
        "num_parameters": 199_000,
        "width": 256,
    }
    job, versions = job_as_dict(spec.job), {"idgnn": "0.1.0"}
    return RunRecord(spec.key, job, None if error else result, error, 36.0, machine, "2026-11-14T10:00:00", versions)


def records_of(table: Layout, values: dict[str, tuple[float, ...]], protocol: str = "text") -> dict[str, RunRecord]:
    """Of the first column of Table 2: a value for each seed of a row."""
    found = [
        record(spec, value)
        for row, each in values.items()
        for spec, value in zip(table.specs[protocol, row, COLUMN], each, strict=False)  # pyright: ignore
    ]
    return {each.key: each for each in found}


def table2(values: dict[str, tuple[float, ...]]) -> ResultTable:
    made = layout("table2")
    return fill(made, records_of(made, values), published)


AS_PUBLISHED = {row: (number.mean,) * 3 for row, number in NODE_SCALE_FREE.items()}
