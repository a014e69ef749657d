"""Numbers that are not there."""

import math

import pytest
import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.files.text import BadRows
from idgnn.graphs.schema import fit_standardization, standardize
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import write


def source(tmp_path, missing):
    edges = write(tmp_path / "e.csv", "source,target\na,b\nb,c\nc,d\n")
    nodes = write(tmp_path / "n.csv", "id,age,size,color\na,1,5,red\nb,NA,6,\nc,5,7,red\nd,,8,blue\n")
    return FileSource(edges, nodes, missing=missing)


def test_by_default_they_are_bad_rows(tmp_path):
    with pytest.raises(BadRows, match=r"n.csv:3: column 'age' is 'NA', expected a finite number"):
        read_files(source(tmp_path, "error"))


@pytest.mark.parametrize(
    ("missing", "age"),
    {
        "zero": ([1, 0, 5, 0],),
        "mean": ([1, math.nan, 5, math.nan],),
        "indicator": ([1, math.nan, 5, math.nan], [0, 1, 0, 1]),
    }.items(),
)
def test_they_are_replaced_where_the_training_part_is_known(tmp_path, missing, age):
    dataset = read_files(source(tmp_path, missing))
    x = dataset.graphs[0].x
    expected = torch.tensor([*age, [5, 6, 7, 8]]).float().t()
    assert x.size(1) == expected.size(1) + 3  # colors, one of which is empty
    torch.testing.assert_close(x[:, : expected.size(1)], expected, equal_nan=True)

    train = torch.tensor([0, 1, 2])
    schema = fit_standardization(dataset.schema, x[train], None)
    known = torch.tensor(age[0])[train]
    known = known[~known.isnan()].double()
    assert schema.node[0].mean == pytest.approx(known.mean().item())
    assert schema.node[0].scale == pytest.approx(known.std(correction=0).item())
    standard = standardize(schema.node, x)
    filled = torch.tensor(age[0]).double().nan_to_num(nan=known.mean().item())
    torch.testing.assert_close(standard[:, 0], ((filled - known.mean()) / known.std(correction=0)).float())
    if missing == "indicator":
        assert standard[:, 1].tolist() == age[1]
    # New files are read as the old ones were, at once.
    torch.testing.assert_close(read_files(source(tmp_path, "error"), schema).graphs[0].x, standard)
