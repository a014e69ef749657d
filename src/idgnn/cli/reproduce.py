"""`idgnn reproduce`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

if TYPE_CHECKING:
    from idgnn.cli.grid_display import GridProgress
    from idgnn.experiments.spec import Spec
    from idgnn.experiments.store import Contents, Store

What = Literal["list", "table1", "table2", "table3", "table4", "table5", "table6", "memory", "all", "merge"]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]")]
Folders = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="[FOLDER ...]")]

_MOST_FAILURES = 10  # that are shown again at the end


@dataclass(frozen=True)
class Reproduce:
    """Run the experiments of the paper. Results are kept, and what is there is not run again.

    idgnn reproduce list

    idgnn reproduce table2 --columns node-ENZYMES --models gcn full-gcn --seeds 0

    idgnn reproduce all --quick

    idgnn reproduce merge results other_results --store all_results
    """

    what: tyro.conf.Positional[What] = "list"
    """A table or all of them; list shows what there is, merge puts the results of several machines together."""
    folders: tyro.conf.Positional[Folders] = ()
    """With merge: the stores, or files of records (.jsonl, .jsonl.gz), that are added to --store."""
    columns: Names = ()
    """These columns alone; list names them."""
    models: Names = ()
    """These models alone; list names them."""
    seeds: tuple[int, ...] = ()
    """Unless given 0 1 2, as many as in the paper; with --quick 0."""
    protocol: tuple[Literal["text", "released"], ...] = ("text",)
    """The paper's text, the settings of the code that its authors released, or both."""
    quick: bool = False
    """Few graphs, small networks, short training: minutes on a laptop, and not comparable with the paper."""
    dry_run: bool = False
    """Show what would run, with estimates of time and memory."""
    jobs: int | None = None
    """Runs side by side; unless given, half as many as there are cores, and on GPUs up to 12 each."""
    device: str = "auto"
    """cpu, cuda (all GPUs), cuda:1; auto takes GPUs if there are any."""
    time_limit: Annotated[str | None, tyro.conf.arg(metavar="TIME")] = None
    """Such as 90s, 30m or 2h: no run begins that is not expected to end by then."""
    store: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("results")
    """Where results are kept."""

    def __call__(self) -> None:
        """Runs or lists the experiments, or merges stores."""
        from idgnn.experiments.store import Store

        if self.folders and self.what != "merge":
            raise ValueError(f"folders were given, but {self.what} takes none. Name the store with --store.")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}, expected at least 1.")
        limit, store = _seconds(self.time_limit), Store(self.store)
        if self.what == "merge":
            self._merge(store)
        elif self.what == "list":
            from idgnn.cli.grid_display import print_grid

            print_grid(self._specs(), _read(store), self._label())
        else:
            self._run(store, limit)

    def _specs(self) -> list[Spec]:
        from idgnn.experiments.grid import SEEDS, Choice

        tables = () if self.what in ("all", "list") else (self.what,)
        seeds = self.seeds or ((0,) if self.quick else SEEDS)
        return Choice(tables, self.columns, self.models, self.protocol, seeds, self.quick).specs()

    def _label(self) -> str:
        """The start of every line about quick runs."""
        from idgnn.experiments.grid import NOT_COMPARABLE

        return f"{NOT_COMPARABLE}: " if self.quick else ""

    def _merge(self, store: Store) -> None:
        from idgnn.experiments.store import merge

        if not self.folders:
            raise ValueError("no store was named. Name some, for example idgnn reproduce merge A B --store C.")
        contents = merge(self.folders, store)
        _print_broken(contents)
        print(f"{store.path} holds {len(contents.finished)} results and {len(contents.failed)} failed runs.")

    def _run(self, store: Store, limit: float | None) -> None:
        specs, contents, label = self._specs(), _read(store), self._label()
        keys = {spec.key for spec in specs}
        done = keys & set(contents.finished)
        print(f"{label}{len(done)} of {len(keys)} runs are done already ({store.path}).", flush=True)
        if len(done) == len(keys):
            self._print_next()
            return
        from idgnn.cli.grid_display import GridProgress, print_plan
        from idgnn.experiments.estimate import Estimator
        from idgnn.experiments.execute import machine_of
        from idgnn.experiments.grid import in_order
        from idgnn.experiments.runner import run
        from idgnn.experiments.worker import workers_on

        workers = workers_on(self.device, self.jobs)
        machine = machine_of(workers.devices[0], workers.side_by_side)
        kind = "gpu" if workers.devices[0].startswith("cuda") else "cpu"
        records = contents.records.values()
        estimator = Estimator(machine, kind, workers.side_by_side, workers.threads, records)
        missing = [spec for spec in specs if spec.key not in done]
        waiting = in_order(missing, lambda spec: estimator(spec.job).seconds)
        if self.dry_run:
            print_plan(waiting, estimator, workers, label)
            return
        waiting, left_out = self._with_data(waiting)
        interrupted = False
        with GridProgress(len(waiting), label) as progress:
            try:
                run(waiting, store, workers, estimator, progress, limit)
            except KeyboardInterrupt:
                interrupted = True
        self._print_end(progress, store, interrupted, left_out)
        if interrupted:
            raise KeyboardInterrupt
        if progress.latest.failed or left_out:
            sys.exit(1)

    def _with_data(self, specs: list[Spec]) -> tuple[list[Spec], list[Spec]]:
        """The runs whose data are available, and the others, with one note of the reasons."""
        from idgnn.experiments.needed_data import absent, dataset_of, download, sentence

        names = absent(specs)
        if names:
            print(f"{self._label()}Not here, so downloaded first if possible: {', '.join(names)}.", flush=True)
        reasons = download(names)
        left_out = [spec for spec in specs if dataset_of(spec.job) in reasons]
        if left_out:
            print(f"idgnn: note: {sentence(reasons, len(left_out))}", file=sys.stderr)
        return [spec for spec in specs if dataset_of(spec.job) not in reasons], left_out

    def _print_end(self, progress: GridProgress, store: Store, interrupted: bool, left_out: list[Spec]) -> None:
        from idgnn.cli.grid_display import name_of, print_left_out

        label, end = self._label(), progress.latest
        left = len(end.waiting) + len(end.running)
        late = f", {left} not run ({'stopped' if interrupted else 'too little time'})" if left else ""
        late += f", {len(left_out)} not run (no data)" if left_out else ""
        where = f" Results are in {store.path}." if store.path.exists() else ""
        print(f"{label}{len(end.done)} done, {len(end.failed)} failed{late}.{where}")
        for spec, error in end.failed[:_MOST_FAILURES]:
            print(f"{label}failed: {name_of(spec)}: {error}")
        print_left_out(left_out, label)
        if left or end.failed or left_out:
            print(f"{label}What is not done is run by the same command.")
        if where:
            self._print_next()

    def _print_next(self) -> None:
        store = "" if self.store == Path("results") else f" {self.store}"
        print(f"{self._label()}Next: idgnn report{store}{' --quick' * self.quick}")


def _read(store: Store) -> Contents:
    contents = store.read()
    _print_broken(contents)
    return contents


def _print_broken(contents: Contents) -> None:
    for sentence in contents.broken:
        print(f"idgnn: note: {sentence}", file=sys.stderr)


def _seconds(text: str | None) -> float | None:
    """Seconds of a time such as 90s, 30m, 1.5h."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", text.strip())
    if found is None:
        raise ValueError(f"the time limit is {text!r}, expected a number and a unit, such as 90s, 30m or 2h.")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
