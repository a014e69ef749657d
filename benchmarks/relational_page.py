"""Writes `docs/relational.md` from the records of rel-f1 and Gowalla: `python -m benchmarks.relational_page`."""

from __future__ import annotations

from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

from benchmarks.relational import GOWALLA, IDENTITIES, RESULTS, records
from idgnn.writing import write_text

PAGE = Path("docs/relational.md")
TEXT = Path(__file__).parent / "relational_text.md"
NAMES = {"none": "plain GNN", "fast": "ID-GNN-Fast", "full": "ID-GNN-Full"}
TASKS = {
    "driver-circuit-compete": ("map", "MAP@10", "0.762 (ID-GNN, 4 layers), 0.207 (two towers)"),
    "driver-dnf": ("roc_auc", "ROC AUC", "0.726 (GraphSAGE)"),
    "driver-top3": ("roc_auc", "ROC AUC", "0.755 (GraphSAGE)"),
    "driver-position": ("mae", "MAE", "4.02 (GraphSAGE)"),
}
"""Of each task the metric, its name, and what RelBench published."""
GOWALLA_NAMES = {
    "popular": "most popular items",
    "walk": "random walk of 3 steps, untrained",
    "idgnn": "ID-GNN, linear, 3 rounds",
    "towers": "LightGCN, two towers, ours",
}
PARTS = ("valid", "test")
PUBLISHED = (("LightGCN, published", "0.1830", "0.1554"), ("UltraGCN, published", "0.1862", "0.1580"))


def main() -> None:
    """Reads the records and writes the page."""
    write_text(PAGE, page())


def page() -> str:
    """The text, with the tables where it names them."""
    found = records(RESULTS)
    text = TEXT.read_text(encoding="utf-8")
    parts = {"rel-f1": formula_one, "heuristics": heuristics, "lag": lag, "columns": columns, "cost": cost}
    parts |= {"color": color, "metrics": metrics, "gowalla": gowalla, "towers": towers}
    for name, table in parts.items():
        text = text.replace(f"<!-- {name} -->", "\n".join(table(found)))
    return text


def formula_one(found: dict[str, Any]) -> list[str]:
    """A row for each task, a column for each network: mean and standard deviation over the seeds, on test."""
    lines = [
        f"| task | {' | '.join(NAMES[each] for each in IDENTITIES)} | best heuristic | RelBench |",
        "| --- " * 6 + "|",
    ]
    for task, (metric, name, published) in TASKS.items():
        cells = [_over_seeds(found, f"rel-f1 {task} {each} seed", "test", metric) for each in IDENTITIES]
        lines.append(f"| {task}, {name} | {' | '.join(cells)} | {_best(found, task, metric)} | {published} |")
    return lines


def heuristics(found: dict[str, Any]) -> list[str]:
    """All heuristics of the recommendation."""
    values = found.get("rel-f1 driver-circuit-compete heuristics", {"valid": {}, "test": {}})
    lines = ["| heuristic | valid MAP@10 | test MAP@10 |", "| --- | --- | --- |"]
    for name, test in values["test"].items():
        lines.append(f"| {name} | {values['valid'][name]['map']:.3f} | {test['map']:.3f} |")
    return lines


def lag(found: dict[str, Any]) -> list[str]:
    """Sentences on training queries that see all data before them, in place of data that ends a random time before."""
    without, with_it = (
        " and ".join(
            f"{_over_seeds(found, f'rel-f1 driver-position {name} seed', part, 'mae')} ({part})" for part in PARTS
        )
        for name in ("full without lag", "full")
    )
    return [
        f"Three seeds of ID-GNN-Full, run later, have an MAE of {without} without it,",
        f"and {with_it} with it",
        "(`python -m benchmarks.relational rel-f1 --tasks driver-position --identity full --no-lag`).",
    ]


def columns(found: dict[str, Any]) -> list[str]:
    """ID-GNN-Full with our features and with the encoders of pytorch-frame."""
    lines = ["| task | our features | pytorch-frame |", "| --- | --- | --- |"]
    for task, (metric, name, _) in TASKS.items():
        starts = [f"rel-f1 {task} full{kind} seed" for kind in ("", " by pytorch-frame")]
        cells = [_over_seeds(found, start, "test", metric) for start in starts]
        lines.append(f"| {task}, {name} | {' | '.join(cells)} |")
    return lines


def color(found: dict[str, Any]) -> list[str]:
    """ID-GNN-Full with messages colored alone, and with the update of the root too."""
    lines = ["| task | part | messages | messages and update |", "| --- | --- | --- | --- |"]
    for task, (metric, name, _) in TASKS.items():
        for part in PARTS:
            starts = [f"rel-f1 {task} full{kind} seed" for kind in (" color message", "")]
            cells = [_over_seeds(found, start, part, metric) for start in starts]
            lines.append(f"| {task}, {name} | {part} | {' | '.join(cells)} |")
    return lines


def towers(found: dict[str, Any]) -> list[str]:
    """The recall of held-out training pairs by which the settings of the two towers were chosen."""
    tried = found.get("gowalla towers choice", {})
    lines = ["| two towers | recall@20 of held-out training pairs |", "| --- | --- |"]
    return lines + [f"| {name} | {values['recall']:.4f} |" for name, values in tried.items()]


def metrics(found: dict[str, Any]) -> list[str]:
    """The time that four metrics take."""
    lines = ["| CPU seconds of the four metrics | ours | torchmetrics |", "| --- | --- | --- |"]
    for name, seconds in found.get("rel-f1 metrics", {}).items():
        lines.append(f"| {name} | {seconds['ours']:.3f} | {seconds['torchmetrics']:.2f} |")
    return lines


def cost(found: dict[str, Any]) -> list[str]:
    """States and messages per driver, and the time of a training step."""
    lines = ["| | states | messages |", "| --- | --- | --- |"]
    for name, (rows, messages) in found.get("rel-f1 cost", {}).items():
        lines.append(f"| {name} | {rows:,.0f} | {messages:,.0f} |")
    if (step := found.get("rel-f1 step")) is not None:
        times = [f"{name} {1000 * step[name]:.0f} ms" for name in ("HeteroConv", "ID-GNN-Full")]
        ratio = step["ID-GNN-Full"] / step["HeteroConv"]
        lines += [
            "",
            f"CPU time of a training step (prepared before), in turns: {', '.join(times)}, ratio {ratio:.2f}.",
        ]
    if (epochs := found.get("rel-f1 epoch")) is not None:
        plain, full = epochs["HeteroConv"], epochs["ID-GNN-Full"]
        later = median(plain[1:]), median(full[1:])
        lines += [
            "CPU seconds of a whole training epoch, on the same queries and snapshots, with all preparation, in turns:",
            f"HeteroConv {plain[0]:.1f} and ID-GNN-Full {full[0]:.1f} in the first epoch, which makes the snapshots",
            f"(ratio {full[0] / plain[0]:.2f});",
            f"{later[0]:.1f} and {later[1]:.1f} in later ones (ratio {later[1] / later[0]:.2f}).",
        ]
    return lines


def gowalla(found: dict[str, Any]) -> list[str]:
    """A row for each ranking."""
    lines = ["| | recall@20 | NDCG@20 | training | ranking | |", "| --- | --- | --- | --- | --- | --- |"]
    for name in GOWALLA:
        runs = _runs(found, f"gowalla {name} seed")
        if runs:
            cells = [_over_seeds(found, f"gowalla {name} seed", None, metric, 4) for metric in ("recall", "ndcg")]
            times = [f"{mean(run['seconds'][part] for run in runs):,.0f} s" for part in ("fitting", "ranking")]
            lines.append(f"| {GOWALLA_NAMES[name]} | {' | '.join([*cells, *times])} | {runs[0]['device']} |")
    return lines + [f"| {name} | {recall} | {ndcg} | | | |" for name, recall, ndcg in PUBLISHED]


def _runs(found: dict[str, Any], start: str) -> list[dict[str, Any]]:
    return [record for key, record in found.items() if key.startswith(start)]


def _over_seeds(found: dict[str, Any], start: str, part: str | None, metric: str, digits: int = 3) -> str:
    runs = [run["metrics"] for run in _runs(found, start)]
    values = [(metrics if part is None else metrics[part])[metric] for metrics in runs]
    if not values:
        return ""
    return f"{mean(values):.{digits}f}" + (f" ± {stdev(values):.{digits}f}" if len(values) > 1 else "")


def _best(found: dict[str, Any], task: str, metric: str) -> str:
    """The heuristic that is best on test, with its value."""
    values = found.get(f"rel-f1 {task} heuristics", {"test": {}})["test"]
    if not values:
        return ""
    best = (min if metric == "mae" else max)(values, key=lambda name: values[name][metric])
    return f"{values[best][metric]:.3f} ({best})"


if __name__ == "__main__":
    main()
