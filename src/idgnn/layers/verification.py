r"""Checked, not believed: at its first call a model is compared with one coloured copy of the graph.

The steps of a model and the colouring of its layers are found out by watching; a model may still do what no watcher
foresees: take statistics over all rows, send messages of its own, count outgoing edges. So one node :math:`v` is coloured,
with colour maps that are not the identity and states that are not alike, and :math:`\mathbf{h}_{r|v}` of every node
:math:`r` is computed twice: on the identity graph, and on the graph itself.
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
from idgnn.layers.lifting import ModelCall, lift, replace_x, rows_of

Run = Callable[[Tensor, tuple[Any, ...], dict[str, Any]], Any]  # (coloured, args, kwargs) -> output


def verify(name: str, run: Run, call: ModelCall, num_layers: int, colours: Iterable[ColourMap]) -> None:
    """Refuses a model whose rows on the identity graph are not those on a coloured copy of the graph.

    Costs three runs on a graph of at most twice the size, once in the life of a model."""
    x = _shaken(call.x)
    degree = torch.bincount(call.edge_index[0], minlength=call.num_nodes)
    coloured = torch.zeros(call.num_nodes, dtype=torch.bool, device=x.device)
    coloured[degree.argmax()] = True  # a busy node: the more routes, the more can be seen to go wrong
    every = torch.arange(call.num_nodes, device=x.device)
    plain_args, plain_kwargs = replace_x(call, x)
    colours = list(colours)
    if any(colour.channels is None for colour in colours):
        run(coloured, plain_args, plain_kwargs)  # the maps get their widths here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColourWarning)
        graph = identity_graph(
            Data(edge_index=call.edge_index, num_nodes=call.num_nodes),
            num_layers=num_layers,
            queries=torch.stack([every, degree.argmax().expand_as(every)]),
        )
    with _drawn(colours):
        expected = rows_of(run(coloured, plain_args, plain_kwargs), call.num_nodes, None, name)
        lifted_args, lifted_kwargs = lift(call, graph, x)
        found = rows_of(run(graph.coloured, lifted_args, lifted_kwargs), graph.node.numel(), graph.query_row, name)
    if not close(found, expected):
        pairs = zip(tree_leaves(found), tree_leaves(expected), strict=True)
        off = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
        raise ValueError(
            f"the rows of {name} are not a function of their {num_layers}-hop neighbourhood: on the identity graph it "
            f"gives another answer than on a coloured copy of the graph (by {off:.2g}), so it cannot be made "
            "identity-aware exactly. It mixes rows somewhere (statistics or attention over all nodes, pooling), sends "
            "messages outside of its MessagePassing layers, counts the edges that leave a node, or draws random numbers "
            "in evaluation mode. Make the part without it identity-aware, for example its encoder."
        )


def _shaken(x: Tensor) -> Tensor:
    """States that differ from row to row, so that mixing them shows; numbers of things stay as they are."""
    if not x.is_floating_point():
        return x
    generator = torch.Generator(device="cpu").manual_seed(0)
    return x + torch.randn(x.shape, generator=generator, dtype=torch.float).to(x)


@contextmanager
def _drawn(colours: list[ColourMap]) -> Iterator[None]:
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
