r"""Compares a model over several node types with brute force: a colored copy of the graph per query.

With random color maps and random states, :math:`\mathbf{h}_{r|v}` of a few pairs is computed on the identity graph and
on the graph itself with v colored. A model that mixes rows, or sends messages outside of its layers, gives another
answer.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import redirect_stderr, suppress
from io import StringIO
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cone import ball
from idgnn.identity.hetero.graph import TypedRows
from idgnn.identity.hetero.queries import TypedQueries
from idgnn.identity.hetero.types import TypedGraph
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.wrapping.examine import close
from idgnn.models.wrapping.hetero_arguments import HeteroCall, TypedPlan
from idgnn.models.wrapping.hetero_trim import trimmed
from idgnn.models.wrapping.verify import Verdict, drawn

if TYPE_CHECKING:
    from idgnn.models.hetero.identity_aware import HeteroIdentityAwareModel


def verify_types(
    model: HeteroIdentityAwareModel,
    call: HeteroCall,
    num_layers: int,
    read: str,
    root: str,
    rounds: Mapping[str, int] | None,
) -> Verdict | None:
    """Refuses a model whose answers on the identity graph are not those on a colored copy of the graph. Finds out
    whether they are also right if each round computes the rows that matter alone; `rounds` are those of its layers.
    `None`: in this graph no color goes anywhere, so that nothing was compared."""
    from idgnn.models.hetero.identity_aware import read_rows

    typed = call.typed()
    queries = _telling_pairs(typed, num_layers, read, root)
    if queries is None:
        return None
    name = type(model.module).__name__
    generator = torch.Generator(device="cpu").manual_seed(0)

    def perturbed(value: Tensor) -> Tensor:
        if not value.is_floating_point():
            return value
        return value + torch.randn(value.shape, generator=generator, dtype=torch.float).to(value)

    call = call.map(lambda _, value: perturbed(value), lambda kind, _, value: value)
    masks = [torch.arange(call.num_nodes[root], device=call.device) == color for color in queries.color]
    model.run_colored(call, {root: masks[0]})  # which gives color maps of unknown width theirs
    with drawn(model.color_maps()):
        expected = [
            read_rows(model.run_colored(call, {root: mask}), read, node.view(1), call.num_nodes[read], name)
            for node, mask in zip(queries.node, masks, strict=True)
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedColorWarning)
            rows = TypedRows.of(typed, queries, num_layers)
        plan = TypedPlan.of_rows(rows, typed)
        found: Any = model.run_plan(call, plan)
        fewer: Any = None
        fewer_rows = None if rounds is None else trimmed(plan, num_layers, rounds)
        if fewer_rows is not None:
            # A model that needs all rows fails here, and one made by torch.fx prints a traceback when it does.
            with suppress(RuntimeError, ValueError, IndexError, KeyError), redirect_stderr(StringIO()):
                fewer = model.run_plan(call, fewer_rows)
    theirs = torch.cat(expected)
    if not close(found, theirs, digits=3 / 8):
        raise ValueError(
            f"the rows of {name} are not a function of their {num_layers}-hop neighborhood: on the identity graph it "
            f"gives another answer than on a colored copy of the graph (by {float((found - theirs).abs().max()):.2g}), "
            "so it cannot be made identity-aware exactly. It mixes rows somewhere (statistics or attention over all "
            "nodes, pooling), or sends messages outside of PyG layers. Make the part without it identity-aware."
        )
    reads_plain = any(
        bool(((source < typed.size[kind[0]]) & (target >= typed.size[kind[2]])).any())  # plain rows come first
        for kind, (source, target) in plan.edge_index.items()
    )
    if fewer is None or not close(fewer, theirs, digits=3 / 8):
        return Verdict(reads_plain, False)
    assert fewer_rows is not None
    return Verdict(reads_plain, None if _is_complete(fewer_rows, call) else True)


def _is_complete(plan: TypedPlan, call: HeteroCall) -> bool:
    """Whether a plan has all edges into its rows."""
    for kind, edge_index in call.edge_index.items():
        degree = torch.bincount(edge_index[1], minlength=call.num_nodes[kind[2]])
        if int(degree.index_select(0, plan.node[kind[2]]).sum()) != plan.edge[kind].numel():
            return False
    return True


def _telling_pairs(typed: TypedGraph, num_layers: int, read: str, root: str) -> TypedQueries | None:
    """Two nodes with many edges as colors, each with a node that is read as far away as the color comes."""
    if not typed.size[root] or not typed.size[read]:
        return None
    first, size = typed.first[root], typed.size[root]
    degree = torch.bincount(typed.edge_index[0], minlength=typed.total)[first : first + size]
    colors = degree.topk(min(2, size)).indices
    colors = colors[degree[colors] > 0]
    nodes, found = [], []
    graph = IndexedGraph(typed.edge_index, typed.total)
    for color in colors:
        node = (color + first).view(1)
        reached, steps = ball(graph.out, node, num_layers, typed.total)  # of one color the key is its node
        mine = (typed.node_type[reached] == typed.schema.node_types.index(read)).nonzero().flatten()
        if mine.numel():
            nodes.append(reached[mine[steps[mine].argmax()]] - typed.first[read])
            found.append(color)
    return TypedQueries(read, root, torch.stack(nodes), torch.stack(found)) if found else None
