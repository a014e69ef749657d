"""The fast reader gives what the row-by-row reader gives, or leaves the file to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from idgnn.graphs.files.arrow_table import fast_columns
from idgnn.graphs.files.text_table import read_table
from tests.graphs.files.written import write

PLAIN = {
    "e.csv": "a,b,1\n b , c,2\n# note, x, y\n\nc,a,\n",
    "e.tsv": "a\tb\n\nb\tc d\n",
    "e.txt": "# one\n a   b\nb\tc  \n\n% two\nc a\n",
    "e.mtx": "%%MatrixMarket matrix coordinate pattern symmetric\n% note\n3 3 2\n2 1\n3 2\n",
    "quotes.csv": '"a","b, c"\nd,e\n"f g",h\n',
    "windows.csv": "a,b\r\nc,d\r\n",
    "mark.csv": "\ufeffa,b\nc,\u6771\u4eac\n",
    "e.csv.gz": "a,b\nb,c\n",
}
UNUSUAL = {
    "too few cells": "a,b\nc\n",
    "a quote within": 'a,b\nc"d",e\n',
    "a quote after a blank": 'a, "b"\nc,d\n',
    "an open quote": 'a,b\n"c,d\n',
    "a doubled quote": 'a,b\n"c ""d""",e\n',
    "a cell of two lines": 'a,b\n"c\nd",e\n',
    "a line of blanks": "a,b\n   \nc,d\n",
    "a control character": "a,b\nc\x0b,d\n",
    "no text": "",
}


def both(path, names):
    def names_of(*_):
        return names

    return [read_table(path, names_of, bad := [], row_by_row=slow) for slow in (False, True)], bad


@pytest.mark.parametrize(("name", "text"), PLAIN.items())
def test_the_fast_reader_equals_the_plain_one(tmp_path, name, text):
    path = write(tmp_path / name, text)
    names = ["x", "y", "z"][: 3 if name == "e.csv" else 2]
    assert fast_columns(path, names, header=False) is not None
    (fast, plain), _ = both(path, names)
    assert {name: column.cells() for name, column in fast.columns.items()} == {
        name: column.cells() for name, column in plain.columns.items()
    }
    assert list(fast.lines) == list(plain.lines)


@pytest.mark.parametrize("text", UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_left_to_the_plain_reader(tmp_path, text):
    assert fast_columns(write(tmp_path / "e.csv", text), ["x", "y"], header=False) is None


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet='ab1,"\n\t #%;\r', max_size=30), st.sampled_from(["e.csv", "e.txt", "e.tsv"]), st.booleans())
def test_any_text_is_read_alike(tmp_path_factory, text, name, header):
    path = write(tmp_path_factory.mktemp("any") / name, text)
    names = None if header else ["x", "y"]

    def read(slow):
        bad = []
        try:
            table = read_table(path, lambda *_: names, bad, row_by_row=slow)
        except ValueError as error:
            return str(error)
        cells = {name: column.cells() for name, column in table.columns.items()}
        return cells, list(table.lines), list(map(str, bad))

    assert read(slow=False) == read(slow=True)
