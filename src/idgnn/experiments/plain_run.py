"""Runs parts of the tables with a line for each run and nothing but the standard library around it.

`python -m idgnn.experiments.plain_run --tables table2 table3 --protocols recommended` does what `idgnn reproduce` does,
on machines where only PyTorch and PyG are installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from idgnn.experiments.estimate import Estimator
from idgnn.experiments.grid import DEFAULT_PROTOCOLS, PROTOCOLS, SEEDS, Choice
from idgnn.experiments.runner import GridState, Watcher, run
from idgnn.experiments.spec import RunRecord, Spec
from idgnn.experiments.store import DEFAULT, Store
from idgnn.experiments.worker import workers_on


class Lines(Watcher):
    """Prints a line for each run that ended."""

    waiting = 0

    def update(self, state: GridState) -> None:
        """Remembers how many are waiting."""
        self.waiting = len(state.waiting)

    def ended(self, spec: Spec, record: RunRecord) -> None:
        """Prints the run and its score, or its error."""
        what = record.error.splitlines()[0] if record.error else _score(record)
        print(f"{spec.name}: {what}, {record.seconds:.0f} s ({self.waiting} waiting)", flush=True)


def _score(record: RunRecord) -> str:
    result = record.result or {}
    return f"{result['metric']} {result['valid'][result['metric']]:.4f}" if "valid" in result else "measured"


def run_missing(
    specs: Sequence[Spec], store: Store, device: str, jobs: int | None = None, limit: float | None = None
) -> None:
    """Runs those that have not finished, seed by seed, the longest first; jobs that are equal are run once."""
    records = store.read()
    every = {spec.key: spec for spec in specs}
    missing = [spec for key, spec in every.items() if key not in records.finished]
    print(f"{len(every) - len(missing)} of {len(every)} runs have finished.", flush=True)
    if missing:
        estimator = Estimator(records=records.records.values())
        missing.sort(key=lambda spec: (spec.seed, -estimator(spec.job).seconds))
        run(missing, store, workers_on(device, jobs), estimator, Lines(), limit)


def add_machine(parser: argparse.ArgumentParser, store: Path) -> None:
    """The arguments that say where runs run."""
    parser.add_argument("--device", default="auto", help="cpu, cuda; auto takes the GPUs if there are any")
    parser.add_argument("--jobs", type=int, default=None, help="processes side by side")
    parser.add_argument("--store", type=Path, default=store, help="the folder of the records")
    parser.add_argument("--time-limit", type=float, default=None, help="seconds; no run starts that would end later")


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=())
    parser.add_argument("--columns", nargs="*", default=())
    parser.add_argument("--models", nargs="*", default=())
    parser.add_argument("--protocols", nargs="*", default=DEFAULT_PROTOCOLS, choices=PROTOCOLS)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--quick", action="store_true", help="small versions, to test that everything works")
    add_machine(parser, DEFAULT)
    given = parser.parse_args()
    tables, columns, models = tuple(given.tables), tuple(given.columns), tuple(given.models)
    specs = Choice(tables, columns, models, tuple(given.protocols), tuple(given.seeds), given.quick).specs()
    run_missing(specs, Store(given.store), given.device, given.jobs, given.time_limit)


if __name__ == "__main__":
    main()
