"""The tools of `make docs`, `make package` and `make test-lowest`: that they find what is wrong."""

import runpy
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.package import install, lowest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = '<meta name="viewport" content="width=device-width"><h1 id="top">{}</h1>'


def check(site: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "argv", ["check.py", str(site)])
    runpy.run_path(str(ROOT / "docs" / "check.py"), run_name="__main__")


def test_the_check_of_the_site_passes_what_is_right(tmp_path, monkeypatch, capsys):
    (tmp_path / "other.html").write_text(PAGE.format('<div class="table-wrapper"><table></table></div>'))
    (tmp_path / "index.html").write_text(PAGE.format('<a href="other.html#top">1</a><a href="#top">2</a>'))
    check(tmp_path, monkeypatch)
    assert "2 pages, 2 links" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (PAGE.format('<a href="none.html">1</a>'), "none.html does not exist"),
        (PAGE.format('<img src="none.svg">'), "none.svg does not exist"),
        (PAGE.format('<a href="#bottom">1</a>'), "#bottom has no such place"),
        (PAGE.format('<div class="table-wrapper"></div><table></table>'), "a table that does not scroll"),
        ("<h1>no viewport</h1>", "no viewport"),
    ],
)
def test_the_check_of_the_site_finds(content, complaint, tmp_path, monkeypatch):
    (tmp_path / "index.html").write_text(content)
    with pytest.raises(SystemExit, match=complaint):
        check(tmp_path, monkeypatch)


def test_a_dependency_that_is_missing_or_too_old_is_named():
    with pytest.raises(SystemExit, match="requires no-such-package>=1, which is not installed"):
        install.closure([Requirement("no-such-package>=1")])
    with pytest.raises(SystemExit, match="requires torch>=99, but"):
        install.closure([Requirement("torch>=99")])


def test_an_empty_environment_has_what_dependencies_depend_on_but_no_tools():
    found = {each.name.lower() for each in install.closure([Requirement(line) for line in PROJECT["dependencies"]])}
    assert {"torch", "torch-geometric", "aiohttp"} <= {name.replace("_", "-") for name in found}
    assert not {"pytest", "ruff", "hypothesis"} & found


def test_linking_makes_a_package_visible(tmp_path):
    install.link(distribution("packaging"), tmp_path)
    assert (tmp_path / "packaging" / "__init__.py").is_file()


def test_the_lowest_versions_are_those_of_the_project(capsys):
    lowest.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("==")[0] for line in lines] == [
        *(Requirement(line).name for line in PROJECT["dependencies"]),
        *lowest.TOOLS,
    ]
    assert all(Requirement(line).specifier for line in lines)
