"""Which arguments of a model are per node and which per edge: by PyG's names, as the user says, or by trying it out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Literal, Self

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
        trials = [trial for draw in (True, False) if (trial := _Trial.of(call, draw, run)) is not None]
        # Drawn values may all be on one side of a threshold, so that only the given ones show that they are used.
        used = [name for name in names if not trials or not all(_unused(run, trial, name) for trial in trials)]
        self.known |= {name: "shared" for name in names if name not in used}
        known: dict[str, ArgumentRole] = {name: r for name, _ in call.leaves if (r := self.of(name)) is not None}
        values, found = dict(call.leaves), []
        for roles in product(*(_options(values[name], call) for name in used)):
            tried: dict[str, ArgumentRole] = dict(zip(used, roles, strict=True))
            if trials and all(trial.follows({**known, **tried}, run) for trial in trials):
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


class _Trial:
    """What the model returns for a call, to be compared with the call whose nodes and edges are in another order.

    Edges stay sorted by their targets if they are. With `draw` numbers are changed at random, and no rows are equal.
    """

    def __init__(self, call: ModelCall, draw: bool, run: Callable[[ModelCall], Any]) -> None:
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

        self.states = call.map(drawn) if draw else call
        self.expected = _try(run, self.states)

    @classmethod
    def of(cls, call: ModelCall, draw: bool, run: Callable[[ModelCall], Any]) -> Self | None:
        """`None` if the model does not take such values: drawn ones may be no categories, for example."""
        trial = cls(call, draw, run)
        return None if trial.expected is None else trial

    def follows(self, roles: dict[str, ArgumentRole], run: Callable[[ModelCall], Any]) -> bool:
        """Whether the output is in the other order where arguments of these roles are."""
        output = _try(run, self._reordered(roles))
        return output is not None and close(self._ordered(self.expected), output, digits=3 / 8)

    def _reordered(self, roles: dict[str, ArgumentRole]) -> ModelCall:
        def change(name: str, value: Any) -> Any:
            if value is self.states.edge_index:
                return self.edges
            role = "node" if value is self.states.x else roles.get(name)
            if not isinstance(value, Tensor) or role in (None, "shared"):
                return value
            order = self.node if role == "node" else self.edge
            return value[order] if value.dim() and value.size(0) == order.numel() else value

        return self.states.map(change)

    def _ordered(self, output: Any) -> Any:
        return tree_map(lambda v: v[self.node] if isinstance(v, Tensor) and v.dim() else v, output)


def _try(run: Callable[[ModelCall], Any], call: ModelCall) -> Any:
    try:
        return run(call)
    except Exception:  # it cannot take the argument in this role
        return None


def _unused(run: Callable[[ModelCall], Any], trial: _Trial, name: str) -> bool:
    """Whether other values of an argument, of either sign, change nothing."""

    def changed(sign: int) -> ModelCall:
        return trial.states.map(lambda key, value: _changed(value, sign) if key == name else value)

    outputs = (_try(run, changed(sign)) for sign in (1, -1))
    return all(output is not None and close(output, trial.expected) for output in outputs)


def _changed(value: Tensor, sign: int) -> Tensor:
    if value.dtype == torch.bool:
        return ~value
    if value.is_floating_point():
        added = torch.linspace(1, 2, value.numel(), device=value.device).view_as(value).to(value)
        return sign * (2 * value + added)
    rolled = value.roll(1, 0)
    return value + 1 if torch.equal(rolled, value) else rolled


def _refuse_edges(name: str, value: Tensor) -> None:
    if is_sparse(value) or isinstance(value, EdgeIndex) or ("index" in name and value.dim() and value.size(0) == 2):
        raise ValueError(
            f"the argument {name} is a second set of edges, and an identity graph is built from edge_index alone. Put "
            "all edges into edge_index, tell them apart by an edge_type, and split them inside."
        )
