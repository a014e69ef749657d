"""The tables of the paper as one list of runs: selection, order, and small versions. Imports no PyTorch."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from idgnn.choices import Protocol
from idgnn.experiments.execute import runs_alone
from idgnn.experiments.spec import PeerJob, Spec, TrainJob
from idgnn.experiments.tables import TABLES
from idgnn.graphs.catalog import CATALOG
from idgnn.training.run_settings import RunSettings

PROTOCOLS: tuple[Protocol, ...] = get_args(Protocol)
DEFAULT_PROTOCOLS: tuple[Protocol, ...] = ("text",)
SEEDS = (0, 1, 2)
"""As many as in the paper."""
MORE_SEEDS = tuple(range(3, 10))
"""Those that are run where three do not decide; a report counts them where they were."""
QUICK_SEEDS = (0,)
NOT_COMPARABLE = "quick: not comparable with published numbers"


@dataclass(frozen=True)
class Choice:
    """Which part of the paper; an empty field is no restriction."""

    tables: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    protocols: tuple[Protocol, ...] = DEFAULT_PROTOCOLS
    seeds: tuple[int, ...] = SEEDS
    quick: bool = False

    def specs(self) -> list[Spec]:
        """Its runs, table by table. An unknown name is an error, and so is a choice without runs."""
        _check(self.tables, TABLES, "table")
        if any(not 0 <= seed < 2**63 for seed in self.seeds) or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"the seeds are {list(self.seeds)}, expected different numbers from 0 on.")
        every = self._every(self.protocols)
        self._check_names(every)
        found = [
            spec
            for spec in every
            if (not self.columns or spec.column in self.columns) and (not self.models or spec.row in self.models)
        ]
        if not found:
            known = (f"{name} ({', '.join(table.protocols)})" for name, table in TABLES.items())
            raise ValueError(
                "no run has this combination of table, column, model, protocol and seed. Leave one of them out. The "
                f"protocols of the tables are: {', '.join(known)}."
            )
        return [quick(spec) for spec in found] if self.quick else found

    def _every(self, protocols: Iterable[Protocol]) -> list[Spec]:
        return [
            spec
            for table in self.tables or TABLES
            for protocol in protocols
            for spec in TABLES[table].specs(protocol, self.seeds)
        ]

    def _check_names(self, every: Sequence[Spec]) -> None:
        """Refuses columns and models that these runs do not have, and says which other protocol has them."""
        where = f" in {' or '.join(self.tables)}" if self.tables else ""
        for what, names, of in (("column", self.columns, _column), ("model", self.models, _model)):
            unknown = [name for name in names if name not in set(map(of, every))]
            for protocol in PROTOCOLS if unknown else ():
                there = set(map(of, self._every([protocol]))).intersection(unknown)
                if there:
                    raise ValueError(
                        f"the {what} {min(there)} is not part of the protocol {' or '.join(self.protocols)}. Add "
                        f"--protocol {protocol}."
                    )
            _check(unknown, set(map(of, every)), what, where)


def _column(spec: Spec) -> str:
    return spec.column


def _model(spec: Spec) -> str:
    return spec.row


def in_order(specs: Iterable[Spec], seconds: Callable[[Spec], float]) -> list[Spec]:
    """The order in which they are run; of cells that share a job, the first.

    Every table is complete for one seed before the next seed starts, so that a run that is stopped leaves whole tables.
    Within that the longest come first: a long run that starts last would keep all others waiting. Timed runs, which
    need the machine for themselves, come before all.
    """
    tables = list(TABLES)

    def place(spec: Spec) -> tuple[bool, int, int, int, float]:
        table = tables.index(spec.table) if spec.table in tables else len(tables)
        protocol = PROTOCOLS.index(spec.protocol)
        return (not runs_alone(spec.job), spec.seed, protocol, table, -seconds(spec))

    found = dict[str, Spec]()
    for spec in sorted(specs, key=place):
        found.setdefault(spec.key, spec)
    return list(found.values())


def quick(spec: Spec) -> Spec:
    """A run that takes seconds, to test that everything works; its result is :data:`NOT_COMPARABLE`.

    It has another key, so that it never replaces the real one. Measurements are short and stay as they are.
    """
    if isinstance(spec.job, PeerJob):
        peer = spec.job.settings
        small = replace(peer, epochs=max(peer.epochs // 100, 1), steps=peer.steps and 5, width=8)
        return replace(spec, job=replace(spec.job, settings=small))
    if not isinstance(spec.job, TrainJob):
        return spec
    return replace(spec, job=replace(spec.job, settings=_small(spec.job.settings)))


# The least entries of edges, since smaller graphs have few triangles, and how many graphs: enough to have every class
# in both parts. molhiv has few positive molecules; of zinc these are all with so many edges, some of them in each part.
_QUICK = (60, 64)
_QUICK_OF = {"ogbg-molhiv": (60, 2000), "zinc": (74, 210)}


def _small(settings: RunSettings) -> RunSettings:
    training, model, selection = settings.training, settings.model, settings.selection
    epochs = max(training.epochs // 20, 1)
    graphs = CATALOG[settings.data].num_graphs if isinstance(settings.data, str) else 1
    if graphs > 1:
        edges, number = _QUICK_OF.get(str(settings.data), _QUICK)
        number = min(number, selection.smallest or graphs)
        selection = replace(selection, min_edges=selection.min_edges or edges, smallest=number)
    return replace(
        settings,
        task=replace(settings.task, pairs=min(settings.task.pairs, 100)),
        model=replace(model, budget=64) if model.width is None else replace(model, width=max(model.width // 4, 1)),
        training=replace(training, epochs=epochs, eval_every=min(training.eval_every, max(epochs // 10, 1))),
        selection=selection,
    )


def _check(names: Iterable[str], known: Iterable[str], what: str, where: str = "") -> None:
    known = list(known)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else f"Expected some of {', '.join(sorted(known))}."
            raise ValueError(f"there is no {what} {name!r}{where}. {hint}")
