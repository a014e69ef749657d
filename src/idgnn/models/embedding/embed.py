"""Embeds the nodes of a graph, or pairs of them, some at a time: what :meth:`idgnn.IDGNN.embed` does."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.identity.adjacency import pointers
from idgnn.identity.cost import TooLargeError, readable
from idgnn.identity.cycle_features import cycle_features
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.identity.lookup import Lookup
from idgnn.identity.queries import Queries, as_queries
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.summed import as_sum
from idgnn.models.embedding.exchanged import Exchanged
from idgnn.models.embedding.forms import Direct, Foreign, Form
from idgnn.models.embedding.memory import as_bytes, prices
from idgnn.models.embedding.network import Encoder, Network
from idgnn.models.foreign import check_exact
from idgnn.models.inputs import Inputs, of_data

if TYPE_CHECKING:
    from idgnn.models.idgnn import IDGNN

# An edge in both directions: the key and two ids, two ids; and while that is sorted, about as much again.
_EDGE_BYTES = 80

Finished = Callable[[Tensor, Tensor, int], None]
"""(positions among the roots, their embeddings, how many different roots are done) after each chunk."""


def embed_by_chunks(
    model: IDGNN, data: Data, roots: Tensor | None, memory: float | str | None, finished: Finished, start: int = 0
) -> None:
    """Embeds the roots in an order of their own, from the `start`-th on, and hands over each chunk when it is done.

    Roots that are named twice are computed once and handed over together. The order depends on the roots alone.
    """
    inputs, device = _inputs(model, data), next(model.parameters()).device
    queries = as_queries(roots, inputs.num_nodes, device)
    if inputs.num_nodes == 0:
        return
    asked, inverse = torch.unique(queries.color * inputs.num_nodes + queries.node, return_inverse=True)
    place, ptr = torch.argsort(inverse, stable=True).cpu(), pointers(inverse.sort().values, asked.numel()).cpu()
    if start == asked.numel():
        return
    node = (asked % inputs.num_nodes)[start:]
    different = Queries(node, node if queries.own else (asked // inputs.num_nodes)[start:])
    # States are kept and added up over rounds, in the precision of the weights.
    with torch.no_grad(), _evaluating(model), torch.autocast(device.type, enabled=False):
        unreached = 0
        for first, last, values, missed in _answers(model, inputs, different, as_bytes(memory, device)):
            positions = place[ptr[start + first] : ptr[start + last]]
            number = torch.repeat_interleave(ptr[start + first : start + last + 1].diff())
            finished(positions, values.cpu()[number], start + last)
            unreached += missed
    if unreached:
        warnings.warn(
            f"{unreached} of {asked.numel()} queries read a node that lies more than {model.num_layers} steps from the "
            "colored one: no color arrives there, and the answer is the plain GNN's. Use more layers to tell such "
            "pairs apart.",
            UnreachedColorWarning,
            stacklevel=3,
        )


def _answers(model: IDGNN, inputs: Inputs, queries: Queries, memory: int) -> Iterator[tuple[int, int, Tensor, int]]:
    """First and last + 1 query of each chunk, its embeddings, and how many of them no color reaches."""
    width, read = model.settings["hidden_channels"], torch.cat([queries.node, queries.color])
    price = prices(width, inputs.x.element_size())
    room = _room(model, inputs, memory)
    form = _form(model, inputs)
    x = inputs.x
    if model.identity == "fast":
        counted = cycle_features(
            inputs.edge_index, inputs.num_nodes, model.cycle_length, model.cycle_scale, memory=int(room)
        )
        x = torch.cat([x, counted.to(x)], dim=-1)
    encoder = Encoder(model.lin_in, model.norms, model.lin_out, model.normalize, width)
    network = Network(encoder, form, x, read, room, price)
    if model.identity == "full":
        for first, last in network.chunks(queries):
            yield first, last, *network.colored(_some(queries, first, last))
        return
    size = max(int(room / price.row), 1)
    for first in range(0, queries.node.numel(), size):
        some = _some(queries, first, last := min(first + size, queries.node.numel()))
        h = network.plain(some.node)
        yield first, last, h if some.own else torch.cat([h, network.plain(some.color)], dim=-1), 0


def _room(model: IDGNN, inputs: Inputs, memory: int) -> float:
    """The bytes that are left for chunks when all that is kept is there."""
    width, num_edges = model.settings["hidden_channels"], inputs.edge_index.size(1)
    state, named = width * inputs.x.element_size(), isinstance(model.convs[0], IdentityConv)
    # Plain states before and after each round, the result, and the sums over all messages of a node.
    arrays = model.num_layers + 2 + (model.num_layers if _exchanges(model) else 0)
    kept = arrays * inputs.num_nodes * state + (num_edges + inputs.num_nodes) * _EDGE_BYTES
    message = prices(width, inputs.x.element_size()).message
    busiest = int(torch.bincount(inputs.edge_index[1], minlength=1).max()) + 1
    least = 2 * message * (busiest if named else num_edges)
    if memory < kept + least:
        raise TooLargeError(
            f"memory is {readable(memory)}, but the plain states and the edges of {inputs.num_nodes:,} nodes take "
            f"{readable(kept)}, and the messages into "
            f"{f'the busiest node, {busiest:,} of them,' if named else f'all nodes, {num_edges:,} of them,'} "
            f"{readable(least)}: expected at least {readable(kept + least)}. Give more (memory=..., --memory), "
            "or, if there are many graphs, take fewer of them at a time."
        )
    return memory - kept if named else memory - kept - least / 2


def _form(model: IDGNN, inputs: Inputs) -> Form:
    """How the convolutions of the network are run on the graph."""
    first, edge_index = model.convs[0], inputs.edge_index
    if not isinstance(first, IdentityConv):
        links = Lookup.of(edge_index, inputs.num_nodes, self_loops=False)
        return Foreign(model.convs, links, inputs.edge_weight, inputs.edge_attr, edge_index)
    links = Lookup.of(edge_index, inputs.num_nodes, first.operator.self_loops)
    weight = first.operator.edge_values(edge_index, inputs.num_nodes, inputs.edge_weight, inputs.x.dtype)
    if _exchanges(model):
        return Exchanged(model.convs, links, weight, model.settings["hidden_channels"])
    return Direct(model.convs, links, weight, inputs.edge_attr)


def _exchanges(model: IDGNN) -> bool:
    """Whether colored rows are made from plain ones by exchanging messages."""
    first = model.convs[0]
    return model.identity == "full" and isinstance(first, IdentityConv) and as_sum(first.operator) is not None


def _inputs(model: IDGNN, data: Data) -> Inputs:
    """The graph, checked, on the device of the network."""
    inputs = of_data(data, model, model.lin_in.weight.device)
    if isinstance(first := model.convs[0], IdentityConv):
        first.check_edges(inputs.edge_index, inputs.edge_attr, inputs.edge_weight)
    elif model.identity == "full" and not model._checked and inputs.edge_index.size(1):
        _check_layers(model, inputs)
        model._checked = True
    return inputs


def _check_layers(model: IDGNN, inputs: Inputs) -> None:
    """Looks at layers that are not ours on a few edges: whether they are exact does not depend on the graph."""
    few = slice(0, 64)
    node, edge_index = torch.unique(inputs.edge_index[:, few], return_inverse=True)
    states = torch.rand(node.numel(), model.lin_in.out_features).to(inputs.x)
    values = (None if value is None else value[few] for value in (inputs.edge_attr, inputs.edge_weight))
    check_exact(model.convs, states, edge_index, *values)


def _some(queries: Queries, first: int, last: int) -> Queries:
    node = queries.node[first:last]
    return Queries(node, node if queries.own else queries.color[first:last])


@contextmanager
def _evaluating(model: nn.Module) -> Iterator[None]:
    """Within the block the network is in evaluation mode; after it every part is in the mode that it was in."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True
