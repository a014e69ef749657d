"""A soak: random graphs, models, options and faults, until the time is over; figures and failures at the end.

python -m benchmarks.fuzz --minutes 60

python -m benchmarks.fuzz --case files --first 12.3 --number 1     repeats one that failed
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import torch

from benchmarks.fuzz_cases.answers import answers, counts
from benchmarks.fuzz_cases.faults import clock, damaged_checkpoint, damaged_run, disk_full, killed
from benchmarks.fuzz_cases.own_files import command, files
from benchmarks.fuzz_cases.store import store

CASES: dict[str, Callable[[random.Random, Path], str]] = {
    "answers": answers,
    "counts": counts,
    "files": files,
    "command": command,
    "killed": killed,
    "disk full": disk_full,
    "damaged run": damaged_run,
    "damaged checkpoint": damaged_checkpoint,
    "clock": clock,
    "store": store,
}
REPEATED = {"answers": 30, "counts": 10, "files": 30, "command": 4, "store": 2}  # in each round: they are quick


def main() -> None:
    """Runs the cases in turn, and ends with 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0, help="how long")
    parser.add_argument("--case", choices=CASES, help="one case alone")
    parser.add_argument("--first", default="0", help="the first number, which determines what is drawn, such as 12.3")
    parser.add_argument("--number", type=int, help="how many rounds, in place of a time")
    parser.add_argument("--output", type=Path, help="where the figures are written as JSON")
    options = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    done, failures, seconds = dict[str, Counter[str]](), list[str](), Counter[str]()
    first, _, draw_of_it = options.first.partition(".")
    if draw_of_it:
        sys.exit(_one(options.case, options.first, failures) == "FAILED")
    for number in count(int(first)):
        over = number - int(first) == options.number if options.number else _minutes(started) >= options.minutes
        if over:
            break
        for name in CASES if options.case is None else [options.case]:
            for draw in range(1 if options.number else REPEATED.get(name, 1)):
                case = number if draw == 0 else f"{number}.{draw}"
                begun = time.monotonic()
                outcome = _one(name, str(case), failures)
                done.setdefault(name, Counter())[outcome] += 1
                seconds[name] += time.monotonic() - begun
    _show(done, seconds, failures, _minutes(started))
    if options.output is not None:
        figures = {"minutes": round(_minutes(started), 1), "cases": done, "failures": failures}
        options.output.write_text(json.dumps(figures, indent=2) + "\n")
    sys.exit(bool(failures))


def _one(name: str, number: str, failures: list[str]) -> str:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try:
            return CASES[name](random.Random(f"{name} {number}"), Path(folder))
        except Exception:
            failures.append(f"{name} {number}")
            print(f"{name} {number}\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            return "FAILED"


def _minutes(since: float) -> float:
    return (time.monotonic() - since) / 60


def _show(done: dict[str, Counter[str]], seconds: Counter[str], failures: list[str], minutes: float) -> None:
    for name, outcomes in done.items():
        said = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        print(f"{name}: {outcomes.total()} in {seconds[name]:.0f} s ({said})")
    total = sum(outcomes.total() for outcomes in done.values())
    print(f"{total:,} cases in {minutes:.1f} minutes, {len(failures)} failed: {', '.join(failures) or 'none'}")


if __name__ == "__main__":
    main()
