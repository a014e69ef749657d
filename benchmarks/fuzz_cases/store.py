"""Several processes that append to one store of records."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

from benchmarks.fuzz_cases.outcomes import WrongError
from benchmarks.fuzz_cases.short_runs import start_child
from idgnn.experiments.spec import RunRecord
from idgnn.experiments.store import Store


def store(rng: random.Random, folder: Path) -> str:
    """Several processes append to a store, some are killed, and lines are damaged: all other records are there."""
    records = Store(folder / "store")
    numbers = range(rng.randint(1, 5))

    def append(number: int) -> None:
        for i in range(20):
            records.append(RunRecord(f"{number}-{i}", {}, {"value": number * 100 + i}))

    children = [start_child(lambda number=number: append(number)) for number in numbers]
    lost = set()
    if rng.random() < 0.5:
        time.sleep(rng.random() * 0.02)
        os.kill(children[0], signal.SIGKILL)
        lost.add(0)
    for child in children:
        os.waitpid(child, 0)
    if records.path.is_file() and rng.random() < 0.5:
        with records.path.open("ab") as file:
            file.write(rng.randbytes(rng.randrange(1, 50)).replace(b"\n", b""))
        records.append(RunRecord("last", {}, {"value": -1}))
    found = records.read().finished
    for key, record in found.items():
        number, _, i = key.partition("-")
        if record.result != {"value": -1 if key == "last" else int(number) * 100 + int(i)}:
            raise WrongError(f"the record of {key} is {record.result}")
    missing = {f"{number}-{i}" for number in set(numbers) - lost for i in range(20)} - set(found)
    if missing:
        raise WrongError(f"records are lost: {sorted(missing)[:5]}")
    return "killed" if lost else "done"
