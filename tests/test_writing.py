"""Files are there as a whole or not at all."""

import pytest

from idgnn.writing import remove_leftovers, replacing, write_text


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    write_text(path, "one ü")
    assert path.read_text(encoding="utf-8") == "one ü"
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        temporary.write_text("two")
        assert path.read_text(encoding="utf-8") == "one ü"
        raise KeyboardInterrupt
    assert path.read_text(encoding="utf-8") == "one ü" and list(path.parent.iterdir()) == [path]


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    kept = {".git", ".env", ".notes.part", ".gitignore", "table.part", ".lock"}
    (tmp_path / ".git").mkdir()
    for name in kept - {".git"}:
        (tmp_path / name).touch()
    with replacing(tmp_path / "table") as temporary:
        pass
    temporary.touch()  # as a process leaves it that is killed while it writes
    remove_leftovers(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == kept | {"table"}


def test_several_may_write_the_same_file(tmp_path):
    path = tmp_path / "file.txt"
    with replacing(path) as first, replacing(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]
