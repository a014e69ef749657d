"""Runs all benchmarks, prints a table and writes the figures as JSON."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import building, counts, pairs, step
from benchmarks.machine import describe
from benchmarks.timing import Figure
from idgnn.training.files import write_text

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
    folder = os.environ.get("IDGNN_DATA")
    if folder is None or not Path(folder).is_dir():
        sys.exit(
            "Skipped: the benchmarks read raw files of ENZYMES, PROTEINS, ogbg-molhiv and soc-douban. Set the "
            "environment variable IDGNN_DATA to the folder that holds TUDataset/, ogbg_molhiv/ and scale/."
        )
    figures: list[Figure] = []
    with Progress(transient=True) as progress:
        for name in progress.track(options.sections or SECTIONS, description="Measuring"):
            figures += SECTIONS[name](Path(folder))
    show(figures)
    write(options.output, figures)


def show(figures: list[Figure]) -> None:
    """A table for people."""
    table = Table("what", "measured", "target", "", title=f"{torch.get_num_threads()} threads, {platform.machine()}")
    for figure in figures:
        target = f"{figure.target} {figure.unit}" if figure.target else ""
        mark = "" if not figure.target else "[green]met[/]" if figure.met else "[red]missed[/]"
        table.add_row(figure.name, f"{figure.value:.2f} {figure.unit}", target, mark)
    Console().print(table)


def write(path: Path, figures: list[Figure]) -> None:
    """The same for programs, with what is needed to make sense of it later."""
    record = describe() | {"figures": [figure.as_dict() for figure in figures]}
    write_text(path, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
