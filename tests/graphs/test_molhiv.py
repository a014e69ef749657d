import gzip
from pathlib import Path

import pytest
import torch

from idgnn.graphs.load import read_molhiv, read_molhiv_split

# Two molecules: three atoms in a row, and a single atom without a bond.
FILES = {
    "raw/num-node-list": "3\n1\n",
    "raw/num-edge-list": "2\n0\n",
    "raw/node-feat": "5,0,4,5,3,0,2,0,0\n118,4,11,11,9,5,5,1,1\n7,0,2,5,0,0,1,0,1\n0,0,0,0,0,0,0,0,0\n",
    "raw/edge": "0,1\n1,2\n",
    "raw/edge-feat": "0,0,0\n4,5,1\n",
    "raw/graph-label": "1\n0\n",
    "split/scaffold/train": "1\n",
    "split/scaffold/valid": "0\n",
    "split/scaffold/test": "",
}


def write(folder: Path, name: str, text: str) -> None:
    path = folder / f"{name}.csv.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(tmp_path, name, text)
    return tmp_path


def test_atoms_and_bonds_become_one_hot_and_two_way(folder: Path) -> None:
    row, single = read_molhiv(folder)
    assert row.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert [each.nonzero().flatten().tolist() for each in row.edge_attr] == [[0, 5, 11]] * 2 + [[4, 10, 12]] * 2
    assert row.x.shape == (3, 174) and row.x.dtype == torch.bool
    assert row.x[1].nonzero().flatten().tolist() == [118, 123, 135, 147, 157, 163, 169, 171, 173]
    assert row.x[0].nonzero().flatten().tolist() == [5, 119, 128, 141, 151, 158, 166, 170, 172]
    assert single.num_nodes == 1 and single.edge_index.shape == (2, 0) and single.edge_attr.shape == (0, 13)
    assert row.y.tolist() == [1] and single.y.tolist() == [0]
    split = {part: ids.tolist() for part, ids in read_molhiv_split(folder).items()}
    assert split == {"train": [1], "valid": [0], "test": []}


def test_values_that_ogb_does_not_have_are_refused(folder: Path) -> None:
    write(folder, "raw/edge-feat", "0,0,0\n5,0,0\n")
    with pytest.raises(ValueError, match=r"values up to \[5, 0, 0\], expected less than \[5, 6, 2\]"):
        read_molhiv(folder)
