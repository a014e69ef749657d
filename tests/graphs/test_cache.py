import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from idgnn.graphs.cache import cache_key, cached
from idgnn.graphs.dataset import checksum
from idgnn.graphs.raw_files import cache_dir


def some_graphs() -> list[Data]:
    generator = torch.Generator().manual_seed(0)
    sizes = [(3, 4), (0, 0), (1, 0), (5, 9)]
    return [
        Data(
            x=torch.rand(n, 2, generator=generator) > 0.5,
            edge_index=torch.randint(max(n, 1), (2, e), generator=generator),
            edge_attr=torch.rand(e, 3, generator=generator, dtype=torch.float64),
            y=torch.tensor([n]),
        )
        for n, e in sizes
    ]


def never() -> list[Data]:
    raise AssertionError("the graphs were made again")


def the_file(cache: Path) -> Path:
    (path,) = cache.rglob("*.safetensors")
    return path


def test_what_was_kept_is_what_was_made(cache: Path) -> None:
    made = cached("some", some_graphs)
    again = cached("some", never)
    assert checksum(again) == checksum(made) == checksum(some_graphs())
    assert [graph.num_nodes for graph in again] == [3, 0, 1, 5]
    assert all(graph.edge_index.is_contiguous() for graph in again)


def test_attributes_of_some_graphs_only_and_names_are_kept(cache: Path) -> None:
    def make() -> list[Data]:
        named = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4, node_name=["a", "b", "c", "d"], graph_name="g")
        return [named, Data(x=torch.ones(2, 1), edge_label_index=torch.tensor([[0, 1], [1, 1]]))]

    cached("named", make)
    first, second = cached("named", never)
    assert first.num_nodes == 4 and first.node_name == ["a", "b", "c", "d"] and first.graph_name == "g"
    assert "x" not in first and "edge_index" not in second
    assert second.edge_label_index.tolist() == [[0, 1], [1, 1]]


def test_no_graphs_are_kept_as_no_graphs(cache: Path) -> None:
    cached("none", list)
    assert cached("none", never) == []


def test_changing_a_graph_does_not_change_the_file(cache: Path) -> None:
    cached("some", some_graphs)
    cached("some", never)[0].edge_attr.zero_()
    assert checksum(cached("some", never)) == checksum(some_graphs())


@pytest.mark.parametrize("damage", ["cut short", "one byte", "empty", "no such format"])
def test_a_damaged_file_is_made_again(cache: Path, damage: str) -> None:
    cached("some", some_graphs)
    path = the_file(cache)
    content = path.read_bytes()
    damaged = {
        "cut short": content[:-5],
        "one byte": content[:-1] + bytes([content[-1] ^ 1]),
        "empty": b"",
        "no such format": b"{}" * 100,
    }
    path.write_bytes(damaged[damage])
    assert checksum(cached("some", some_graphs)) == checksum(some_graphs())
    assert path.read_bytes() != damaged[damage]
    cached("some", never)


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match=r"could not be kept in .*file.* set IDGNN_CACHE to another one"):
        graphs = cached("some", some_graphs)
    assert checksum(graphs) == checksum(some_graphs())


def test_an_interrupted_write_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cached("some", some_graphs)
    assert [path for path in cache.rglob("*") if path.is_file()] == []


def test_graphs_that_do_not_fit_together_are_refused(cache: Path) -> None:
    with pytest.raises(ValueError, match=r"attribute x is torch.float32 \[2, 1\] in one graph and .* \[2, 3\]"):
        cached("odd", lambda: [Data(x=torch.ones(2, 1)), Data(x=torch.ones(2, 3))])


def test_another_process_may_finish_first(cache: Path) -> None:
    def overtaken() -> list[Data]:
        cached("shared", some_graphs)
        return some_graphs()

    assert checksum(cached("shared", overtaken)) == checksum(cached("shared", never)) == checksum(some_graphs())
    the_file(cache)


def test_several_processes_may_write_at_once(cache: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: checksum(cached(f"shared{number % 2}", some_graphs)), range(64)))
    assert set(found) == {checksum(some_graphs())}
    files = sorted(path.name for path in cache.rglob("*") if path.is_file())
    assert files == ["shared0.safetensors", "shared1.safetensors"]


def test_the_key_depends_on_every_part() -> None:
    keys = [cache_key("a"), cache_key("b"), cache_key("a", 1), cache_key("a", 1, 2), cache_key("a", "12")]
    assert len(set(keys)) == len(keys)
    assert cache_key("a", 1, "x") == cache_key("a", 1, "x")


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [
        ("linux", "XDG_CACHE_HOME", "given/idgnn"),
        ("linux", None, "home/.cache/idgnn"),
        ("darwin", None, "home/Library/Caches/idgnn"),
        ("win32", "LOCALAPPDATA", "given/idgnn"),
        ("win32", "IDGNN_CACHE", "given"),
    ],
)
def test_the_folder_is_the_one_of_the_platform(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str | None, expected: str
) -> None:
    for each in ("IDGNN_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("home"))
    monkeypatch.setattr(sys, "platform", platform)
    if variable:
        monkeypatch.setenv(variable, "given")
    assert cache_dir() == Path(expected)
