r"""Checked, not believed: at its first call a model is compared with one coloured copy of the graph.

The steps of a model and the colouring of its layers are found out by watching; a model may still do what no watcher
foresees: take statistics over all rows, send messages of its own, count outgoing edges. So one node :math:`v` is
coloured, with colour maps that are not the identity and states that are not alike, and :math:`\mathbf{h}_{r|v}` of
every node :math:`r` is computed twice: on the graph itself, and on its identity graph. Beside the latter stands a
stranger, a second copy of the graph with other states and every row coloured, to whom no edge leads: whoever listens
to it mixes rows.
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

from idgnn.identity.identity_graph import UnreachedColourWarning, identity_graph
from idgnn.layers.colour_map import ColourMap
from idgnn.layers.examination import close
from idgnn.layers.lifting import Cover, ModelCall, lift, replace_x, rows_of

Run = Callable[[Tensor, tuple[Any, ...], dict[str, Any]], Any]  # (coloured, args, kwargs) -> output


def verify(name: str, run: Run, call: ModelCall, num_layers: int, colours: Iterable[ColourMap]) -> None:
    """Refuses a model whose rows on the identity graph are not those on a coloured copy of the graph.

    Costs two or three runs on at most three times the nodes, once in the life of a model."""
    nodes = torch.arange(call.num_nodes, device=call.x.device)
    # A busy node: the more routes, the more can be seen to go wrong.
    colour = torch.bincount(call.edge_index[0], minlength=call.num_nodes).argmax()
    x, stranger = _drawn_states(run, call, nodes == colour)
    graph = _one_colour(call, num_layers, torch.stack([nodes, colour.expand_as(nodes)]))
    num_rows = graph.node.numel()
    beside = Cover(
        node=torch.cat([graph.node, nodes]),
        edge=torch.cat([graph.edge, graph.plain_edge]),
        edge_index=torch.cat([graph.edge_index, call.edge_index + num_rows], dim=1),
    )
    coloured = torch.cat([graph.coloured, torch.ones_like(nodes, dtype=torch.bool)])
    with _drawn(colours):
        args, kwargs = replace_x(call, x)
        expected = rows_of(run(nodes == colour, args, kwargs), call.num_nodes, nodes, name)
        args, kwargs = lift(call, beside, torch.cat([x[graph.node], stranger]))
        found = rows_of(run(coloured, args, kwargs), coloured.numel(), graph.query_row, name)
    # A deep PNA loses half of its digits to the root of a variance near zero, and a few more on the way.
    if not close(found, expected, digits=3 / 8):
        pairs = zip(tree_leaves(found), tree_leaves(expected), strict=True)
        off = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
        raise ValueError(
            f"the rows of {name} are not a function of their {num_layers}-hop neighbourhood: on the identity graph it "
            f"gives another answer than on a coloured copy of the graph (by {off:.2g}), so it cannot be made "
            "identity-aware exactly. It mixes rows somewhere (statistics or attention over all nodes, pooling), sends "
            "messages outside of its MessagePassing layers, counts the edges that leave a node, or draws random "
            "numbers in evaluation mode. Make the part without it identity-aware, for example its encoder."
        )


def _one_colour(call: ModelCall, num_layers: int, pairs: Tensor) -> Any:
    plain = Data(edge_index=call.edge_index, num_nodes=call.num_nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColourWarning)
        return identity_graph(plain, num_layers=num_layers, queries=pairs)


def _drawn_states(run: Run, call: ModelCall, coloured: Tensor) -> tuple[Tensor, Tensor]:
    """States that differ from row to row so that mixing them shows, and louder ones for the stranger.

    What the model does not take, numbers of things for example, is shuffled instead. The run that finds this out is
    also the one that tells the colour maps their widths."""
    generator = torch.Generator(device="cpu").manual_seed(0)
    shuffled = call.x[torch.randperm(call.num_nodes, generator=generator).to(call.x.device)]
    if call.x.is_floating_point():
        noise = torch.randn((2, *call.x.shape), generator=generator, dtype=torch.float).to(call.x)
        states = call.x + noise[0], 10 * noise[1]
        try:
            for x in states:
                run(coloured, *replace_x(call, x))
        except (IndexError, RuntimeError, AssertionError):
            pass
        else:
            return states
    run(coloured, *replace_x(call, shuffled))
    return call.x, shuffled


@contextmanager
def _drawn(colours: Iterable[ColourMap]) -> Iterator[None]:
    """Within the block the colour maps are random. The parameters get other data and then their own back, so that
    nothing that was recorded for a backward pass is touched."""
    kept = [(parameter, parameter.data) for colour in colours for parameter in colour.parameters()]
    generator = torch.Generator(device="cpu").manual_seed(1)
    try:
        for parameter, data in kept:
            drawn = torch.randn(data.shape, generator=generator, dtype=torch.float) / max(data.size(-1), 1) ** 0.5
            parameter.data = drawn.to(data)
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data
