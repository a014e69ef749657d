"""Files may be named by text or by paths, and what cannot be a name is refused."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from idgnn.graphs.sources import FileSource


class Elsewhere:
    """What `os.PathLike` asks for."""

    def __fspath__(self) -> str:
        return "people.csv"


def test_text_and_other_paths_become_paths() -> None:
    given = FileSource("friends.csv", Elsewhere(), label="club", ignore=["id"])
    expected = FileSource(Path("friends.csv"), Path("people.csv"), label="club", ignore=("id",))
    assert given == expected and hash(given) == hash(expected)
    assert isinstance(given.nodes, Path) and given.graphs is None
    assert pickle.loads(pickle.dumps(given)) == given
    assert replace(given, nodes="others.csv").nodes == Path("others.csv")
    assert given.absolute().edges == Path.cwd() / "friends.csv"


def test_what_is_no_name_is_refused() -> None:
    with pytest.raises(ValueError, match="edges is None, expected the path of a file"):
        FileSource(None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nodes is 3, expected the path of a file"):
        FileSource("friends.csv", 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"ignore is 'id', expected several names: \['id'\]"):
        FileSource("friends.csv", ignore="id")
    with pytest.raises(ValueError, match=r"header is 'edges', expected several names: \['edges'\]"):
        FileSource("friends.csv", header="edges")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="directed is 1, expected True or False"):
        FileSource("friends.csv", directed=1)  # type: ignore[arg-type]
