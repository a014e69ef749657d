"""Runs all benchmarks, prints a table and writes the figures as JSON."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import torch
from rich.progress import Progress

from benchmarks import building, counts, pairs, step
from benchmarks.data import data_folder
from benchmarks.measure import Figure, show, write_record

SECTIONS = {"step": step.run, "pairs": pairs.run, "building": building.run, "counts": counts.run}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Measures what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"some of: {', '.join(SECTIONS)} (default: all)")
    parser.add_argument("--output", type=Path, default=RESULTS / "cpu.json", help="where the figures are written")
    options = parser.parse_args()
    unknown = set(options.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown section {', '.join(sorted(unknown))}; expected some of {', '.join(SECTIONS)}")
    folder = data_folder("TUDataset", "ogbg_molhiv", "scale")
    figures: list[Figure] = []
    with Progress(transient=True) as progress:
        for name in progress.track(options.sections or SECTIONS, description="Measuring"):
            figures += SECTIONS[name](folder)
    show(figures, f"{torch.get_num_threads()} threads, {platform.machine()}")
    write_record(options.output, figures)


if __name__ == "__main__":
    main()
