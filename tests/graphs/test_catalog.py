import subprocess
import sys

import pytest

from idgnn.graphs.catalog import CATALOG, NAMES, find
from idgnn.graphs.raw_files import expected


def test_names_are_found_in_any_case() -> None:
    for name in NAMES:
        assert find(name.upper()) == find(name.lower()) == CATALOG[name]


def test_an_unknown_name_is_answered_with_close_names_and_all_names() -> None:
    with pytest.raises(
        ValueError, match=r"no dataset 'ENZYME'. Did you mean ENZYMES\? Expected one of ScaleFree, .*ws500"
    ):
        find("ENZYME")


def test_every_dataset_with_files_has_their_checksums_and_the_others_none() -> None:
    for entry in CATALOG.values():
        assert bool(expected(entry)) == (entry.folder is not None)


def test_the_list_of_datasets_needs_no_torch() -> None:
    code = "import sys, idgnn.graphs.catalog, idgnn.graphs.raw_files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
