"""Features from files with the mean and the deviation of the training part, and the same for other files."""

import json

import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.schema import Schema, fit_standardization, standardize
from idgnn.graphs.sources import FileSource
from tests.graphs.files.written import write


def written(folder, nodes: str) -> FileSource:
    edges = write(folder / "edges.csv", "source,target,length\n1,2,5\n2,3,7\n")
    return FileSource(edges, write(folder / "nodes.csv", nodes))


def test_the_training_part_has_mean_0_and_deviation_1_and_categories_stay(tmp_path):
    dataset = read_files(written(tmp_path, "id,size,color,same\n1,10,red,4\n2,20,blue,4\n3,60,red,4\n"))
    [graph] = dataset.graphs
    schema = fit_standardization(dataset.schema, graph.x[:2], graph.edge_attr)
    x = standardize(schema.node, graph.x)
    # The first two rows are the training part: sizes 10 and 20 have the mean 15 and the deviation 5.
    assert x[:, 0].tolist() == [-1, 1, 9]
    assert x[:, 1:3].tolist() == [[0, 1], [1, 0], [0, 1]]
    assert x[:, 3].tolist() == [0, 0, 0]
    lengths = graph.edge_attr[:, 0]
    expected = (lengths - 6) / 1  # 5, 7, and the same backward
    assert torch.equal(standardize(schema.edge, graph.edge_attr)[:, 0], expected)


def test_other_files_are_read_as_the_first_were(tmp_path):
    first = read_files(written(tmp_path, "id,size\n1,10\n2,20\n3,60\n"))
    fitted = fit_standardization(first.schema, first.graphs[0].x, first.graphs[0].edge_attr)
    schema = Schema.from_dict(json.loads(json.dumps(fitted.as_dict())))
    again = read_files(written(tmp_path, "id,size\n1,10\n2,20\n3,60\n"), schema)
    assert torch.equal(standardize(schema.node, first.graphs[0].x), again.graphs[0].x)
    other = read_files(written(tmp_path, "id,size\n1,30\n2,30\n3,30\n"), schema)  # the mean of the first
    assert torch.allclose(other.graphs[0].x, torch.zeros(3, 1), atol=1e-6)
