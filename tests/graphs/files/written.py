"""Short files for the tests, and the graphs that are read from them in a form that can be written down."""

import gzip
from pathlib import Path

from torch_geometric.data import Data

from idgnn.graphs.files.read import read_files
from idgnn.graphs.sources import FileSource


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def only(source: FileSource) -> Data:
    [graph] = read_files(source).graphs
    return graph


def named_edges(graph: Data) -> list[tuple[str, str]]:
    assert graph.edge_index is not None
    return [(graph.node_name[u], graph.node_name[v]) for u, v in graph.edge_index.t().tolist()]
