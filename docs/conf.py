"""How Sphinx builds the site: `make docs` writes it to build/site."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _PROJECT["name"]
release = version = _PROJECT["version"]
author = "the idgnn authors"
copyright = author

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]

# Pages are Markdown as on GitHub: links between files, links to headings, formulas between dollars.
myst_enable_extensions = ["colon_fence", "dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 4
# Pages that programs write leave out a level of headings.
suppress_warnings = ["myst.header"]

# Tutorials run at every build, so that none shows what the library no longer does. A cell that fails ends the build.
nb_execution_mode = "force"
nb_execution_timeout = 300  # seconds for a cell, on a busy machine too
nb_execution_raise_on_error = True
nb_merge_streams = True
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other cost more than these graphs
os.environ["PYTHONWARNINGS"] = "ignore:IProgress not found"  # progress bars without Jupyter's widgets

# Docstrings write code between single backticks.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
html_math_renderer = "mathml"

html_theme = "furo"
html_title = f"idgnn {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}


_ATTRIBUTE = ("attribute", "property", "data")
_original: dict[str, list[str]] = {}


def _keep(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in _ATTRIBUTE:
        _original[name] = list(lines)


def _restore(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what in _ATTRIBUTE:
        lines[:] = _original.pop(name)


_KNOWN_AS = {"textsc": r"\text", "dots": r"\ldots", "big": "", "Big": ""}  # commands that docutils has no MathML for


def _formula(self: Any, node: nodes.Element) -> None:
    """A formula as MathML, which browsers draw by themselves, without a script. What is no TeX ends the build."""
    block = isinstance(node, nodes.math_block)
    text = re.sub(r"\\(textsc|dots|big|Big)(?![a-zA-Z])", lambda found: _KNOWN_AS[found[1]], node.astext())
    self.body.append(self.starttag(node, "div" if block else "span", "", CLASS="math"))
    self.body.append(tex2mathml(text, as_block=block) + ("</div>" if block else "</span>"))
    raise nodes.SkipNode


def setup(app: Any) -> None:
    """Formulas, and docstrings of attributes."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
    # Napoleon takes what precedes a colon in the docstring of an attribute for its type; ours are sentences.
    app.connect("autodoc-process-docstring", _keep, priority=400)
    app.connect("autodoc-process-docstring", _restore, priority=600)
