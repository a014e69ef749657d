"""Every Python example of the README and of the pages that need no files runs as it stands; links lead somewhere."""

import re
from pathlib import Path

import pytest

import idgnn

ROOT = Path(__file__).parents[1]
RUN = (
    "README.md",
    "docs/index.md",
    "docs/tour.md",
    "docs/command_line.md",
    "docs/large_graphs.md",
    "docs/beyond_one_machine.md",
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples(page: str) -> list[str]:
    return re.findall(
        r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


EXAMPLES = [
    pytest.param(example, id=f"{page}-{number}") for page in RUN for number, example in enumerate(examples(page))
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 12
    assert all(examples(page) for page in RUN)


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_runs(example: str) -> None:
    exec(compile(example, "example", "exec"), {})


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub, and the site, make of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_within_the_repository_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", path):
            continue  # an address; it cannot be asked for here
        target = page if not path else (page.parent / path).resolve()
        assert target.exists(), f"{link} does not exist"
        if anchor:
            assert anchor in anchors(target), f"{link} has no such heading"


def test_every_public_name_has_its_docstring_on_the_site() -> None:
    directives = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))
    shown = set(re.findall(r"^\.\. auto\w+:: (\w+)$", directives, flags=re.MULTILINE))
    assert shown == set(idgnn.__all__) - {"__version__"}


def test_every_page_is_in_the_contents() -> None:
    listed: set[Path] = set()
    for page in ROOT.joinpath("docs").rglob("*.md"):
        for block in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
            names = [line for line in block.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").resolve() for name in names}
    assert listed == {page.resolve() for page in ROOT.joinpath("docs").rglob("*.md")} - {ROOT / "docs" / "index.md"}
