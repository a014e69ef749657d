"""Every benchmark can be started: its module can be imported."""

from importlib import import_module
from pathlib import Path

import pytest

import benchmarks

MODULES = sorted(path.stem for path in Path(benchmarks.__path__[0]).glob("*.py") if not path.stem.startswith("_"))


@pytest.mark.parametrize("name", MODULES)
def test_it_can_be_imported(name):
    import_module(f"benchmarks.{name}")
