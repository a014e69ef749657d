"""Files are there as a whole or not at all."""

import errno

import pytest
from safetensors import SafetensorError

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


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "another.csv"),
        ConnectionResetError(errno.ECONNRESET, "Connection reset by peer"),
        SafetensorError("Error while deserializing header: incomplete metadata"),
    ],
    ids=["another file", "network", "damaged safetensors"],
)
def test_an_error_that_is_not_of_writing_is_raised_unchanged(tmp_path, error):
    with pytest.raises(type(error)) as raised, replacing(tmp_path / "table"):
        raise error
    assert raised.value is error and not list(tmp_path.iterdir())


def test_an_error_of_writing_names_the_file_and_the_reason(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"file/table cannot be written: .*(not a directory|file exists)\."):
        write_text(tmp_path / "file" / "table", "text")
    with (
        pytest.raises(ValueError, match=r"table cannot be written: no such file"),
        replacing(tmp_path / "table") as new,
    ):
        new.unlink()
        new.chmod(0o600)
    with pytest.raises(ValueError, match=r"table cannot be written: no space left on device\."):  # noqa: SIM117
        with replacing(tmp_path / "table"), open("/dev/full", "w") as full:
            full.write("text")
            full.flush()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
