"""What a model is called with: which arguments are per node and which per edge, and their values on other rows."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.utils import is_sparse

from idgnn.identity.checks import check_edge_index, check_features, check_one_per_edge
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.layers.wrapping.examine import close
from idgnn.layers.wrapping.plan import Plan

ArgumentRole = Literal["node", "edge", "shared"]

# PyG's own names. All other arguments are tried out.
_NAMED: dict[str, ArgumentRole] = {
    "x": "node",
    "pos": "node",
    "batch": "node",
    "normal": "node",
    "node_type": "node",
    "edge_attr": "edge",
    "edge_weight": "edge",
    "edge_type": "edge",
}
# What PyG's ready models take to trim a sampled batch.
_SAMPLED = ("num_sampled_nodes_per_hop", "num_sampled_edges_per_hop")
# Numbers that describe the data. All others may be a number of rounds.
_SIZES = ("num_nodes", "batch_size", "num_graphs", "dim_size")


@dataclass(frozen=True)
class ModelCall:
    """The arguments of one call of a model, with their names as far as the model tells them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    names: tuple[str, ...]  # of `args`; the n-th one without a name is "argument n"
    x: Tensor
    edge_index: Tensor

    @staticmethod
    def of(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> ModelCall:
        """Finds `x` and `edge_index`: by name, else in PyG's order, else as attributes of a `Data`."""
        args = tuple(value.as_tensor() if isinstance(value, EdgeIndex) else value for value in args)
        kwargs = {key: value.as_tensor() if isinstance(value, EdgeIndex) else value for key, value in kwargs.items()}
        positional = [
            parameter.name
            for parameter in inspect.signature(module.forward).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        names = tuple(positional[i] if i < len(positional) else f"argument {i + 1}" for i in range(len(args)))
        named = dict(zip(names, args, strict=True)) | kwargs
        data = next((value for value in (*args, *kwargs.values()) if isinstance(value, Data)), None)
        if data is not None:
            x, edge_index = data.x, data.edge_index
        else:
            x = named.get("x", args[0] if args else None)
            edge_index = named.get("edge_index", args[1] if len(args) > 1 else None)
        if isinstance(x, Tensor) and x is edge_index:
            raise ValueError(
                f"{type(module).__name__} takes no features. What it keeps for each node has to be an argument, to be "
                "carried over to the identity graph: write it so that it is called as model(x, edge_index, ...)."
            )
        if not isinstance(x, Tensor) or x.dim() == 0:
            raise ValueError(
                f"{type(module).__name__} was called with x of type {type(x).__name__}, expected a tensor with one row "
                "per node. Call it as model(x, edge_index, ...), or with a PyG Data that has both."
            )
        if not isinstance(edge_index, Tensor) or is_sparse(edge_index):
            raise ValueError(
                f"{type(module).__name__} was called with edge_index of type {type(edge_index).__name__}, expected a "
                "[2, num_edges] tensor of node ids. A sparse matrix becomes one by torch_geometric.utils.to_edge_index."
            )
        return ModelCall(args, kwargs, names, x, edge_index)

    @property
    def num_nodes(self) -> int:
        """The number of nodes."""
        return self.x.size(0)

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.edge_index.size(1)

    @property
    def leaves(self) -> Iterator[tuple[str, Any]]:
        """All values with their names, those inside of containers and `Data` objects too."""
        yield from _leaves([*zip(self.names, self.args, strict=True), *self.kwargs.items()])

    @property
    def settings(self) -> str:
        """What the number of rounds may depend on: the arguments that are no tensors, and which tensors are given."""
        named = (*zip(self.names, self.args, strict=True), *self.kwargs.items())
        numbers = [(n, v) for n, v in named if isinstance(v, bool | int | float | str) and n not in _SIZES]
        return repr((numbers, [name for name, value in self.leaves if isinstance(value, Tensor)]))

    def check(self) -> None:
        """Refuses features and edges that do not fit together."""
        check_features(self.x, self.num_nodes)
        check_edge_index(self.edge_index, self.num_nodes)
        for name, value in self.leaves:
            if name in ("edge_attr", "edge_weight") and isinstance(value, Tensor):
                check_one_per_edge(value, self.num_edges, name)

    def map(self, change: Callable[[str, Any], Any]) -> ModelCall:
        """The call with every value changed, with its name at hand; those inside of containers and `Data` too."""
        found = {"x": self.x, "edge_index": self.edge_index}

        def inside(name: str, value: Any) -> Any:
            if isinstance(value, Data):
                changed = copy.copy(value)
                for key in value.to_dict():
                    if key == "ptr":
                        del changed.ptr  # the rows of one graph do not lie side by side
                    else:
                        changed[key] = inside(key, value[key])
                return changed
            if isinstance(value, dict):
                return {key: inside(f"{name}[{key!r}]", item) for key, item in value.items()}
            if type(value) in (tuple, list) and name != "size":
                return type(value)(inside(f"{name}[{i}]", item) for i, item in enumerate(value))
            changed = change(name, value)
            if value is self.x:
                found["x"] = changed
            elif value is self.edge_index:
                found["edge_index"] = changed
            return changed

        args = tuple(inside(name, value) for name, value in zip(self.names, self.args, strict=True))
        kwargs = {name: inside(name, value) for name, value in self.kwargs.items()}
        return ModelCall(args, kwargs, self.names, **found)

    def replaced(self, *, x: Tensor | None = None, edge_index: Tensor | None = None) -> ModelCall:
        """The same call on other states, or along other edges of the same nodes."""

        def change(_: str, value: Any) -> Any:
            if value is self.x and x is not None:
                return x
            return edge_index if value is self.edge_index and edge_index is not None else value

        return self.map(change)

    def fresh(self) -> ModelCall:
        """The same call on a copy of the states: reversible blocks free the memory of what they are given."""
        return self.replaced(x=self.x.clone())

    def double(self) -> ModelCall:
        """The same call in double precision."""
        return self.map(lambda _, value: tree_map(_double, value))


def _leaves(named: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in named:
        if isinstance(value, Data):
            yield from _leaves([(key, item) for key, item in value.to_dict().items() if key != "ptr"])
        elif isinstance(value, dict):
            yield from _leaves([(f"{name}[{key!r}]", item) for key, item in value.items()])
        elif type(value) in (tuple, list) and name != "size":
            yield from _leaves([(f"{name}[{i}]", item) for i, item in enumerate(value)])
        else:
            yield name, value


def _double(value: Any) -> Any:
    return value.double() if isinstance(value, Tensor) and value.is_floating_point() else value


class Roles:
    """Which arguments of a model have a row per node, which one per edge, and which are the same for all rows.

    By PyG's names where it has them, as the user says, or else by trying it out: an argument is per node if the output
    follows when the nodes and the rows of the argument are given in another order, and shared if it follows when those
    stay as they are.

    Args:
        said: The roles that the user names.
    """

    def __init__(self, said: dict[str, ArgumentRole]) -> None:
        self.said = said
        self.known: dict[str, ArgumentRole] = {}

    def of(self, name: str) -> ArgumentRole | None:
        """The role of an argument, `None` if it was not decided yet."""
        for said in (name, name.split("[")[0]):  # of a container all values may be meant
            if said in self.said:
                return self.said[said]
        return _NAMED[name] if name in _NAMED else self.known.get(name)

    def undecided(self, call: ModelCall) -> list[str]:
        """The names of the arguments that have to be tried out; that of others is not a question of the graph."""
        names = []
        for name, value in call.leaves:
            if not isinstance(value, Tensor) or value is call.x or value is call.edge_index or self.of(name):
                continue
            _refuse_edges(name, value)
            if value.dim() and value.size(0) in (call.num_nodes, call.num_edges):
                names.append(name)
            else:
                self.known[name] = "shared"
        return names

    def decide(self, call: ModelCall, names: list[str], run: Callable[[ModelCall], Any], title: str) -> None:
        """Tries out arguments. `run` must have no side effects."""
        values = dict(call.leaves)
        options = [_options(values[name], call) for name in names]
        reordered = _Reordered(call, draw=True)
        expected = _try(run, reordered.states)
        if expected is None:  # drawn states are not what it takes, categories for example
            reordered = _Reordered(call, draw=False)
            expected = _try(run, reordered.states)
        found: list[tuple[ArgumentRole, ...]] = []
        if expected is not None:
            known: dict[str, ArgumentRole] = {name: r for name, _ in call.leaves if (r := self.of(name)) is not None}
            for roles in product(*options):
                tried: dict[str, ArgumentRole] = dict(zip(names, roles, strict=True))
                output = _try(run, reordered.call({**known, **tried}))
                if output is not None and close(reordered.output(expected), output, digits=3 / 8):
                    found.append(roles)
        for i, name in enumerate(names):
            possible: set[ArgumentRole] = {roles[i] for roles in found}
            if len(possible) > 1 and _unused(run, reordered.states, name, expected):
                possible = {"shared"}
            if len(possible) != 1:
                shape = list(values[name].shape)
                raise ValueError(
                    f"{title} takes {name} {shape}, and its graph has {call.num_nodes} nodes and {call.num_edges} "
                    "edges. By trying it out it could not be decided whether it has a row per node, a row per edge, or "
                    f"is the same for all rows. Say it: identity_aware(module, per_node=[{name!r}]), or per_edge, or "
                    "shared."
                )
            self.known[name] = possible.pop()


def _options(value: Tensor, call: ModelCall) -> list[ArgumentRole]:
    options: list[ArgumentRole] = ["shared"]
    if value.size(0) == call.num_nodes:
        options.append("node")
    if value.size(0) == call.num_edges:
        options.append("edge")
    return options


class _Reordered:
    """A call with its nodes and edges in another order. Edges stay sorted by their targets if they are."""

    def __init__(self, call: ModelCall, draw: bool) -> None:
        generator = torch.Generator(device="cpu").manual_seed(0)
        device = call.x.device
        self.node = torch.randperm(call.num_nodes, generator=generator).to(device)
        place = torch.empty_like(self.node)
        place[self.node] = torch.arange(call.num_nodes, device=device)
        edges = place[call.edge_index.long()]
        self.edge = edges[1].argsort(stable=True)
        self.edges = edges[:, self.edge]

        def drawn(name: str, value: Any) -> Any:
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            return value + torch.randn(value.shape, generator=generator, dtype=torch.float).abs().to(value)

        self.states = call.map(drawn) if draw else call  # in which no rows are equal

    def call(self, roles: dict[str, ArgumentRole]) -> ModelCall:
        """The call in which arguments of these roles are in the other order too."""

        def change(name: str, value: Any) -> Any:
            if value is self.states.edge_index:
                return self.edges
            role = "node" if value is self.states.x else roles.get(name)
            if not isinstance(value, Tensor) or role in (None, "shared"):
                return value
            order = self.node if role == "node" else self.edge
            return value[order] if value.dim() and value.size(0) == order.numel() else value

        return self.states.map(change)

    def output(self, output: Any) -> Any:
        """The output of the call as it would be in the other order."""
        return tree_map(lambda v: v[self.node] if isinstance(v, Tensor) and v.dim() else v, output)


def _try(run: Callable[[ModelCall], Any], call: ModelCall) -> Any:
    try:
        return run(call)
    except Exception:  # it cannot take the argument in this role
        return None


def _unused(run: Callable[[ModelCall], Any], call: ModelCall, name: str, expected: Any) -> bool:
    """Whether other values of an argument change nothing."""

    def change(key: str, value: Any) -> Any:
        if key != name:
            return value
        if value.dtype == torch.bool:
            return ~value
        return value + 1 if value.unique().numel() == 1 or value.is_floating_point() else value.flip(0)

    output = _try(run, call.map(change))
    return output is not None and close(output, expected)


def _refuse_edges(name: str, value: Tensor) -> None:
    if is_sparse(value) or isinstance(value, EdgeIndex) or ("index" in name and value.dim() and value.size(0) == 2):
        raise ValueError(
            f"the argument {name} is a second set of edges, and an identity graph is built from edge_index alone. Put "
            "all edges into edge_index, tell them apart by an edge_type, and split them inside."
        )


def lift(call: ModelCall, plan: Plan, roles: Roles, x: Tensor | None = None) -> ModelCall:
    """The same call on the rows and edges of a plan; `x`, if given, holds the states of its rows.

    Example:
        >>> from idgnn.identity.identity_graph import identity_graph
        >>> from idgnn.layers.wrapping.plan import whole_plan
        >>> from torch_geometric.nn import SAGEConv
        >>> x, edge_index = torch.tensor([[1.0], [2.0]]), torch.tensor([[0, 1], [1, 0]])
        >>> graph = identity_graph(Data(x=x, edge_index=edge_index), num_layers=1)
        >>> lift(ModelCall.of(SAGEConv(1, 1), (x, edge_index), {}), whole_plan(graph), Roles({})).x.flatten().tolist()
        [1.0, 2.0, 1.0, 2.0]
    """
    rows = {"node": (plan.num_nodes, call.num_nodes), "edge": (plan.num_edges, call.num_edges)}

    def change(name: str, value: Any) -> Any:
        if value is call.x:
            return plan.lift_nodes(value) if x is None else x
        if value is call.edge_index:
            return plan.edge_index
        if name.split("[")[0] in _SAMPLED and value is not None:
            raise ValueError(
                f"the argument {name.split('[')[0]} describes a sampled neighborhood whose outer nodes are cut off "
                "layer by layer, and the rows of an identity graph are not in that order. Leave it out."
            )
        if name == "size" and value is not None:
            return (plan.num_rows, plan.num_rows)
        if name == "num_nodes" and value in rows["node"]:
            return plan.num_rows
        role = roles.of(name)
        if not isinstance(value, Tensor) or role in (None, "shared"):
            return value
        if value.dim() == 0 or value.size(0) not in rows[role]:
            if name in _NAMED:
                return value  # the model says what is wrong with it
            raise ValueError(
                f"{name} has shape {list(value.shape)}, expected a row for each {role}: {rows[role][0]}. It was taken "
                f"to be per {role} when the model was first called; another role is said by "
                "identity_aware(module, per_node=..., per_edge=..., shared=...)."
            )
        return plan.lift_nodes(value) if role == "node" else plan.lift_edges(value)

    return call.map(change)


def original_call(call: ModelCall, graph: IdentityGraph, roles: Roles) -> ModelCall:
    """A call with an identity graph as one on the graph it was built from. Features, edges and everything else may be
    given per node and edge of the original graph, or per row and edge of the identity graph."""
    if not isinstance(graph, Data) or "query_row" not in graph:
        raise ValueError(f"graph is a {type(graph).__name__}, expected what idgnn.identity_graph returns.")
    nodes, edges, rows, row_edges = (
        graph.plain_row.numel(),
        graph.plain_edge.numel(),
        graph.node.numel(),
        graph.edge.numel(),
    )
    given = call.num_nodes, call.num_edges
    if given[0] not in (nodes, rows) or given[1] not in (edges, row_edges):
        raise ValueError(
            f"graph was built from {nodes} nodes and {edges} edges, but x and edge_index have {given[0]} and "
            f"{given[1]}. Pass the x and edge_index that it was built from, or its own."
        )
    original = graph.node[graph.edge_index[:, graph.plain_edge]]
    if call.edge_index is not graph.edge_index and not any(
        torch.equal(call.edge_index.to(known), known) for known in (original, graph.edge_index)
    ):
        raise ValueError(
            "edge_index is not that of the graph from which the identity graph was built. Pass that one, or "
            "graph.edge_index, or build the identity graph of these edges."
        )

    def change(name: str, value: Any) -> Any:
        if value is call.edge_index:
            return original
        role = "node" if value is call.x else roles.of(name)
        if isinstance(value, Tensor) and value.dim() and role != "shared":
            if value.size(0) == rows and rows != nodes and role != "edge":
                return value[graph.plain_row]
            if value.size(0) == row_edges and row_edges != edges and role != "node":
                return value[graph.plain_edge]
        return nodes if name == "num_nodes" and value == rows else value

    return call.map(change)


def rows_of(output: Any, num_rows: int, read: Tensor | None, name: str) -> Any:
    """The rows `read` of an output with one row per node (all of them if `None`); refuses any other output."""
    if isinstance(output, (tuple, list)) and output:
        return type(output)(rows_of(part, num_rows, read, name) for part in output)
    if not isinstance(output, Tensor) or output.dim() == 0 or output.size(0) != num_rows:
        given = f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"{name} returned {given} for {num_rows} nodes, expected one row per node: it seems to pool inside. Make "
            "its encoder identity-aware and pool after: global_add_pool(identity_aware(encoder)(x, edge_index), batch)."
        )
    return output if read is None else torch.index_select(output, 0, read)
