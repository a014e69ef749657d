"""Trains on rel-f1 and Gowalla: `python -m benchmarks.relational rel-f1`; finished runs are not repeated."""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import torch

from benchmarks.data import data_folder
from idgnn.choices import Color, ColumnEncoding, Identity
from idgnn.graphs.relational.interactions import Interactions, read_interactions
from idgnn.models.hetero.config import HeteroConfig
from idgnn.models.walk_idgnn import WalkIDGNN
from idgnn.tasks.relational_files import rel_f1, rel_f1_tasks
from idgnn.training.collaborative import (
    TowerSettings,
    WalkSettings,
    measure_all,
    most_popular,
    to_device,
    train_towers,
    train_walks,
)
from idgnn.training.relational import RelationalSettings, train_relational
from idgnn.writing import write_text

RESULTS = Path(__file__).parent / "results" / "relational.json"
IDENTITIES: tuple[Identity, ...] = ("none", "fast", "full")
GOWALLA = ("popular", "walk", "idgnn", "towers")
TOWERS = {
    "temperature 0.25": TowerSettings(temperature=0.25),
    "temperature 0.2": TowerSettings(temperature=0.2),
    "temperature 0.15": TowerSettings(temperature=0.15),
    "temperature 0.2, 4 rounds": TowerSettings(temperature=0.2, num_layers=4),
    "temperature 0.1, 4 rounds": TowerSettings(temperature=0.1, num_layers=4),
    "temperature 0.07, 4 rounds": TowerSettings(temperature=0.07, num_layers=4),
}
"""Settings of the two towers: the best by held-out training pairs is taken."""


def settings_of(task: str, identity: Identity, seed: int) -> RelationalSettings:
    """The settings of a task; items are three steps from the entities, and four layers were published."""
    if task == "driver-circuit-compete":
        return RelationalSettings(
            identity=identity,
            num_layers=4,
            hidden_channels=32,
            dropout=0.2,
            window_years=5,
            epochs=8,
            select="last",
            seed=seed,  # 27 queries cannot choose
        )
    return RelationalSettings(
        identity=identity,
        num_layers=2,
        hidden_channels=32,
        dropout=0.2,
        window_years=3,
        epochs=5,
        train_years=30,
        seed=seed,
    )


def main() -> None:
    """Runs what has no record yet."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relational", description=__doc__)
    parser.add_argument("dataset", choices=["rel-f1", "gowalla"])
    parser.add_argument("--tasks", nargs="*", default=list(rel_f1_tasks()))
    parser.add_argument("--identity", nargs="*", default=list(IDENTITIES))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--models", nargs="*", default=list(GOWALLA))
    parser.add_argument("--columns", default="linear", choices=get_args(ColumnEncoding), help="who encodes columns")
    parser.add_argument("--color", default=HeteroConfig.color, choices=get_args(Color), help="what has second weights")
    parser.add_argument("--no-lag", action="store_true", help="training queries see all data before them")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    folder = data_folder("relational") / "relational"
    if options.dataset == "gowalla":
        gowalla(folder / "gowalla", options)
    else:
        formula_one(folder / "rel-f1", options)


def formula_one(folder: Path, options: argparse.Namespace) -> None:
    """The tasks of rel-f1."""
    for task in options.tasks:
        problem = None
        for seed in options.seeds:
            for identity in options.identity:
                changed = (" by pytorch-frame" if options.columns == "frame" else "") + " without lag" * options.no_lag
                changed += f" color {options.color}" * (options.color != HeteroConfig.color)
                key = f"rel-f1 {task} {identity}{changed} seed {seed}"
                if key in records(options.output):
                    continue
                if problem is None:
                    problem = rel_f1(folder, task, options.columns).problem
                    heuristics = {part: problem.heuristics(part) for part in ("valid", "test")}
                    add(options.output, f"rel-f1 {task} heuristics", heuristics)
                settings = replace(settings_of(task, identity, seed), lag=not options.no_lag, color=options.color)
                run = train_relational(problem, settings, device=options.device, show=print)
                record = {
                    "settings": settings.as_dict(),
                    "metrics": run.metrics,
                    "best_epoch": run.best_epoch,
                    "seconds_per_epoch": min(each["seconds"] for each in run.epochs),
                    "parameters": sum(weight.numel() for weight in run.model.parameters()),
                    "device": options.device,
                }
                add(options.output, key, record)
                print(key, run.metrics, flush=True)


def gowalla(folder: Path, options: argparse.Namespace) -> None:
    """Rankings of all items of Gowalla for all users."""
    given = read_interactions(folder / "train.txt.gz", folder / "test.txt.gz")
    data = to_device(given, options.device)
    device = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    for name in options.models:
        seeds = options.seeds if name in ("idgnn", "towers") else [0]
        for seed in seeds:
            key = f"gowalla {name} seed {seed}"
            if key not in records(options.output):
                chosen = choose_towers(given, options) if name == "towers" else TowerSettings()
                start = time.perf_counter()
                scores, extra = _scores(name, data, replace(chosen, seed=seed), options.device)
                fitted = time.perf_counter() - start
                metrics = measure_all(scores, data)
                seconds = {"fitting": fitted, "ranking": time.perf_counter() - start - fitted}
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                record = {"metrics": metrics, "seconds": seconds, "device": device, "peak_gib": peak, **extra}
                add(options.output, key, record)
                print(json.dumps({key: record}), flush=True)


def choose_towers(data: Interactions, options: argparse.Namespace) -> TowerSettings:
    """The best of :data:`TOWERS` by the recall of a tenth of the training pairs, held out; test is not seen."""
    key = "gowalla towers choice"
    inner = data.held_out(0.1)
    for name, settings in TOWERS.items():
        tried = records(options.output).get(key, {})
        if name not in tried:
            scores = train_towers(inner, settings, device=options.device)
            metrics = measure_all(scores, to_device(inner, options.device))
            add(options.output, key, tried | {name: metrics})
            print(json.dumps({f"{key}: {name}": metrics}), flush=True)
    tried = records(options.output)[key]
    return TOWERS[max(tried, key=lambda name: tried[name]["recall"])]


def _scores(name: str, data: Interactions, towers: TowerSettings, device: str) -> tuple[Any, dict[str, Any]]:
    """The function that scores all items for users, and what else is recorded."""

    def show(text: str) -> None:
        print(text, flush=True)

    if name == "popular":
        return most_popular(data), {}
    if name == "walk":
        return WalkIDGNN(data.train, data.num_items).to(device).scores, {"exponents": [-1.0, -1.0, 0.0]}
    if name == "idgnn":
        settings = WalkSettings(seed=towers.seed)
        model = train_walks(data, settings, show=show, device=device)
        exponents = [round(each, 3) for each in model.exponents.tolist()]
        return model.scores, {"exponents": exponents, "settings": vars(settings)}
    return train_towers(data, towers, device=device, show=show), {"settings": vars(towers)}


def records(path: Path) -> dict[str, Any]:
    """All records, by key."""
    return json.loads(path.read_text()) if path.is_file() else {}


def add(path: Path, key: str, record: Any) -> None:
    """Adds a record to the file."""
    found = records(path) | {key: record}
    write_text(path, json.dumps(dict(sorted(found.items())), indent=1) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(max(1, torch.get_num_threads()))
    main()
