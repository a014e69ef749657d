"""Which arguments of a model are per node and which per edge: by PyG's names, as the user says, or by trying it out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._pytree import tree_map
from torch_geometric import EdgeIndex
from torch_geometric.utils import is_sparse

from idgnn.models.wrapping.arguments import ModelCall
from idgnn.models.wrapping.examine import close

ArgumentRole = Literal["node", "edge", "shared"]

# PyG's own names. All other arguments are tried out.
NAMED: dict[str, ArgumentRole] = {
    "x": "node",
    "pos": "node",
    "batch": "node",
    "normal": "node",
    "node_type": "node",
    "edge_attr": "edge",
    "edge_weight": "edge",
    "edge_type": "edge",
}


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
        return NAMED[name] if name in NAMED else self.known.get(name)

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
        reordered = _Reordered(call, draw=True)
        expected = _try(run, reordered.states)
        if expected is None:  # drawn states are not what it takes, categories for example
            reordered = _Reordered(call, draw=False)
            expected = _try(run, reordered.states)
        used = [name for name in names if not _unused(run, reordered.states, name, expected)]
        self.known |= {name: "shared" for name in names if name not in used}
        known: dict[str, ArgumentRole] = {name: r for name, _ in call.leaves if (r := self.of(name)) is not None}
        values, found = dict(call.leaves), []
        for roles in product(*(_options(values[name], call) for name in used)):
            tried: dict[str, ArgumentRole] = dict(zip(used, roles, strict=True))
            output = None if expected is None else _try(run, reordered.call({**known, **tried}))
            if output is not None and close(reordered.output(expected), output, digits=3 / 8):
                found.append(tried)
        for name in used:
            possible = {tried[name] for tried in found}
            if len(possible) != 1:
                shape = list(values[name].shape)
                raise ValueError(
                    f"{title} takes {name} {shape}, and its graph has {call.num_nodes} nodes and {call.num_edges} "
                    "edges. By trying it out it could not be decided whether it has a row per node, a row per edge, or "
                    f"is the same for all rows. Say it: identity_aware(module, per_node=[{name!r}]), or per_edge, or "
                    "shared."
                )
        self.known |= found[0] if found else {}


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
        if value.is_floating_point():
            return 2 * value + torch.linspace(0, 1, value.numel(), device=value.device).view_as(value).to(value)
        rolled = value.roll(1, 0)
        return value + 1 if torch.equal(rolled, value) else rolled

    output = _try(run, call.map(change))
    return output is not None and close(output, expected)


def _refuse_edges(name: str, value: Tensor) -> None:
    if is_sparse(value) or isinstance(value, EdgeIndex) or ("index" in name and value.dim() and value.size(0) == 2):
        raise ValueError(
            f"the argument {name} is a second set of edges, and an identity graph is built from edge_index alone. Put "
            "all edges into edge_index, tell them apart by an edge_type, and split them inside."
        )
