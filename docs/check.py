"""Checks the built site: `python docs/check.py build/site`, as `make docs` does.

Every link within the site leads to a page, and to a place on it, that exist. Every page tells phones to use their own
width, and what may be wider than a phone, tables and code, is in a box that scrolls by itself.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
BOXES = {"table-wrapper", "highlight", "output", "indextable", "domainindex-table"}
"""Classes of boxes that scroll: those of Furo, and those of `_static/site.css`."""


@dataclass
class Page(HTMLParser):
    """What a page links to, the places on it, and what is wrong with it."""

    path: Path
    links: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    viewport: bool = False
    open: list[tuple[str, set[str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))
        if not self.viewport:
            self.wrong.append("no viewport for phones")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes links and places, and tables that are in no box."""
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if given.get(name)}
        self.links += [given[name] for name in ("href", "src") if given.get(name)]
        self.viewport |= tag == "meta" and "width=device-width" in given.get("content", "")
        if tag not in EMPTY:
            self.open.append((tag, set(given.get("class", "").split())))
        if tag in {"table", "pre"} and not any(BOXES & classes for _, classes in self.open):
            self.wrong.append(f"a {tag} that does not scroll by itself")

    def handle_endtag(self, tag: str) -> None:
        """Leaves the element, and those inside of it that were not closed."""
        while self.open and self.open.pop()[0] != tag:
            pass


def main(site: Path) -> None:
    """Prints what is wrong, and fails if anything is."""
    pages = {path.resolve(): Page(path) for path in sorted(site.rglob("*.html"))}
    wrong = [f"{page.path}: {what}" for page in pages.values() for what in page.wrong]
    number = 0
    for here, page in pages.items():
        for link in page.links:
            address, _, place = link.partition("#")
            address = unquote(address.partition("?")[0])
            if ":" in address or address.startswith("//"):
                continue  # another site, or a picture that the page itself holds
            target = (here.parent / address).resolve() if address else here
            target = target / "index.html" if target.is_dir() else target
            number += 1
            if not target.exists():
                wrong.append(f"{page.path}: {link} does not exist")
            elif place and target in pages and unquote(place) not in pages[target].places:
                wrong.append(f"{page.path}: {link} has no such place")
    if wrong or not pages:
        sys.exit("\n".join(wrong) or f"{site} has no pages.")
    print(f"{len(pages)} pages, {number:,} links within the site: all lead somewhere")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
