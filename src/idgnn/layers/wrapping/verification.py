r"""Checked, not believed: at its first call a model is compared with one colored copy of the graph.

The steps of a model and the coloring of its layers are found out by watching; a model may still do what no watcher
foresees: take statistics over all rows, count outgoing edges. So with color maps that are not the identity and states
that are not alike, the plain states of all nodes and :math:`\mathbf{h}_{r|v}` of two pairs are computed twice: on the
graph itself, once for each, and on its identity graph. Beside the latter stands a stranger, a second copy of the graph
with other states and every row colored, to whom no edge leads: whoever hears it mixes rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch_geometric.data import Data

from idgnn.identity.identity_graph import UnreachedColorWarning, identity_graph
from idgnn.layers.wrapping.color_map import ColorMap
from idgnn.layers.wrapping.examination import close
from idgnn.layers.wrapping.lifting import Cover, ModelCall, lift, replace_x, rows_of

Run = Callable[[Tensor, tuple[Any, ...], dict[str, Any]], Any]  # (colored, args, kwargs) -> output


def verify(name: str, run: Run, call: ModelCall, num_layers: int, colors: Iterable[ColorMap]) -> None:
    """Refuses a model whose rows on the identity graph are not those on colored copies of the graph.

    Costs six runs, the last of them on a few times the nodes, once in the life of a model."""
    pairs = _telling_pairs(call.edge_index, call.num_nodes)
    nodes = torch.arange(call.num_nodes, device=call.x.device)
    x, stranger = _drawn_states(run, call, nodes == pairs[1, 0])
    graph = _identity_graph(call, num_layers, pairs)
    beside = Cover(
        node=torch.cat([graph.node, nodes]),
        edge=torch.cat([graph.edge, graph.plain_edge]),
        edge_index=torch.cat([graph.edge_index, call.edge_index + graph.node.numel()], dim=1),
    )
    colored = torch.cat([graph.colored, torch.ones_like(nodes, dtype=torch.bool)])
    read = torch.cat([graph.plain_row, graph.query_row])
    with _drawn(colors):
        args, kwargs = replace_x(call, x)
        expected = [rows_of(run(nodes < 0, args, kwargs), call.num_nodes, nodes, name)]
        for node, color in pairs.t():
            expected.append(rows_of(run(nodes == color, args, kwargs), call.num_nodes, node.view(1), name))
        args, kwargs = lift(call, beside, torch.cat([x[graph.node], stranger]))
        found = rows_of(run(colored, args, kwargs), colored.numel(), read, name)
    off = [
        float((ours - torch.cat(theirs)).abs().max())
        for ours, *theirs in zip(tree_leaves(found), *map(tree_leaves, expected), strict=True)
        # A deep PNA loses half of its digits to the root of a variance near zero, and a few more on the way.
        if not close(ours, torch.cat(theirs), digits=3 / 8)
    ]
    if off:
        raise ValueError(
            f"the rows of {name} are not a function of their {num_layers}-hop neighborhood: on the identity graph it "
            f"gives another answer than on a colored copy of the graph (by {max(off):.2g}), so it cannot be made "
            "identity-aware exactly. It mixes rows somewhere (statistics or attention over all nodes, pooling), counts "
            "the edges that leave a node, or draws random numbers in evaluation mode. Make the part without it "
            "identity-aware, for example its encoder."
        )


def _telling_pairs(edge_index: Tensor, num_nodes: int) -> Tensor:
    """A busy node read under its own color, and the target of a busy edge read under the color of its source.

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


def _identity_graph(call: ModelCall, num_layers: int, pairs: Tensor) -> Any:
    plain = Data(edge_index=call.edge_index, num_nodes=call.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        return identity_graph(plain, num_layers=num_layers, queries=pairs)


def _drawn_states(run: Run, call: ModelCall, colored: Tensor) -> tuple[Tensor, Tensor]:
    """States that differ from row to row so that mixing them shows, and louder ones for the stranger.

    What the model does not take, numbers of things for example, is shuffled instead. The run that finds this out is
    also the one that tells the color maps their widths."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    shuffled = call.x[torch.randperm(call.num_nodes, generator=generator).to(call.x.device)]
    if call.x.is_floating_point():
        noise = torch.randn((2, *call.x.shape), generator=generator, dtype=torch.float).to(call.x)
        states = call.x + noise[0], 10 * noise[1]
        try:
            for x in states:
                run(colored, *replace_x(call, x))
        except Exception:  # these are not numbers of its own; if something else is wrong, the next run says so
            pass
        else:
            return states
    run(colored, *replace_x(call, shuffled))
    return call.x, shuffled


@contextmanager
def _drawn(colors: Iterable[ColorMap]) -> Iterator[None]:
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
