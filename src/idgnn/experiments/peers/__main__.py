"""Runs the peers of Table 6 and stores their records: `python -m idgnn.experiments.peers --device cuda`."""

from __future__ import annotations

import argparse
from pathlib import Path

from idgnn.experiments.peers.settings import DATASETS, PEERS
from idgnn.experiments.runner import GridState, Watcher, run
from idgnn.experiments.spec import PeerJob, RunRecord, Spec
from idgnn.experiments.store import Store
from idgnn.experiments.tables.table6 import TABLE
from idgnn.experiments.worker import workers_on


class _Lines(Watcher):
    """A line for each run that ends."""

    def ended(self, spec: Spec, record: RunRecord) -> None:
        result = record.result or {}
        epoch, memory = result.get("seconds_per_epoch", 0), result.get("gpu_memory", 0) / 2**30
        said = record.error.splitlines()[0] if record.error else f"{epoch:.3g} s an epoch, {memory:.1f} GiB"
        print(f"{spec.row} {spec.column}: {record.seconds:.0f} s, {said}", flush=True)


def jobs(networks: list[str], datasets: list[str]) -> list[Spec]:
    """One spec for each peer and dataset, those that take longest first: PPGN, and PROTEINS."""
    found = dict[str, Spec]()
    for spec in TABLE.specs("text", (0,)):
        job = spec.job
        if isinstance(job, PeerJob) and job.settings.network in networks and job.settings.dataset in datasets:
            found.setdefault(spec.key, spec)
    return sorted(found.values(), key=lambda spec: (spec.row != "ppgn", not spec.column.startswith("class-PROTEINS")))


def main() -> GridState:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m idgnn.experiments.peers", description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), choices=DATASETS)
    parser.add_argument("--device", default="auto", help="cpu, cuda, or auto")
    parser.add_argument("--processes", type=int, default=None, help="runs side by side")
    parser.add_argument("--store", type=Path, default=Path("results"), help="the folder of the records")
    parser.add_argument("--again", action="store_true", help="also run what has a record")
    given = parser.parse_args()
    store = Store(given.store)
    done = {} if given.again else store.read().finished
    specs = [spec for spec in jobs(given.networks, given.datasets) if spec.key not in done]
    return run(specs, store, workers_on(given.device, given.processes), watcher=_Lines())


if __name__ == "__main__":
    main()
