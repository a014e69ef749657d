import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from idgnn.choices import TaskName
from idgnn.cli.main import main
from idgnn.graphs.catalog import CATALOG, NAMES, find
from idgnn.graphs.raw_files import expected

Said = pytest.CaptureFixture[str]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No dataset is anywhere; what is put into this folder is."""
    monkeypatch.setenv("IDGNN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("IDGNN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path / "data"


def copy(name: str, source: Path, target: Path) -> list[Path]:
    files = [target / each for each in expected(find(name))]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file.relative_to(target), file)
    return files


def fails(said: Said, arguments: list[str]) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    return tuple(said.readouterr())


def test_the_list_has_every_dataset_with_all_that_is_known(empty: Path, capsys: Said) -> None:
    main(["data"])
    said = capsys.readouterr().out
    cells = {name: [cell.strip() for cell in line.split("│")] for line in said.splitlines() for name in NAMES
             if line.startswith(f"│ {name} ")}  # fmt: skip
    for name, entry in CATALOG.items():
        here = "yes" if entry.folder is None else "no"
        _, shown, graphs, kind, tasks, available, cite, _ = cells[name]
        assert (shown, graphs, kind, available) == (name, f"{entry.num_graphs:,}", entry.kind, here)
        assert tasks == ", ".join(entry.tasks)
        assert f"{cite} {entry.citation}" in said
    assert "no download is offered for ba, ws, ba500, ws500, counting, zinc, graph8c: set IDGNN_DATA" in said


def test_tasks_are_called_as_in_idgnn_train() -> None:
    for entry in CATALOG.values():
        assert set(entry.tasks) <= set(get_args(TaskName))


def test_names_shorten_the_list_and_files_are_found(empty: Path, data_dir: Path, capsys: Said) -> None:
    copy("MUTAG", data_dir, empty)
    main(["data", "list", "mutag", "cora"])
    rows = [line for line in capsys.readouterr().out.splitlines() if re.match(r"│ [A-Z]", line)]
    assert [line.split()[1] for line in rows] == ["MUTAG", "Cora"]
    assert " yes " in rows[0] and " no " in rows[1]
    main(["data", "list", "cora"])
    assert "or by idgnn data fetch NAME." in capsys.readouterr().out


def test_list_and_verify_need_no_torch(empty: Path) -> None:
    code = (
        "import sys; from idgnn.cli.main import main\n"
        "for given in (['data'], ['data', 'list', 'Cora'], ['data', 'verify', 'ScaleFree']): main(given)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0


def test_verify_tells_right_files_from_wrong_ones(empty: Path, data_dir: Path, capsys: Said) -> None:
    _, err = fails(capsys, ["data", "verify"])
    assert "no dataset with files is here" in err
    first, *_ = copy("MUTAG", data_dir, empty)
    copy("PTC_MR", data_dir, empty)
    main(["data", "verify"])
    assert capsys.readouterr().out == "MUTAG: 5 files as expected\nPTC_MR: 5 files as expected\n"
    first.write_bytes(first.read_bytes() + b" ")
    out, err = fails(capsys, ["data", "verify"])
    assert out == "MUTAG: wrong\nPTC_MR: 5 files as expected\n"
    assert err.startswith(f"idgnn: {first} has the SHA-256 ") and err.count("\n") == 1
    out, err = fails(capsys, ["data", "verify", "Cora", "PTC_MR"])
    assert out == "Cora: wrong\nPTC_MR: 5 files as expected\n" and "idgnn data fetch Cora" in err
    _, err = fails(capsys, ["data", "verify", "counting"])
    assert "counting.npz" in err and "cannot be downloaded" in err and "fetch" not in err


def test_fetch_continues_after_a_problem(empty: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("the cable is out")

    monkeypatch.setattr("torch_geometric.data.download_url", broken)
    out, err = fails(capsys, ["data", "fetch", "Cor", "ba", "MUTAG", "smallworld"])
    unknown, released, download = err.splitlines()
    assert unknown.startswith("idgnn: there is no dataset 'Cor'. Did you mean Cora?")
    assert "the files of ba" in released and "cannot be downloaded" in released
    assert "the files of MUTAG" in download and "the cable is out" in download
    assert out == (
        f"MUTAG: downloading from {find('MUTAG').source}\nSmallWorld: is generated, there is nothing to fetch\n"
    )


def test_fetch_says_where_files_are_that_are_here(empty: Path, data_dir: Path, capsys: Said) -> None:
    copy("MUTAG", data_dir, empty)
    main(["data", "fetch", "mutag"])
    assert capsys.readouterr().out == f"MUTAG: is in {empty / 'TUDataset/MUTAG/raw'}, 5 files as expected\n"


def test_fetch_needs_names_of_datasets(empty: Path, capsys: Said) -> None:
    assert "idgnn data fetch ENZYMES" in fails(capsys, ["data", "fetch"])[1]
    assert "invalid choice 'fetsch'" in fails(capsys, ["data", "fetsch"])[1]
    assert "no dataset 'Cor'" in fails(capsys, ["data", "list", "Cor"])[1]
