"""The datasets that can be loaded by name, and facts about each that need no loading. Imports no PyTorch."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from idgnn.choices import TaskName

# Labels of these come from the structure, so every dataset of many graphs has them. But in molecules hardly any node is
# part of a triangle, and all clustering coefficients fall into one bin.
_PAIRS: tuple[TaskName, ...] = ("shortest-path", "link-prediction")
_STRUCTURE: tuple[TaskName, ...] = ("node-clustering", "graph-clustering", *_PAIRS)

_TU = "Morris et al., TUDataset: A collection of benchmark datasets for learning with graphs, 2020"
_PLANETOID = "Yang, Cohen, Salakhutdinov, Revisiting semi-supervised learning with graph embeddings, ICML 2016"
_FOLDS = "Zhang, Cui, Neumann, Chen, An end-to-end deep learning architecture for graph classification, AAAI 2018"
_IDGNN = "You, Gomes-Selman, Ying, Leskovec, Identity-aware graph neural networks, AAAI 2021"
_HOLME_KIM = "Holme, Kim, Growing scale-free networks with tunable clustering, Phys. Rev. E 65, 2002"
_CHEN = "Chen, Chen, Villar, Bruna, Can graph neural networks count substructures?, NeurIPS 2020"
_ZINC = "Irwin et al., ZINC, J. Chem. Inf. Model. 52, 2012; Dwivedi et al., Benchmarking graph neural networks, 2020"
_GRAPH8C = "McKay, Piperno, Practical graph isomorphism II, 2014; Balcilar et al., Breaking the limits, ICML 2021"
_WATTS_STROGATZ = "Watts, Strogatz, Collective dynamics of small-world networks, Nature 393, 1998"


@dataclass(frozen=True)
class CatalogEntry:
    """One dataset: a row of what `idgnn data list` prints."""

    name: str
    kind: Literal["generated", "many graphs", "one graph"]
    num_graphs: int
    tasks: tuple[TaskName, ...]
    """The tasks that it has labels for."""
    source: str
    citation: str
    folder: str | None = None
    """The folder of its raw files below that of all datasets; `None` for generated datasets."""
    group: Literal["synthetic", "tu", "planetoid", "molhiv", "released", "folds", "counting", "zinc", "graph6"] = (
        "synthetic"
    )
    """Which reader reads it."""


def _tu(name: str, num_graphs: int, structure: tuple[TaskName, ...]) -> CatalogEntry:
    source = f"https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip"
    tasks: tuple[TaskName, ...] = ("graph-classification", *structure)
    return CatalogEntry(name, "many graphs", num_graphs, tasks, source, _TU, f"TUDataset/{name}/raw", "tu")


def _planetoid(name: str) -> CatalogEntry:
    source = "https://github.com/kimiyoung/planetoid/raw/master/data"
    tasks: tuple[TaskName, ...] = ("node-classification", "link-prediction")
    return CatalogEntry(name, "one graph", 1, tasks, source, _PLANETOID, f"Planetoid/{name}/raw", "planetoid")


def _folds(name: str, num_graphs: int, structure: tuple[TaskName, ...]) -> CatalogEntry:
    """A dataset in the order and with the 10 folds that PPGN, IGN and GSN report on.

    Its name ends in `-folds`: MUTAG and PTC are in another order than in TUDataset, and PTC has its hydrogens.
    """
    source = f"https://github.com/muhanzhang/pytorch_DGCNN/raw/master/data/{name}"
    tasks: tuple[TaskName, ...] = ("graph-classification", *structure)
    return CatalogEntry(f"{name}-folds", "many graphs", num_graphs, tasks, source, _FOLDS, f"TU_10fold/{name}", "folds")


def _released(name: str, num_graphs: int) -> CatalogEntry:
    source = "the authors' own graphs, as arrays in GraphGym_IDGNN/synthetic_graphs.npz"
    return CatalogEntry(name, "many graphs", num_graphs, _STRUCTURE, source, _IDGNN, "GraphGym_IDGNN", "released")


CATALOG: dict[str, CatalogEntry] = {
    entry.name: entry
    for entry in (
        CatalogEntry("ScaleFree", "generated", 256, _STRUCTURE, "generated: Holme-Kim, m = 2", _HOLME_KIM),
        CatalogEntry("SmallWorld", "generated", 256, _STRUCTURE, "generated: Watts-Strogatz, k = 4", _WATTS_STROGATZ),
        _tu("ENZYMES", 600, _STRUCTURE),
        _tu("PROTEINS", 1113, _STRUCTURE),
        _tu("BZR", 405, _PAIRS),
        _tu("COX2", 467, _PAIRS),
        _tu("MUTAG", 188, _PAIRS),
        _tu("PTC_MR", 344, _PAIRS),
        _folds("MUTAG", 188, _PAIRS),
        _folds("PTC", 344, _PAIRS),
        _folds("PROTEINS", 1113, _STRUCTURE),
        _planetoid("Cora"),
        _planetoid("CiteSeer"),
        CatalogEntry(
            "ogbg-molhiv",
            "many graphs",
            41127,
            ("graph-classification",),
            "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/hiv.zip",
            "Hu et al., Open Graph Benchmark, NeurIPS 2020; Wu et al., MoleculeNet, Chem. Sci. 9, 2018",
            "ogbg_molhiv",
            "molhiv",
        ),
        _released("ba", 100),
        _released("ws", 100),
        _released("ba500", 500),
        _released("ws500", 500),
        CatalogEntry(
            "counting",
            "many graphs",
            5000,
            ("node-counting", "graph-counting"),
            "random regular graphs with edges removed, as arrays in expressive/counting/counting.npz",
            _CHEN,
            "expressive/counting",
            "counting",
        ),
        CatalogEntry(
            "zinc",
            "many graphs",
            12000,
            ("graph-regression",),
            "validation and test molecules of ZINC-12k and other training molecules, as arrays in expressive/zinc",
            _ZINC,
            "expressive/zinc",
            "zinc",
        ),
        CatalogEntry(
            "graph8c",
            "many graphs",
            11117,
            _STRUCTURE,
            "all connected graphs with 8 nodes, in expressive/graph8c/graph8c.g6",
            _GRAPH8C,
            "expressive/graph8c",
            "graph6",
        ),
    )
}

NAMES: tuple[str, ...] = tuple(CATALOG)


def find(name: str) -> CatalogEntry:
    """The entry of a dataset, by its name in upper or lower case.

    Example:
        >>> find("enzymes").num_graphs
        600
    """
    known = {each.lower(): entry for each, entry in CATALOG.items()}
    if name.lower() in known:
        return known[name.lower()]
    close = difflib.get_close_matches(name.lower(), known, n=3)
    guess = f" Did you mean {' or '.join(known[each].name for each in close)}?" if close else ""
    raise ValueError(f"there is no dataset {name!r}.{guess} Expected one of {', '.join(NAMES)}.")
