"""Faults while a run is trained or after it: killed, a full disk, damaged files, a clock that jumps."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
import warnings
from pathlib import Path
from unittest import mock

from benchmarks.fuzz_cases.outcomes import WrongError, damage, in_a_sentence
from benchmarks.fuzz_cases.short_runs import check_same_files, finished, labeled, start_child, train_shortly
from idgnn import Run


def killed(rng: random.Random, folder: Path) -> str:
    """Training that is killed at random until it is done writes the same bytes as training without a pause."""
    graph = labeled(rng)
    train_shortly(graph, folder / "whole")
    kills = 0
    while not finished(folder / "killed"):
        pid = start_child(lambda: train_shortly(graph, folder / "killed"))
        deadline = time.monotonic() + rng.random() * 0.4 * (1 + kills / 4)  # a busy machine takes longer to start
        while time.monotonic() < deadline and not os.waitpid(pid, os.WNOHANG)[0]:
            time.sleep(0.001)
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            kills += 1
        except (ProcessLookupError, ChildProcessError):
            pass
        if kills > 200:
            raise WrongError("training does not get on")
    check_same_files(folder / "whole", folder / "killed")
    return "killed" if kills else "not killed"


def disk_full(rng: random.Random, folder: Path) -> str:
    """A disk that is full while a run is written: a sentence, and what was written before can be resumed."""
    graph = labeled(rng)
    train_shortly(graph, folder / "whole")
    limit = rng.choice((0, 100, 1000, 3000, 10_000, 50_000))

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        train_shortly(graph, folder / "full")

    _, status = os.waitpid(start_child(full), 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 2):
        raise WrongError(f"a full disk ended training with {code}")
    if not finished(folder / "full"):
        train_shortly(graph, folder / "full")
    check_same_files(folder / "whole", folder / "full")
    return "refused" if code else "done"


def damaged_run(rng: random.Random, folder: Path) -> str:
    """A file of a finished run is damaged: it is refused, or answers are those of before."""
    graph = labeled(rng)
    train_shortly(graph, folder / "run", epochs=2)
    expected = Run.load(folder / "run").predict(graph, device="cpu")
    name = rng.choice(("model.safetensors", "model.json", "run.json", "metrics.jsonl"))
    damage(rng, folder / "run" / name)
    found: list[dict] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        outcome = in_a_sentence(lambda: found.append(Run.load(folder / "run").predict(graph, device="cpu")))
    if found and found[0] != expected and not said:
        raise WrongError(f"a damaged {name} changes the answers without a word")
    return f"{outcome} {name}"


def damaged_checkpoint(rng: random.Random, folder: Path) -> str:
    """The checkpoint of a run under way is damaged: it is refused, or the result is that of before."""
    graph = labeled(rng)
    train_shortly(graph, folder / "whole", epochs=3)
    pid = start_child(lambda: train_shortly(graph, folder / "run", epochs=3))
    while not (folder / "run" / "checkpoint.safetensors").is_file() and not os.waitpid(pid, os.WNOHANG)[0]:
        time.sleep(0.0005)
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return "ended before"
    if finished(folder / "run") or not (folder / "run" / "checkpoint.safetensors").is_file():
        return "ended before"
    damage(rng, folder / "run" / "checkpoint.safetensors")
    outcome = in_a_sentence(lambda: train_shortly(graph, folder / "run", epochs=3))
    if outcome == "done":
        check_same_files(folder / "whole", folder / "run")
    return outcome


def clock(rng: random.Random, folder: Path) -> str:
    """The clock jumps, and files are of the future or the past: results are the same."""
    graph, before = labeled(rng), time.time
    train_shortly(graph, folder / "whole", epochs=2)
    with mock.patch("time.time", lambda: before() + rng.choice((-1e9, -3600, 0, 3600, 1e9))):
        train_shortly(graph, folder / "jumping", epochs=2)
        for path in (folder / "jumping").iterdir():
            moment = rng.choice((0, 1e9, 4e9))
            os.utime(path, (moment, moment))
        again = Run.load(folder / "jumping").predict(graph, device="cpu")
    check_same_files(folder / "whole", folder / "jumping")
    if again != Run.load(folder / "whole").predict(graph, device="cpu"):
        raise WrongError("another clock changes the answers")
    return "done"
