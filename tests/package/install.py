"""Installs the archives in `dist` into empty environments and tries them: `python -m tests.package.install`.

An empty environment has what pip would install, the package and the dependencies that its metadata names, and nothing
else. The dependencies are links to those of this environment, so that it takes seconds and no network.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from email.parser import Parser
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def main() -> None:
    """The wheel, and a wheel that is built from the source distribution; the types are checked with the first."""
    (wheel,), (sdist,) = sorted((ROOT / "dist").glob("*.whl")), sorted((ROOT / "dist").glob("*.tar.gz"))
    with tempfile.TemporaryDirectory() as folder:
        python = install(wheel, Path(folder) / "wheel")
        check_types(python, Path(folder) / "consumer")
        options = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--wheel-dir", folder)
        run(sys.executable, "-m", "pip", "wheel", *options, sdist, cwd=folder)
        install(Path(folder) / wheel.name, Path(folder) / "sdist")


def install(wheel: Path, folder: Path) -> Path:
    """Makes an empty environment with the package of the wheel, tries it, and returns its Python."""
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    required, version = metadata(wheel)
    for found in closure(required):
        link(found, site)
    pip = (sys.executable, "-m", "pip", "--python", python)
    run(*pip, "install", "--no-deps", "--no-index", "--quiet", wheel, cwd=folder)
    run(*pip, "check", cwd=folder)
    run(python, HERE / "smoke.py", version, cwd=folder)
    return python


def metadata(wheel: Path) -> tuple[list[Requirement], str]:
    """What a wheel requires, and its version."""
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        found = Parser().parsestr(archive.read(name).decode())
    return [Requirement(line) for line in found.get_all("Requires-Dist") or []], found["Version"]


def closure(required: list[Requirement]) -> list[Distribution]:
    """The distributions that satisfy the requirements, those that they require, and so on; without extras."""
    found: dict[str, Distribution] = {}
    waiting = list(required)
    while waiting:
        each = waiting.pop()
        if each.marker is not None and not each.marker.evaluate({"extra": ""}):
            continue
        name = each.name.lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"the package requires {each}, which is not installed here. Run make venv.") from None
        if not each.specifier.contains(found[name].version, prereleases=True):
            raise SystemExit(f"the package requires {each}, but {found[name].version} is installed. Run make venv.")
        waiting += [Requirement(line) for line in found[name].requires or []]
    return list(found.values())


def link(found: Distribution, site: Path) -> None:
    """Makes what a distribution installed visible in another environment."""
    for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
        if not (site / top).exists():
            (site / top).symlink_to(Path(str(found.locate_file(top))))


def check_types(python: Path, folder: Path) -> None:
    """Runs pyright on a file that uses the package, outside of the checkout, in strict mode: it needs py.typed."""
    folder.mkdir()
    shutil.copy(HERE / "consumer.py", folder)
    (folder / "pyrightconfig.json").write_text(json.dumps({"pythonVersion": "3.11"}))
    run(sys.executable, "-m", "pyright", "--pythonpath", python, "consumer.py", cwd=folder)


def run(*command: str | Path, cwd: str | Path) -> None:
    """Runs a command that cannot see the checkout."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(each) for each in command], cwd=cwd, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {done.returncode}.")


if __name__ == "__main__":
    main()
