"""Before a grid begins: which datasets it reads, and which of them cannot be had."""

import subprocess
import sys

import pytest

from idgnn.experiments.grid import Choice
from idgnn.experiments.missing_data import missing_datasets, missing_note, skipped_note, try_downloads
from idgnn.experiments.spec import dataset_of
from idgnn.graphs.catalog import CATALOG, find
from idgnn.graphs.raw_files import expected


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    for name in ("IDGNN_DATA", "IDGNN_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    return tmp_path / "IDGNN_DATA"


def specs(*tables):
    return Choice(tables, protocols=("text", "released"), seeds=(0,)).specs()


def test_every_run_of_the_paper_reads_a_known_dataset_or_none():
    assert {dataset_of(spec.job) for spec in specs("table1")} == {None}
    assert {dataset_of(spec.job) for spec in specs("table4", "memory")} == {"ENZYMES", "CiteSeer"}
    every = {dataset_of(spec.job) for spec in specs()} - {None}
    assert every == set(CATALOG) - {"COX2"}


def test_generated_datasets_are_never_missing_and_files_are_found_by_name(nothing_here):
    assert set(missing_datasets(specs("table2"))) == {"ENZYMES", "PROTEINS", "ba", "ws", "ba500", "ws500"}
    for name in expected(find("ENZYMES")):
        (nothing_here / name).parent.mkdir(parents=True, exist_ok=True)
        (nothing_here / name).touch()
    assert "ENZYMES" not in missing_datasets(specs("table2"))


def test_failed_downloads_have_a_reason_and_a_remedy(nothing_here):
    reasons = try_downloads(["ENZYMES", "ba"])
    assert list(reasons) == ["ENZYMES", "ba"] and "refused" in reasons["ENZYMES"]
    said = skipped_note(reasons, 12)
    assert all(word in said for word in ("ENZYMES, ba", "12 runs", "IDGNN_DATA", "connect", str(nothing_here)))
    assert said.count(". ") == 0
    assert "ENZYMES could not be downloaded" in said and "no download is offered for ba," in said
    assert "connect to the internet for ENZYMES," in said
    alone = skipped_note({"counting": "no download is offered"}, 1)
    assert "no download is offered for counting" in alone and "connect" not in alone and "could not" not in alone
    assert try_downloads([]) == {}


def test_a_download_is_announced_only_if_there_is_one():
    assert missing_note(["ENZYMES"]) == "Missing, so downloaded first if possible: ENZYMES."
    assert missing_note(["zinc", "graph8c"]) == "Missing, and no download is offered: zinc, graph8c."
    both = missing_note(["zinc", "ENZYMES"])
    assert both == f"{missing_note(['ENZYMES'])} {missing_note(['zinc'])}"


def test_missing_datasets_needs_no_torch():
    code = (
        "import sys; from idgnn.experiments.grid import Choice; "
        "from idgnn.experiments.missing_data import missing_datasets; "
        "missing_datasets(Choice().specs()); print('torch' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "False"
