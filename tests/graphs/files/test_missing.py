"""Numbers that are not there."""

import statistics

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
    with pytest.raises(BadRows, match=r"n.csv:3: column 'age' is 'NA', expected a finite number; --missing says"):
        read_files(source(tmp_path, "error"))


AGE = torch.tensor([1.0, 0, 5, 0])
LACKS = torch.tensor([0.0, 1, 0, 1])


@pytest.mark.parametrize("missing", ["zero", "mean", "indicator"])
def test_they_are_replaced_where_the_training_part_is_known(tmp_path, missing):
    dataset = read_files(source(tmp_path, missing))
    x = dataset.graphs[0].x
    assert torch.isfinite(x).all()
    train = torch.tensor([0, 1, 2])
    schema = fit_standardization(dataset.schema, x[train], None)
    known = [1, 0, 5] if missing == "zero" else [1, 5]
    mean, scale = statistics.mean(known), statistics.pstdev(known)
    assert (schema.node[0].mean, schema.node[0].scale) == (pytest.approx(mean), pytest.approx(scale))

    standard = standardize(schema.node, x)
    filled = AGE if missing == "zero" else torch.where(LACKS > 0, mean, AGE)
    torch.testing.assert_close(standard[:, 0], (filled - mean) / scale)
    assert standard.size(1) == sum(column.width for column in schema.node) == 5 + (missing == "indicator")
    if missing == "indicator":
        assert torch.equal(standard[:, 1], LACKS)
    torch.testing.assert_close(standard[:, -4], (torch.tensor([5.0, 6, 7, 8]) - 6) / statistics.pstdev([5, 6, 7]))
    # New files are read as the old ones were, at once.
    torch.testing.assert_close(read_files(source(tmp_path, "error"), schema).graphs[0].x, standard)


def test_the_training_says_what_becomes_of_them_in_new_files(tmp_path):
    complete = FileSource(
        write(tmp_path / "e.csv", "source,target,km\na,b,1\n"), write(tmp_path / "n.csv", "id,age\na,1\nb,2\n")
    )
    schema = read_files(complete).schema
    write(complete.edges, "source,target,km\na,b,\n")
    write(complete.nodes, "id,age\na,1\nb,NA\n")
    with pytest.raises(BadRows) as refused:
        read_files(complete, schema)
    advice = "expected a finite number; fill it in, or train the network with --missing mean (or zero, indicator)"
    what = {row.path.name: row.what for row in refused.value.rows}
    assert what == {"n.csv": f"column 'age' is 'NA', {advice}", "e.csv": f"column 'km' is '', {advice}"}
