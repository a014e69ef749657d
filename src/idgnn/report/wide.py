"""A table with many columns in a terminal: in parts that fit side by side, so that no number is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from rich.cells import cell_len
from rich.table import Table as Grid
from rich.text import Text

_BETWEEN, _EDGES = 3, 4  # characters between two columns, and at the two edges together if they are drawn
_NAME = 20  # characters that the names of rows have at least, if they need them


@dataclass(frozen=True)
class Wide:
    """A table whose first columns are names, which every part repeats; `framed` draws its outer lines."""

    title: str
    heads: Sequence[str]  # of all columns
    num_names: int
    sections: Sequence[Sequence[Sequence[Text]]]  # of rows; a row that is shorter has empty cells at its end
    framed: bool = False

    def parts(self, room: int) -> Iterator[Grid]:
        """The whole if it fits into `room` characters; else the fewest parts of about as many columns that do.

        Where one column alone does not fit, its texts are folded.

        Example:
            >>> row = [Text(each) for each in ("GCN", "0.679±0.011", "0.589±0.040")]
            >>> table = Wide("", ["", "ScaleFree", "SmallWorld"], num_names=1, sections=[[row]])
            >>> [len(part.columns) for part in table.parts(80)], [len(part.columns) for part in table.parts(24)]
            ([3], [2, 2])
        """
        names, values = range(self.num_names), range(self.num_names, len(self.heads))
        natural = [max(self._longest(each), _longest_line(self.heads[each])) for each in range(len(self.heads))]
        room -= _EDGES * self.framed
        if _total(natural) <= room:
            yield self._grid([*names, *values], natural, self.title)
            return
        width = [*natural[: self.num_names], *(self._narrowest(each) for each in values)]
        least = [min(width[0], max(_NAME, _longest_word(self.heads[0]))), *width[1:]]
        for count in range(1, len(values) + 1):
            parts = list(_split(values, count))
            if all(_total([least[each] for each in (*names, *part)]) <= room for part in parts):
                break
        for number, part in enumerate(parts):
            yield self._grid([*names, *part], width, f"{self.title} (continued)".strip() if number else self.title)

    def _longest(self, column: int) -> int:
        """The length of the longest text of a column, without its head."""
        rows = (row for rows in self.sections for row in rows if column < len(row))
        return max((_longest_line(row[column].plain) for row in rows), default=1)

    def _narrowest(self, column: int) -> int:
        """A head may be folded between words, a number may not."""
        return max(self._longest(column), _longest_word(self.heads[column]))

    def _grid(self, columns: Sequence[int], width: Sequence[int], title: str) -> Grid:
        grid = Grid(title=title or None, title_justify="left", show_edge=self.framed, pad_edge=self.framed)
        for each in columns:  # the names of rows take what is left
            grid.add_column(self.heads[each], overflow="fold", width=width[each] if each else None)
        for rows in self.sections:
            grid.add_section()
            for row in rows:
                grid.add_row(*(row[each] if each < len(row) else "" for each in columns))
        return grid


def _total(width: Sequence[int]) -> int:
    return sum(width) + _BETWEEN * (len(width) - 1)


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _split(columns: Sequence[int], count: int) -> Iterator[Sequence[int]]:
    """Into `count` parts, the first of which have one more if that is needed."""
    least, more = divmod(len(columns), count)
    ends = list(accumulate([least + 1] * more + [least] * (count - more)))
    return (columns[first:last] for first, last in zip([0, *ends], ends, strict=False))
