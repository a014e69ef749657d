"""Runs all benchmarks, prints a table and writes the figures as JSON."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

import torch
from rich.progress import Progress

from benchmarks import building, counts, pairs, step
from benchmarks.output import show, write
from benchmarks.timing import Figure

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
    show(figures, f"{torch.get_num_threads()} threads, {platform.machine()}")
    write(options.output, figures)


if __name__ == "__main__":
    main()
