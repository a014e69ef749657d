r"""Compares a model with brute force: one colored copy of the graph for each query.

This is done at its first call, and again until a graph has shown all of it.

The rounds of a model and the routes of its layers are detected; a model may still do what was not foreseen: take
statistics over all rows, count outgoing edges. So with random color maps and random states, the plain states of all
nodes and :math:`\mathbf{h}_{r|v}` of two pairs are computed twice: on the graph itself, once for each, and on its
identity graph. An unconnected copy of the graph is appended to the latter, with other states and every row colored; if
other rows change by it, the model mixes rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from idgnn.identity.identity_graph import IdentityGraph, identity_graph
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.wrapping.arguments import ModelCall, rows_of
from idgnn.models.wrapping.calls import ColoredRows, Context
from idgnn.models.wrapping.color_map import ColorMap
from idgnn.models.wrapping.examine import close
from idgnn.models.wrapping.lifting import lift
from idgnn.models.wrapping.plan import Plan, Rounds, trimmed_plan

if TYPE_CHECKING:
    from idgnn.models.identity_aware_model import IdentityAwareModel


@dataclass(frozen=True)
class Verdict:
    """What a comparison with brute force showed. A graph shows little if it is so small that colors reach all of it."""

    rows: bool  # whether rows of a color read plain rows
    trimmed: bool | None  # whether the rows that matter in each round suffice; `None`: here no edges could be left out

    @property
    def is_final(self) -> bool:
        """Whether other graphs cannot show more."""
        return self.rows and self.trimmed is not None


class Comparisons:
    """The comparisons of one model, each kind of which ends at a final verdict.

    Graphs that show little are compared a few times. After these the model is taken as it is, all rows in every round.
    """

    MOST = 8

    def __init__(self) -> None:
        self._left: dict[Hashable, int] = {}  # of each kind that was begun

    def are_over(self, kind: Hashable) -> bool:
        """Whether a kind needs no more comparisons."""
        return self._left.get(kind) == 0

    def add(self, kind: Hashable, verdict: Verdict) -> None:
        """Counts a comparison."""
        self._left[kind] = 0 if verdict.is_final else self._left.get(kind, self.MOST) - 1


def verify(model: IdentityAwareModel, call: ModelCall, num_layers: int, rounds: Rounds | None) -> Verdict:
    """Refuses a model whose rows on the identity graph are not those on colored copies of the graph. Finds out whether
    it is also exact if each round computes only the rows that matter, which a chain of layers may be.

    Costs eight runs, the last three on a few times the nodes, as a rule once in the life of a model."""
    name = type(model.module).__name__
    pairs = _telling_pairs(call.edge_index, call.num_nodes)
    nodes = torch.arange(call.num_nodes, device=call.x.device)
    x, other = _drawn_states(model, call, nodes == pairs[1, 0])
    graph = _identity_graph(call, num_layers, pairs)
    plan = _with_copy(graph, nodes, call.edge_index)
    with drawn(model.color_maps().values()):
        given = call.replaced(x=x)
        plain = rows_of(model.run_call(given.fresh(), nodes < 0), call.num_nodes, nodes, name)
        colored = [
            rows_of(model.run_call(given.fresh(), nodes == color), call.num_nodes, node.view(1), name)
            for node, color in pairs.t()
        ]
        found = rows_of(
            model.run_plan(lift(call, plan, model.roles, torch.cat([x[graph.node], other])), plan),
            plan.num_rows,
            plan.answer,
            name,
        )
        off = _differences(found, [plain, *colored])
        if off:
            raise ValueError(
                f"the rows of {name} are not a function of their {num_layers}-hop neighborhood: on the identity graph "
                f"it gives another answer than on a colored copy of the graph (by {max(off):.2g}), so it cannot be "
                "made identity-aware exactly. It mixes rows somewhere (statistics or attention over all nodes, "
                "pooling), counts the edges that leave a node, or draws random numbers in evaluation mode. Make the "
                "part without it identity-aware, for example its encoder."
            )
        source, target = graph.edge_index < call.num_nodes  # plain rows come first
        rows = bool((source & ~target).any())
        if rounds is None or not model.takes_pairs(rounds):
            return Verdict(rows, False)
        plans = [trimmed_plan(graph, num_layers, rounds, part) for part in (0.0, 1.0)]
        if not all(_exact(model, given, plan, colored) for plan in plans):
            return Verdict(rows, False)
        degree = torch.bincount(call.edge_index[1], minlength=call.num_nodes)
        complete = int(degree.index_select(0, plans[0].node).sum()) == plans[0].edge.numel()
        return Verdict(rows, None if complete else True)


def _exact(model: IdentityAwareModel, call: ModelCall, plan: Plan, expected: list[Any]) -> bool:
    """Whether the model gives the expected answers on the rows that matter."""
    try:
        output = model.run_plan(lift(call.fresh(), plan, model.roles), plan)
        found = rows_of(output, plan.num_outputs, plan.answer, type(model.module).__name__)
    except (RuntimeError, ValueError, IndexError):  # it needs all rows
        return False
    return not _differences(found, expected)


def _differences(found: Any, expected: list[Any]) -> list[float]:
    """By how much the parts of an output differ, of those that do."""
    return [
        float((ours - torch.cat(theirs)).abs().max())
        for ours, *theirs in zip(tree_leaves(found), *map(tree_leaves, expected), strict=True)
        # A deep PNA loses half of its digits to the root of a variance near zero, and a few more on the way.
        if not close(ours, torch.cat(theirs), digits=3 / 8)
    ]


def _telling_pairs(edge_index: Tensor, num_nodes: int) -> Tensor:
    """A node with many edges read under its own color, and the target of an edge read under the color of its source.

    Each pair has a color of its own: more readers of one color would widen its cone, and hide that it is too narrow.
    Routes back to a node are even where edges go both ways, so that too few rounds by one may show in the other pair
    only."""
    source, target = edge_index
    out, into = (torch.bincount(end, minlength=num_nodes) for end in (source, target))
    node = out.argmax()
    pairs = node.expand(2, 1)
    elsewhere = (source != target) & (source != node)
    if elsewhere.any():
        edge = torch.where(elsewhere, out[source] * into[target], -1).argmax()
        pairs = torch.cat([pairs, edge_index[:, edge].flip(0).view(2, 1)], dim=1)
    return pairs


def _identity_graph(call: ModelCall, num_layers: int, pairs: Tensor) -> IdentityGraph:
    plain = Data(edge_index=call.edge_index, num_nodes=call.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        return identity_graph(plain, num_layers=num_layers, queries=pairs)


def _with_copy(graph: IdentityGraph, nodes: Tensor, edge_index: Tensor) -> Plan:
    """An identity graph and an unconnected copy of its graph whose rows are all colored."""
    colored = torch.cat([graph.colored, torch.ones_like(nodes, dtype=torch.bool)])
    rows = ColoredRows.of(colored)
    assert rows is not None
    return Plan(
        torch.cat([graph.node, nodes]),
        torch.cat([graph.edge, graph.plain_edge]),
        torch.cat([graph.edge_index, edge_index + graph.node.numel()], dim=1),
        Context(rows),
        torch.cat([graph.plain_row, graph.query_row]),
        colored.numel(),
        nodes.numel(),
        edge_index.size(1),
        colored.numel(),
        graph.edge.numel() + edge_index.size(1),
    )


def _drawn_states(model: IdentityAwareModel, call: ModelCall, colored: Tensor) -> tuple[Tensor, Tensor]:
    """States that differ from row to row so that mixing them shows, and larger ones for the appended copy.

    What the model does not take, numbers of categories for example, is shuffled instead. The run that finds this out
    also gives the color maps their widths."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    shuffled = call.x[torch.randperm(call.num_nodes, generator=generator).to(call.x.device)]
    if call.x.is_floating_point():
        noise = torch.randn((2, *call.x.shape), generator=generator, dtype=torch.float).to(call.x)
        states = call.x + noise[0], 10 * noise[1]
        try:
            for x in states:
                model.run_call(call.replaced(x=x.clone()), colored)
        except Exception:  # these are not numbers of its own; if something else is wrong, the next run says so
            pass
        else:
            return states
    model.run_call(call.replaced(x=shuffled.clone()), colored)
    return call.x, shuffled


@contextmanager
def drawn(colors: Iterable[ColorMap]) -> Iterator[None]:
    """Within the block the color maps are random. The parameters get other data and then their own back, so that
    nothing that was recorded for a backward pass is touched."""
    kept = [(parameter, parameter.data) for color in colors for parameter in color.parameters()]
    generator = torch.Generator(device="cpu").manual_seed(1)
    try:
        for parameter, data in kept:
            drawn = torch.randn(data.shape, generator=generator, dtype=torch.float) / max(data.size(-1), 1) ** 0.5
            parameter.data = drawn.to(data)
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data
