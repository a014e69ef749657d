"""Which datasets are missing for some runs, and their download. Imports PyTorch only if something is downloaded."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from idgnn.experiments.spec import Spec, dataset_of
from idgnn.graphs.catalog import find
from idgnn.graphs.raw_files import is_available, is_offered, roots

_TIMEOUT = 20.0  # seconds without an answer, after which a server counts as unreachable


def missing_datasets(specs: Iterable[Spec]) -> list[str]:
    """The datasets that some runs read and whose files are missing, by the names of the files."""
    names = dict.fromkeys(dataset_of(spec.job) for spec in specs)
    return [name for name in names if name is not None and not is_available(name)]


def missing_note(names: Iterable[str]) -> str:
    """Which missing datasets are downloaded first, and which cannot be: a sentence for each of the two, if any."""
    names = list(names)
    offered = [name for name in names if is_offered(name)]
    others = [name for name in names if not is_offered(name)]
    download = f"Missing, so downloaded first if possible: {', '.join(offered)}." if offered else ""
    no_download = f"Missing, and no download is offered: {', '.join(others)}." if others else ""
    return f"{download} {no_download}".strip()


def try_downloads(names: Iterable[str]) -> dict[str, str]:
    """Downloads datasets before the runs start; returns those that could not be downloaded, with the reason."""
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

    with _timeout(), ThreadPoolExecutor(len(names)) as threads:
        return {name: why for name, why in zip(names, threads.map(reason, names), strict=True) if why is not None}


def skipped_note(reasons: dict[str, str], runs: int) -> str:
    """What is missing and how to get it; `reasons` is what :func:`try_downloads` returned."""
    looked = " and ".join(map(str, roots()))
    offered = [name for name in reasons if is_offered(name)]
    others = [name for name in reasons if not is_offered(name)]
    why = "; ".join(dict.fromkeys(reasons[name] for name in offered))
    causes, remedies = [], ["set IDGNN_DATA to a folder that holds them"]
    if offered:
        causes.append(f"{', '.join(offered)} could not be downloaded ({why})")
        remedies.append("connect to the internet" + f" for {', '.join(offered)}" * bool(others))
    if others:
        causes.append(f"no download is offered for {', '.join(others)}")
    return (
        f"the files of {', '.join(reasons)} are not in {looked}; {', and '.join(causes)}, so the runs that read them "
        f"are skipped ({runs} run{'s' * (runs != 1)}): {', or '.join(remedies)}, and give the same command again."
    )


@contextmanager
def _timeout() -> Iterator[None]:
    """PyG's download has no timeout, and would wait for minutes where packets are dropped."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
