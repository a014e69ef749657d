import json

import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.files.standardize import standardized
from idgnn.graphs.schema import Schema
from idgnn.graphs.settings import FileSource


def written(folder, nodes: str, edges: str = "a,b,length\n1,2,5\n2,3,7\n") -> FileSource:
    (folder / "edges.csv").write_text(edges.replace("a,b", "source,target"))
    (folder / "nodes.csv").write_text(nodes)
    return FileSource(folder / "edges.csv", folder / "nodes.csv")


def test_numbers_have_mean_0_and_deviation_1_and_categories_stay(tmp_path):
    source = written(tmp_path, "id,size,color,same\n1,10,red,4\n2,20,blue,4\n3,60,red,4\n")
    graph = standardized(read_files(source)).graphs[0]
    size, color, same = graph.x[:, 0], graph.x[:, 1:3], graph.x[:, 3]
    assert torch.allclose(size.mean(), torch.tensor(0.0), atol=1e-6)
    assert torch.allclose(size.std(correction=0), torch.tensor(1.0))
    assert color.tolist() == [[0, 1], [1, 0], [0, 1]]
    assert same.tolist() == [0, 0, 0]
    assert torch.allclose(graph.edge_attr.std(correction=0), torch.tensor(1.0))


def test_other_files_are_read_as_the_first_were(tmp_path):
    first = standardized(read_files(written(tmp_path, "id,size\n1,10\n2,20\n3,60\n")))
    schema = Schema.from_dict(json.loads(json.dumps(first.schema.as_dict())))
    again = read_files(written(tmp_path, "id,size\n1,10\n2,20\n3,60\n"), schema)
    assert torch.equal(first.graphs[0].x, again.graphs[0].x)
    other = read_files(written(tmp_path, "id,size\n1,30\n2,30\n3,30\n"), schema)  # the mean of the first
    assert torch.allclose(other.graphs[0].x, torch.zeros(3, 1), atol=1e-6)
