"""What the defaults give on one graph without features: a network of 1,005 people in 42 departments.

python -m benchmarks.defaults

The network is drawn with the size of a well-known e-mail network (1,005 nodes, 25,571 edges, hubs of 350): senders and
receivers by their activity, of which a third within a department.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from time import perf_counter
from typing import get_args

import numpy as np

from idgnn import FileSource, ModelSettings, TaskSettings, TrainOptions, choose_settings, train
from idgnn.choices import Identity

PEOPLE, EDGES, DEPARTMENTS, WITHIN = 1005, 25571, 42, 0.35
KINDS = ("constant", "degree", "counts", "embedding", "onehot", "auto")


def write_network(folder: Path, seed: int = 0) -> tuple[Path, Path]:
    """Writes the tables of edges and of nodes with their departments."""
    rng = np.random.default_rng(seed)
    share = np.arange(1, DEPARTMENTS + 1) ** -0.6
    department = rng.choice(DEPARTMENTS, size=PEOPLE, p=share / share.sum())
    activity = rng.lognormal(0, 0.8, size=PEOPLE)
    members = [np.flatnonzero(department == each) for each in range(DEPARTMENTS)]
    edges: set[tuple[int, int]] = set()
    while len(edges) < EDGES:
        sender = rng.choice(PEOPLE, p=activity / activity.sum())
        among = members[department[sender]] if rng.random() < WITHIN else np.arange(PEOPLE)
        edges.add((int(sender), int(rng.choice(among, p=activity[among] / activity[among].sum()))))
    paths = folder / "edges.csv", folder / "people.csv"
    paths[0].write_text("source,target\n" + "".join(f"p{a},p{b}\n" for a, b in sorted(edges)))
    paths[1].write_text("id,department\n" + "".join(f"p{i},d{each}\n" for i, each in enumerate(department)))
    return paths


def main() -> None:
    """Prints what is chosen, and the results of departments and of links."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        edges, people = write_network(Path(folder))
        for kind in KINDS:
            start = perf_counter()
            task = TaskSettings(name="node-classification", features=kind)
            run = train(
                FileSource(edges, people, label="department"),
                task,
                model=ModelSettings(identity="none", layers=2, width=64),
                training=TrainOptions(eval_every=100, device="cpu"),
            )
            found = run.result["last"]["valid"]
            print(
                f"departments, features {kind} ({run.features.kind}): accuracy {found['accuracy']:.3f}, macro_f1 "
                f"{found['macro_f1']:.3f}, majority {found['majority_accuracy']:.3f}, {perf_counter() - start:.0f} s",
                flush=True,
            )
        _show_identities(FileSource(edges, people, label="department"))
        start = perf_counter()
        source, task = FileSource(edges), TaskSettings(name="link-prediction", features="auto")
        chosen = choose_settings(source, task, training=TrainOptions(epochs=30, eval_every=30, device="cpu"))
        print(f"links: chosen in {perf_counter() - start:.1f} s.", *chosen.reasons, sep="\n  ", flush=True)
        for name, model in (("chosen", chosen.model), ("plain", ModelSettings(identity="none", layers=2))):
            start = perf_counter()
            found = train(source, task, model=model, training=chosen.training).result["last"]["valid"]
            print(f"links, {name}: roc_auc {found['roc_auc']:.3f}, {perf_counter() - start:.0f} s", flush=True)


def _show_identities(source: FileSource) -> None:
    """What a color and counts add where each node has a code of its own."""
    for seed in (0, 1):
        for identity in get_args(Identity):
            start = perf_counter()
            run = train(
                source,
                TaskSettings(name="node-classification", features="onehot"),
                model=ModelSettings(identity=identity, layers=3, width=64),
                training=TrainOptions(eval_every=100, device="cpu", query_batch_size=64),
                seed=seed,
            )
            found = run.result["last"]["valid"]
            print(
                f"departments, onehot, 3 layers, identity {identity}, seed {seed}: accuracy {found['accuracy']:.3f}, "
                f"{perf_counter() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
