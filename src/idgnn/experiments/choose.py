"""Chooses the recipes of the protocol `recommended`, by an inner split of the training part.

`python -m idgnn.experiments.choose` trains the candidates of each task on an inner 80/20 split of the training part of
some datasets, several processes side by side, and prints their scores. What has finished is in the store and is not run
again.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Literal, get_args

from idgnn.choices import TaskName
from idgnn.experiments.estimate import Estimator
from idgnn.experiments.paper_models import PAPER, TWO_COLORS, Model
from idgnn.experiments.recommended import CANDIDATES, CHOSEN, Kind, setup_of
from idgnn.experiments.runner import GridState, Watcher, run
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.store import Store
from idgnn.experiments.worker import workers_on
from idgnn.writing import write_text

INNER = 0.2
DEFAULT = Path("results/choosing")


@dataclass(frozen=True)
class Trial:
    """On which datasets, networks and seeds the candidates of a task are compared."""

    task: TaskName
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...] = (0,)


# One network of each family at least, and the layers that fail where others do not. More seeds where parts are small
# and where single seeds fail.
TRIALS: dict[Kind, Trial] = {
    "node-clustering": Trial("node-clustering", ("ScaleFree", "ENZYMES"), ("gin", "fast-gcn", "full-sage", "full-gat")),
    "shortest-path": Trial(
        "shortest-path", ("ScaleFree", "ENZYMES"), ("gcn", "fast-sage", "full-gcn", "full-gat"), (0, 1, 2)
    ),
    "graph-clustering": Trial(
        "graph-clustering", ("ScaleFree", "SmallWorld"), ("gcn", "fast-sage", "full-gcn", "full-gin"), (0, 1)
    ),
    "node-classification": Trial(
        "node-classification", ("Cora", "CiteSeer"), ("gat", "fast-gin", "fast-gcn", "full-sage", "full-gat"), (0, 1)
    ),
    "link-prediction": Trial("link-prediction", ("SmallWorld", "ENZYMES"), ("gin", "fast-sage", "full-gcn")),
    "two-color-links": Trial("link-prediction", ("SmallWorld", "ENZYMES"), ("two-gcn", "two-gin")),
    "graph-classification": Trial(
        "graph-classification", ("ENZYMES", "PROTEINS", "BZR"), ("gcn", "fast-sage", "full-gcn", "full-gin"), (0, 1)
    ),
    "ogbg-molhiv": Trial("graph-classification", ("ogbg-molhiv",), ("gcn", "fast-gin", "full-sage")),
}


def specs(kinds: Sequence[Kind]) -> list[Spec]:
    """All runs; the row of each is its candidate, and the column its task, dataset and network."""
    return [
        Spec(f"choosing {kind}", f"{data} {model.name}", name, "recommended", seed, setup.job(model, seed))
        for kind in kinds
        for name, recipe in CANDIDATES[kind].items()
        for data in TRIALS[kind].datasets
        for setup in [setup_of(recipe, TRIALS[kind].task, data, split_of(data), inner=INNER)]
        for model in models_of(TRIALS[kind])
        for seed in TRIALS[kind].seeds
    ]


def split_of(data: str) -> Literal["random", "provided"]:
    """As in the tables: only ogbg-molhiv comes with a split."""
    return "provided" if data == "ogbg-molhiv" else "random"


def models_of(trial: Trial) -> list[Model]:
    """Its networks."""
    return [next(model for model in PAPER + TWO_COLORS if model.name == name) for name in trial.models]


def compared(kind: Kind, records: Mapping[str, RunRecord]) -> str:
    """The scores of the candidates of a task as a Markdown table, the best mean first."""
    found: dict[str, dict[str, list[float]]] = {}
    seconds: dict[str, float] = {}
    for spec in specs([kind]):
        record = records.get(spec.key)
        if record is not None and record.result is not None:
            score = record.result["valid"][record.result["metric"]]
            found.setdefault(spec.row, {}).setdefault(spec.column, []).append(score)
            seconds[spec.row] = seconds.get(spec.row, 0.0) + record.seconds
    columns = list(dict.fromkeys(spec.column for spec in specs([kind])))
    means = {name: {column: mean(each) for column, each in scores.items()} for name, scores in found.items()}
    # A candidate that has not finished everywhere cannot be compared with the others.
    order = sorted(means, key=lambda name: (len(means[name]), mean(means[name].values())), reverse=True)
    lines = [f"### {kind}", "", "| candidate | mean | " + " | ".join(columns) + " | seconds |"]
    lines.append("| --- |" + " ---: |" * (len(columns) + 2))
    for name in order:
        cells = [f"{means[name][column]:.4f}" if column in means[name] else "" for column in columns]
        mark = " (chosen)" if name == CHOSEN[kind] else ""
        lines.append(
            f"| {name}{mark} | {mean(means[name].values()):.4f} | " + " | ".join(cells) + f" | {seconds[name]:.0f} |"
        )
    return "\n".join(lines) + "\n"


class Lines(Watcher):
    """Prints a line for each run that ended."""

    waiting = 0

    def update(self, state: GridState) -> None:
        """Remembers how many are waiting."""
        self.waiting = len(state.waiting)

    def ended(self, spec: Spec, record: RunRecord) -> None:
        """Prints the run and its score, or its error."""
        result = record.result or {}
        if record.error:
            what = record.error.splitlines()[0]
        else:
            what = f"{result['metric']} {result['valid'][result['metric']]:.4f}"
        print(f"{spec.name}: {what}, {record.seconds:.0f} s ({self.waiting} waiting)", flush=True)


def run_missing(
    specs: Sequence[Spec], store: Store, device: str, jobs: int | None = None, limit: float | None = None
) -> None:
    """Runs those that have not finished, the longest first; jobs that are equal are run once."""
    records = store.read()
    every = {spec.key: spec for spec in specs}
    missing = [spec for key, spec in every.items() if key not in records.finished]
    print(f"{len(every) - len(missing)} of {len(every)} runs have finished.", flush=True)
    if missing:
        workers = workers_on(device, jobs)
        kind = "gpu" if workers.devices[0].startswith("cuda") else "cpu"
        estimator = Estimator(kind=kind, records=records.records.values())
        missing.sort(key=lambda spec: -estimator(spec.job).seconds)
        run(missing, store, workers, estimator, Lines(), limit)


def main() -> None:
    """Runs what is missing, and prints and stores the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="*", default=get_args(Kind), choices=get_args(Kind), help="by default all")
    parser.add_argument("--device", default="auto", help="cpu, cuda; auto takes the GPUs if there are any")
    parser.add_argument("--jobs", type=int, default=None, help="processes side by side")
    parser.add_argument("--store", type=Path, default=DEFAULT, help="the folder of the records")
    parser.add_argument("--time-limit", type=float, default=None, help="seconds; no run starts that would end later")
    parser.add_argument("--show", action="store_true", help="run nothing, and show what has finished")
    given = parser.parse_args()
    store = Store(given.store)
    if not given.show:
        run_missing(specs(given.tasks), store, given.device, given.jobs, given.time_limit)
    page = "\n".join(compared(kind, store.read().records) for kind in given.tasks)
    print(page)
    given.store.mkdir(parents=True, exist_ok=True)
    write_text(given.store / "choosing.md", page)


if __name__ == "__main__":
    main()
