"""The picture of a schema that `idgnn inspect --tables` draws."""

import itertools
import re
from pathlib import Path

import pytest

from idgnn.cli.main import main
from idgnn.cli.schema_picture import NEAR, Key, bends, columns

SCHEMA = """
[people]
key = "id"
foreign = { boss = "people", mentor = "people" }
[mail]
key = ""
foreign = { from = "people", to = "people", "$topic$" = "topics" }
[topics]
key = "id"
[codes]
key = "id"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    (tmp_path / "people.csv").write_text("id,boss,mentor\na,,\nb,a,a\n")
    (tmp_path / "mail.csv").write_text("from,to,$topic$\n" + "a,b,x\n" * 1234)
    (tmp_path / "topics.csv").write_text("id\nx\n")
    (tmp_path / "codes.csv").write_text("id,size\n")
    (tmp_path / "schema.toml").write_text(SCHEMA)
    return tmp_path


def inspect(folder: Path, *more: str) -> None:
    main(["inspect", "--tables", str(folder), "--seconds", "0", *more])


def texts(drawn: str) -> list[str]:
    return re.findall(r"<(?:text|tspan)[^>]*>([^<]+)</", drawn)


def boxes(drawn: str) -> list[tuple[str, bool]]:
    """The color of each box, in the order of the tables, and whether its border is dashed."""
    styles = [style for style in re.findall(r'style="([^"]*)"', drawn) if "fill: #" in style and "stroke:" in style]
    found = [(str(re.search(r"fill: (#\w+)", style)[1]), "dasharray" in style) for style in styles]  # pyright: ignore
    return [box for box in found if box[0] not in ("#4a5568", "#ffffff")]  # arrowheads, and what is behind labels


def test_it_shows_tables_rows_foreign_keys_and_distances(folder, capsys):
    picture = folder / "made" / "schema.svg"
    inspect(folder, "--picture", str(picture), "--node", "topics", "--layers", "1")
    said, drawn = capsys.readouterr().out, picture.read_text()
    assert "The schema" in said and said.endswith(f"The picture: {picture}\n")
    found = texts(drawn)
    for name, rows in (("people", "2 rows"), ("mail", "1,234 rows"), ("topics", "1 row"), ("codes", "0 rows")):
        assert (name, rows) in itertools.pairwise(found)
    assert sorted(set(found) & {"boss", "mentor", "from", "to", "$topic$"}) == [
        "$topic$",
        "boss",
        "from",
        "mentor",
        "to",
    ]
    # topics is colored; mail is one step from it, people two, which one layer does not reach; codes has no way.
    assert boxes(drawn) == [(NEAR[1], True), (NEAR[0], False), ("#f2a65a", False), ("#d5dbe3", True)]
    assert any("message steps from topics" in text for text in found)
    inspect(folder, "--picture", str(picture), "--node", "topics", "--layers", "1")
    assert picture.read_text() == drawn


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_the_first_table_is_colored_if_none_is_named(folder, capsys, caplog, suffix):
    picture = folder / f"schema{suffix}"
    inspect(folder, "--picture", str(picture))
    alone = picture.read_bytes()
    inspect(folder, "--picture", str(picture), "--node", "mail")
    assert len(alone) > 1000 and picture.read_bytes() != alone
    inspect(folder, "--picture", str(picture), "--node", "people")
    assert suffix == ".pdf" or picture.read_bytes() == alone  # a PDF has the time in it
    assert not caplog.records


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--picture", "x.jpg"], "the picture is x.jpg, expected a name that ends in .png, .svg, .pdf"),
        (["--picture", "x.svg", "--node", "dogs"], "--node is 'dogs', expected one of the tables people, mail, topics"),
        (["--picture", "x.svg", "--layers", "0"], "--layers is 0, expected 1 or more"),
        (["--picture", "x.svg", "--graph", "0"], "--graph is for graphs"),
        (["--node", "people"], "Add --picture FILE.png"),
    ],
)
def test_what_cannot_be_drawn(folder, capsys, arguments, sentence):
    with pytest.raises(SystemExit) as stop:
        inspect(folder, *arguments)
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    assert sentence in err and out == ""


def test_no_two_tables_have_the_same_place_and_columns_are_distances():
    keys = [Key("b", "a", "k"), Key("c", "a", "k"), Key("d", "b", "k"), Key("d", "c", "k"), Key("e", "b", "k")]
    steps = {"e": 2, "d": 2, "a": 0, "c": 1, "b": 1, "f": None, "g": None}
    place = columns(steps, keys)
    assert len(set(place.values())) == len(steps)
    assert {name: x for name, (x, _) in place.items()} == {n: 3 if s is None else s for n, s in steps.items()}
    assert columns({"a": 0}, []) == {"a": (0.0, 0.0)}


def test_arrows_do_not_cover_each_other_or_pass_behind_a_table():
    place = {"a": (0.0, 0.0), "b": (1.0, 0.0), "c": (2.0, 0.0)}
    keys = [Key("a", "b", "i"), Key("a", "b", "j"), Key("b", "a", "k"), Key("a", "c", "l"), Key("c", "b", "m")]
    bent = bends(keys, place)
    # An arrow of the other direction is on the same side if its bend has the other sign.
    sides = [bent[0], bent[1], -bent[2]]
    assert len(set(sides)) == 3 and bent[0] == bent[4] == 0 != bent[3]
