"""What nodes are given that have no features of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree

from idgnn.choices import FeatureName, TaskName
from idgnn.graphs.dataset import Dataset, checksum
from idgnn.identity.adjacency import inverse
from idgnn.identity.cycle_features import cycle_features
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings

COUNTS = 10  # closed walks of length 1 to 10, as ID-GNN-Fast counts them
MOST_ONE_HOT = 4096  # nodes: their features take 64 MiB
MOST_EMBEDDED = 2**24  # up to here float32, in which features are held, has every whole number
_FROM_STRUCTURE: tuple[TaskName, ...] = (
    "node-clustering",
    "node-counting",
    "shortest-path",
    "graph-clustering",
    "graph-counting",
)
_KNOWN_NODES = (
    "there is one graph, of which training sees all nodes. The run knows these nodes only; --features degree makes a "
    "run for new graphs"
)


@dataclass(frozen=True)
class NodeFeatures:
    """The features that nodes were given, as they are kept with a run."""

    kind: FeatureName = "constant"
    reason: str = ""
    """Why `auto` took them; empty if the user did, or if the graphs have features."""
    nodes: str | None = None
    """Of one-hot numbers and embeddings, which are of certain nodes: a checksum of their names in alphabetical order,
    or of a graph without names."""
    number: int | None = None
    """How many nodes these are."""
    names: tuple[str, ...] | None = None
    """Their names in alphabetical order, if they have any and are at most :data:`MOST_ONE_HOT`."""

    as_dict = asdict

    def __post_init__(self) -> None:
        if self.names is not None:  # JSON has lists
            object.__setattr__(self, "names", tuple(self.names))

    @property
    def num_embeddings(self) -> int | None:
        """How many nodes have learned vectors."""
        return self.number if self.kind == "embedding" else None

    def of(self, part: QuerySet, number: Tensor | None = None) -> Tensor:
        """The features of all nodes of a part `[nodes, channels]`, from the edges that carry its messages alone.

        Edges that are predicted are not among these. `number` `[nodes]` is what :meth:`numbers` gave.
        """
        num_nodes, edge_index = part.x.size(0), part.edge_index
        if self.kind == "degree":  # in and out
            return torch.stack([degree(end, num_nodes).log1p() for end in edge_index.flip(0)], dim=1)
        if self.kind == "counts":
            return cycle_features(edge_index, num_nodes, COUNTS, "log").float()
        if number is not None:
            return torch.eye(num_nodes)[number] if self.kind == "onehot" else number.unsqueeze(1).float()
        return part.x

    def numbers(self, graphs: Sequence[Data]) -> Tensor | None:
        """The numbers `[nodes]` by which nodes have weights of their own, if they have; refuses other nodes.

        Nodes are numbered in the alphabetical order of their names, so that a file may list them in any order. Nodes
        without names, or with names that several have, are known by their edges alone.
        """
        if self.nodes is None:
            return None
        number, known = _numbered(graphs[0]) if len(graphs) == 1 else (None, None)
        if known != self.nodes:
            raise ValueError(
                f"the network was trained with --features {self.kind}: it has weights of their own for the "
                f"{self.number:,} nodes of its graph, and was given {self._difference(graphs)}. Give the full node "
                "table, with all nodes of the training graph and no others. To use a network on other graphs, train it "
                "with --features degree or counts."
            )
        return number

    def _difference(self, graphs: Sequence[Data]) -> str:
        """How other graphs differ from the nodes of training, with a name of one where there is one."""
        if len(graphs) != 1:
            return f"{len(graphs)} graphs"
        given = _names(graphs[0])
        if self.names is None or given is None:
            return f"{graphs[0].num_nodes or 0:,} other nodes, or nodes without names in another order"
        missing, new = sorted(set(self.names) - set(given)), sorted(set(given) - set(self.names))
        without = [f"without {len(missing):,} of them ({missing[0]!r} is missing)"] if missing else []
        with_new = [f"with {len(new):,} that it does not know ({new[0]!r} is new)"] if new else []
        return f"a graph {' and '.join([*without, *with_new])}"


def lack_features(graphs: Sequence[Data]) -> bool:
    """Whether no node has features: there is no `x`, or it is 1 everywhere, as graphs of files without columns have it.

    Example:
        >>> lack_features([Data(num_nodes=2), Data(x=torch.ones(3, 1))]), lack_features([Data(x=torch.rand(3, 1))])
        (True, False)
    """
    return all(graph.x is None or (graph.x[:1].numel() <= 1 and bool((graph.x == 1).all())) for graph in graphs)


def choose_features(settings: TaskSettings, dataset: Dataset) -> NodeFeatures:
    """The features that the settings name, or for `auto` the choice and its reason.

    One-hot numbers and embeddings are weights for each node. They need a single graph, of which training sees all
    nodes, and are no use on another one.
    """
    graphs, kind = dataset.graphs, settings.features
    # A column of files is a feature also where it is 1 everywhere, as a column of one category is.
    lacking = lack_features(graphs) if dataset.schema is None else not dataset.schema.node
    if kind == "auto":
        return _automatic(settings, graphs) if lacking else NodeFeatures()
    if kind != "constant" and not lacking:
        raise ValueError(
            f"features is {kind!r}, which is for graphs without features, but these have "
            f"{next(graph.x for graph in graphs if graph.x is not None)[:1].numel()} for each node. Leave it out, or "
            "leave the columns out (--ignore)."
        )
    return _of_kind(kind, graphs)


def _automatic(settings: TaskSettings, graphs: Sequence[Data]) -> NodeFeatures:
    if settings.name in _FROM_STRUCTURE:
        return NodeFeatures("constant", "labels are computed from the structure alone")
    if len(graphs) > 1:
        return NodeFeatures("degree", "nodes of different graphs have nothing else in common")
    if settings.name == "link-prediction":
        return NodeFeatures("degree", "links of new nodes can be predicted with it")
    number = graphs[0].num_nodes or 0
    if number <= MOST_ONE_HOT:
        return replace(_of_kind("onehot", graphs), reason=_KNOWN_NODES)
    if number <= MOST_EMBEDDED:
        reason = f"the nodes are more than {MOST_ONE_HOT:,}, and {_KNOWN_NODES}"
        return replace(_of_kind("embedding", graphs), reason=reason)
    return NodeFeatures("degree", f"the graph has more than {MOST_EMBEDDED:,} nodes")


def _of_kind(kind: FeatureName, graphs: Sequence[Data]) -> NodeFeatures:
    if kind not in ("onehot", "embedding"):
        return NodeFeatures(kind)
    if len(graphs) != 1:
        raise ValueError(
            f"features is {kind!r}, weights for each node, which a network can learn if there is one graph, but there "
            f"are {len(graphs)}. Use degree or counts."
        )
    number, most = graphs[0].num_nodes or 0, MOST_ONE_HOT if kind == "onehot" else MOST_EMBEDDED
    if number > most:
        raise ValueError(
            f"features is {kind!r}, but the graph has {number:,} nodes, and at most {most:,} can be coded so. Use "
            f"{'embedding' if number <= MOST_EMBEDDED else 'degree'}."
        )
    names = _names(graphs[0]) if number <= MOST_ONE_HOT else None
    known = None if names is None else tuple(sorted(names))
    return NodeFeatures(kind, nodes=_numbered(graphs[0])[1], number=number, names=known)


def _names(graph: Data) -> Sequence[str] | None:
    """The names of the nodes, if each has its own."""
    names = graph.get("node_name")
    return None if names is None or len(set(names)) < (graph.num_nodes or 0) else names


def _numbered(graph: Data) -> tuple[Tensor, str]:
    """The number of each node `[nodes]`, and a checksum of the names in order, or without names of the edges."""
    names, size = _names(graph), graph.num_nodes or 0
    if names is None:
        return torch.arange(size), checksum([Data(edge_index=graph.edge_index, num_nodes=size)])
    order = sorted(range(size), key=names.__getitem__)
    number = inverse(torch.tensor(order, dtype=torch.long))
    return number, hashlib.sha256("\0".join(names[node] for node in order).encode()).hexdigest()


def give_features(features: NodeFeatures, parts: Mapping[str, QuerySet], graphs: Sequence[Data]) -> dict[str, QuerySet]:
    """The parts of these graphs with these features; parts that share a graph share its features."""
    if features.kind == "constant":
        return dict(parts)
    number = features.numbers(graphs)
    made: dict[tuple[int, int], Tensor] = {}
    found = {}
    for name, part in parts.items():
        key = (id(part.x), id(part.edge_index))
        if key not in made:
            made[key] = features.of(part, number)
        found[name] = replace(part, x=made[key])
    return found
