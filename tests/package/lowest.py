"""Prints what `make test-lowest` installs: the lower bounds of `pyproject.toml`, and the tools that run the tests."""

from __future__ import annotations

import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
TOOLS = ("pytest", "pytest-xdist", "hypothesis", "packaging")


def main() -> None:
    """One requirement a line, for pip."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for line in project["dependencies"]:
        requirement = Requirement(line)
        (lowest,) = (each.version for each in requirement.specifier if each.operator == ">=")
        print(f"{requirement.name}=={lowest}")
    tested = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split())
    for name in TOOLS:
        print(f"{name}=={tested[name]}")


if __name__ == "__main__":
    main()
