"""Which datasets some runs read, and which of them cannot be had. Imports PyTorch only if something is downloaded."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from idgnn.experiments.spec import Job, MeasureJob, Spec
from idgnn.graphs.catalog import find
from idgnn.graphs.raw_files import is_available, roots

_PATIENCE = 20.0  # seconds without an answer, after which a server counts as out of reach


def dataset_of(job: Job) -> str | None:
    """The dataset that a job reads by its name, if any."""
    data = dict(job.arguments).get("dataset") if isinstance(job, MeasureJob) else job.settings.data
    return find(data).name if isinstance(data, str) else None


def absent(specs: Iterable[Spec]) -> list[str]:
    """The datasets that some runs read and whose files are not here; only names of files are looked at."""
    names = dict.fromkeys(dataset_of(spec.job) for spec in specs)
    return [name for name in names if name is not None and not is_available(name)]


def download(names: Iterable[str]) -> dict[str, str]:
    """Downloads datasets, so that not every run has to; those that cannot be had are returned, each with the reason."""
    names = list(names)
    if not names:
        return {}
    from idgnn.graphs.raw_files import ensure

    def reason(name: str) -> str | None:
        try:
            ensure(find(name))
        except ValueError as error:
            return str(error.__cause__ or "no download is offered")
        return None

    with _impatient(), ThreadPoolExecutor(len(names)) as threads:
        return {name: why for name, why in zip(names, threads.map(reason, names), strict=True) if why is not None}


def sentence(reasons: dict[str, str], runs: int) -> str:
    """What is missing and what to do about it; `reasons` is what :func:`download` returned."""
    looked = " and ".join(map(str, roots()))
    why = "; ".join(dict.fromkeys(reasons.values()))
    return (
        f"the files of {', '.join(reasons)} are not in {looked} and could not be downloaded ({why}), so what needs "
        f"them is left out ({runs} run{'s' * (runs != 1)}): set IDGNN_DATA to a folder that holds them, or connect to "
        "the internet, and give the same command again."
    )


@contextmanager
def _impatient() -> Iterator[None]:
    """PyG's download waits for ever; where packets are dropped and not refused, that would be for minutes each."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_PATIENCE)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
