"""The benchmark datasets as graphs: files verified, read by PyG's readers, and kept in the cache in processed form."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_planetoid_data, read_tu_data
from torch_geometric.utils import to_undirected

from idgnn.graphs.cache import cache_key, cached
from idgnn.graphs.catalog import Entry
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.download import ensure
from idgnn.graphs.molhiv import read_molhiv, read_molhiv_split
from idgnn.graphs.raw_files import RawFiles


def benchmark(entry: Entry, verify: bool = True) -> Dataset:
    """A dataset that is read from files, wherever they are found.

    TU sets: `x` is the one-hot node label (no continuous attributes), `edge_attr` the one-hot edge label where there is
    one, `y` `[1]` the class. Cora, CiteSeer: `x` the 0/1 features, `y` `[num_nodes]` the classes, and the public split
    as `train_mask`, `val_mask`, `test_mask`. ogbg-molhiv: see :func:`~idgnn.graphs.molhiv.read_molhiv`. The released
    synthetic graphs: `x` is ones `[num_nodes, 1]`.
    """
    files = ensure(entry)
    checksums = files.checksums()
    _refuse_others(entry, files, checksums, verify)
    folder = files.root / str(entry.folder)

    def read() -> list[Data]:
        match entry.group:
            case "tu":
                return _read_tu(folder, entry.name)
            case "planetoid":
                return [_read_planetoid(folder, entry.name)]
            case "molhiv":
                return read_molhiv(folder)
            case _:
                return _read_released(folder / "synthetic_graphs.npz", entry.name)

    graphs = cached(cache_key(entry.name, *sorted(checksums.items())), read)
    split = read_molhiv_split(folder) if entry.group == "molhiv" else {}
    return Dataset(entry.name, graphs, provided_split=split)


def _refuse_others(entry: Entry, files: RawFiles, checksums: dict[str, str], verify: bool) -> None:
    """Refuses files that are not those expected; pickles always, because to read one is to run it."""
    wrong = [each for each in checksums if checksums[each] != files.expected[each]]
    if not wrong or (not verify and entry.group != "planetoid"):
        return
    if entry.group == "planetoid":
        way_out = "These files are Python pickles, which can run code when they are read, so others are never accepted"
    else:
        way_out = "To use them all the same, pass verify=False"
    raise ValueError(
        f"{len(wrong)} of the files of {entry.name} in {files.root} are not the expected ones: {', '.join(wrong)} "
        f"(their SHA-256 differs). Delete them, so that they are downloaded again, or set IDGNN_DATA to a folder with "
        f"the right ones. {way_out}."
    )


def _read_tu(folder: Path, name: str) -> list[Data]:
    whole, slices, sizes = read_tu_data(str(folder), name)
    assert whole.x is not None and whole.edge_index is not None and isinstance(whole.y, torch.Tensor)
    x = whole.x[:, sizes["num_node_attributes"] :].split(slices["x"].diff().tolist())
    edge_index = whole.edge_index.split(slices["edge_index"].diff().tolist(), dim=1)
    graphs = [Data(x=x[i], edge_index=edge_index[i].contiguous(), y=whole.y[i : i + 1]) for i in range(whole.y.numel())]
    if whole.edge_attr is not None:
        attributes = whole.edge_attr.split(slices["edge_attr"].diff().tolist())
        for graph, edge_attr in zip(graphs, attributes, strict=True):
            graph.edge_attr = edge_attr
    return graphs


def _read_planetoid(folder: Path, name: str) -> Data:
    try:
        import scipy.sparse  # noqa: F401, the pickles hold scipy matrices
    except ImportError as error:
        raise ValueError(
            f"the files of {name} hold scipy matrices, and scipy is not installed. It is needed once, to read them: "
            "pip install scipy."
        ) from error
    with warnings.catch_warnings():
        # The pickles are of 2016: numpy and scipy have since moved what they name.
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", "dtype\\(\\): align should be passed")
        return read_planetoid_data(str(folder), name.lower())


def _read_released(path: Path, name: str) -> list[Data]:
    """The authors' synthetic graphs: undirected edges, each once, the graphs one after another."""
    with np.load(path, allow_pickle=False) as arrays:
        num_nodes = arrays[f"{name}_num_nodes"].tolist()
        ptr = torch.from_numpy(arrays[f"{name}_edge_ptr"].astype(np.int64))
        edges = torch.from_numpy(arrays[f"{name}_edges"].astype(np.int64))
    return [
        Data(x=torch.ones(nodes, 1), edge_index=to_undirected(each.t().contiguous(), num_nodes=nodes))
        for nodes, each in zip(num_nodes, edges.split(ptr.diff().tolist()), strict=True)
    ]
