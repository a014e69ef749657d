"""`idgnn reproduce`."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from idgnn.choices import Protocol, TableName

if TYPE_CHECKING:
    from idgnn.cli.grid_display import GridProgress
    from idgnn.experiments.spec import RunRecord, Spec
    from idgnn.experiments.store import Contents, Store

What = Literal["list", TableName, "all", "merge"]
Names = Annotated[tuple[str, ...], tyro.conf.arg(metavar="[NAME ...]")]
Folders = Annotated[tuple[Path, ...], tyro.conf.arg(metavar="[FOLDER ...]")]

RayAddress = Annotated[
    str | None,
    PrimitiveConstructorSpec(
        nargs="*",
        metavar="[ADDRESS]",
        instance_from_str=lambda words: _one_address(words),
        is_instance=lambda value: value is None or isinstance(value, str),
        str_from_instance=lambda value: [] if value is None else [value],
    ),
]

_MAX_FAILURES = 10  # repeated at the end


@dataclass(frozen=True)
class Reproduce:
    """Run the experiments of the paper. Results are stored, and finished runs are not repeated.

    idgnn reproduce list

    idgnn reproduce table2 --columns node-ENZYMES --models gcn full-gcn --seeds 0

    idgnn reproduce all --quick

    idgnn reproduce merge results other_results --store all_results
    """

    what: tyro.conf.Positional[What] = "list"
    """A table or all of them; list shows all columns and models, merge joins the results of several machines."""
    folders: tyro.conf.Positional[Folders] = ()
    """With merge: stores, or files of records (.jsonl, .jsonl.gz), that are added to --store."""
    columns: Names = ()
    """Only these columns; list names them."""
    models: Names = ()
    """Only these models; list names them."""
    seeds: tuple[int, ...] = ()
    """Unless given 0 1 2, as in the paper; with --quick 0."""
    protocol: tuple[Protocol, ...] = ()
    """The paper's text, the settings of the authors' released code, those that we recommend, or several of them; unless
    given text, and with list all."""
    quick: bool = False
    """Few graphs, small networks, short training: minutes on a laptop, and not comparable with published numbers."""
    dry_run: bool = False
    """Show what would run, with estimates of time and memory."""
    jobs: int | None = None
    """Runs side by side; unless given, half as many as there are cores, and on GPUs up to 12 each."""
    device: str = "auto"
    """cpu, cuda (all GPUs), cuda:1; auto takes GPUs if there are any."""
    ray: RayAddress = None
    """Run on a Ray cluster: at this address, or without one at RAY_ADDRESS, or on this machine."""
    time_limit: Annotated[str | None, tyro.conf.arg(metavar="TIME")] = None
    """Such as 90s, 30m or 2h: a run that is expected to end later is not started."""
    store: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("results")
    """The folder of the results."""

    def __call__(self) -> None:
        """Runs it, and prints a summary."""
        from idgnn.experiments.store import Store

        if self.folders and self.what != "merge":
            raise ValueError(f"folders were given, but {self.what} takes none. Give the store with --store.")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs is {self.jobs}, expected at least 1.")
        limit, store = _seconds(self.time_limit), Store(self.store)
        if self.what == "merge":
            self._merge(store)
        elif self.what == "list":
            from idgnn.cli.grid_display import show_grid

            show_grid(self._specs(), _read(store), self._label())
        else:
            self._run(store, limit)

    def _specs(self) -> list[Spec]:
        from idgnn.experiments.grid import DEFAULT_PROTOCOLS, PROTOCOLS, QUICK_SEEDS, SEEDS, Choice

        tables = () if self.what in ("all", "list", "merge") else (self.what,)
        seeds = self.seeds or (QUICK_SEEDS if self.quick else SEEDS)
        protocols = self.protocol or (PROTOCOLS if self.what == "list" else DEFAULT_PROTOCOLS)
        return Choice(tables, self.columns, self.models, protocols, seeds, self.quick).specs()

    def _label(self) -> str:
        """The prefix of all messages about quick runs."""
        from idgnn.experiments.grid import NOT_COMPARABLE

        return f"{NOT_COMPARABLE}: " if self.quick else ""

    def _merge(self, store: Store) -> None:
        from idgnn.experiments.store import merge

        if not self.folders:
            raise ValueError("no store was given. Give some, for example idgnn reproduce merge A B --store C.")
        contents = merge(self.folders, store)
        _print_broken(contents)
        print(f"{store.path} holds {len(contents.finished)} results and {len(contents.failed)} failed runs.")

    def _run(self, store: Store, limit: float | None) -> None:
        since = store.end()  # what other processes append from here on counts for this one too
        specs, contents, label = self._specs(), _read(store), self._label()
        keys = {spec.key for spec in specs}
        finished = keys & set(contents.finished)
        print(f"{label}{len(finished)} of {len(keys)} runs have finished ({store.path}).", flush=True)
        if len(finished) == len(keys):
            self._print_next()
            return
        from idgnn.cli.grid_display import GridProgress, show_plan
        from idgnn.experiments.estimate import Estimator
        from idgnn.experiments.execute import machine_of
        from idgnn.experiments.grid import in_order
        from idgnn.experiments.ray_pool import ray_workers
        from idgnn.experiments.runner import run
        from idgnn.experiments.worker import workers_on

        if self.ray is None:
            workers = workers_on(self.device, self.jobs)
        else:
            workers = ray_workers(self.ray, self.jobs, self.device)
        machine = "" if self.ray is not None else machine_of(workers.devices[0], workers.side_by_side)
        kind = "gpu" if workers.devices[0].startswith("cuda") else "cpu"
        estimator = Estimator(machine, kind, [*contents.records.values(), *self._reference()])
        missing = [spec for spec in specs if spec.key not in finished]
        waiting = in_order(missing, lambda spec: estimator(spec.job).seconds)
        if self.dry_run:
            show_plan(waiting, estimator, workers, label)
            return
        waiting, skipped = self._with_data(waiting)
        interrupted = False
        with GridProgress(len(waiting), label) as progress:
            try:
                run(waiting, store, workers, estimator, progress, limit, since)
            except KeyboardInterrupt:
                interrupted = True
        self._print_end(progress, store, interrupted, skipped)
        if interrupted:
            raise KeyboardInterrupt
        if progress.latest.failed or skipped:
            sys.exit(1)

    def _reference(self) -> list[RunRecord]:
        """The results in the working folder, which are there in a checkout: their times are the best estimates."""
        from idgnn.experiments.store import DEFAULT, read_records

        try:
            return [] if self.store == DEFAULT else list(read_records(DEFAULT).records.values())
        except ValueError:  # there are none
            return []

    def _with_data(self, specs: list[Spec]) -> tuple[list[Spec], list[Spec]]:
        """The runs whose data are available, and the others; prints once why these are skipped."""
        from idgnn.experiments.missing_data import missing_datasets, missing_note, skipped_note, try_downloads
        from idgnn.experiments.spec import dataset_of

        names = missing_datasets(specs)
        if names:
            print(f"{self._label()}{missing_note(names)}", flush=True)
        reasons = try_downloads(names)
        skipped = [spec for spec in specs if dataset_of(spec.job) in reasons]
        if skipped:
            print(f"idgnn: note: {skipped_note(reasons, len(skipped))}", file=sys.stderr)
        return [spec for spec in specs if dataset_of(spec.job) not in reasons], skipped

    def _print_end(self, progress: GridProgress, store: Store, interrupted: bool, skipped: list[Spec]) -> None:
        from idgnn.cli.grid_display import print_skipped

        label, end = self._label(), progress.latest
        left = len(end.waiting) + len(end.running)
        late = f", {left} not run ({'stopped' if interrupted else 'time limit'})" if left else ""
        late += f", {len(skipped)} not run (no data)" if skipped else ""
        where = f" Results are in {store.path}." if store.path.exists() else ""
        print(f"{label}{len(end.finished)} finished, {len(end.failed)} failed{late}.{where}")
        for spec, error in end.failed[:_MAX_FAILURES]:
            print(f"{label}failed: {spec.name}: {error}")
        print_skipped(skipped, label)
        if left or end.failed or skipped:
            print(f"{label}The same command runs what is missing.")
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


def _one_address(words: list[str]) -> str:
    if len(words) > 1:
        raise ValueError(f"--ray was given {' '.join(words)}, expected one address or none.")
    return words[0] if words else ""


def _seconds(text: str | None) -> float | None:
    """A time such as 90s, 30m, 1.5h."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)", text.strip())
    if found is None:
        raise ValueError(f"the time limit is {text!r}, expected a number and a unit, such as 90s, 30m or 2h.")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]
