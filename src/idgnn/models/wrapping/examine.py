"""Looking at a layer at its first colored call: by which route it can be colored, or why it cannot."""

from __future__ import annotations

import inspect
import typing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch_geometric.nn import MessagePassing

from idgnn.models.wrapping.calls import Captured, ColoredRows, Frame, is_edges
from idgnn.models.wrapping.layer_call import LayerCall, Role, Route, requested, sent_names
from idgnn.models.wrapping.refusals import several_hops
from idgnn.models.wrapping.trace import trace, trial

if TYPE_CHECKING:
    from idgnn.models.wrapping.hooks import LayerHooks


def examine(layer: MessagePassing, hooks: LayerHooks, call: LayerCall, rows: ColoredRows) -> Route:
    """Tries a copy of the layer on the arguments of this call, and refuses what would not be Eq. 3."""
    name = type(layer).__name__
    with trial((layer, hooks), call.values) as (layer, hooks), hooks.calls.running(None):
        args, kwargs = call.inputs
        layer(*args, **kwargs)  # a lazy layer gets its weights here, before anything is counted
        traced = trace(layer, {name: layer}, args, kwargs)
        hops = traced.num_layers
        if hops == 0:
            raise ValueError(
                f"{name} sends no message through propagate, so there is nothing to color. Let its forward call "
                "self.propagate, and compute messages in its message function."
            )
        if hops > 1:
            why, advice = several_hops(hops)
            raise ValueError(f"{name} {why}. {advice}.")
        if isinstance(call.x, tuple):
            return Route("pairs", pairs=True)
        pairs = takes_pairs(layer) and _same_with_pairs(layer, call, traced.output)
        try:
            rounds = _rounds(layer, hooks, call)
        except ValueError:
            if pairs:
                return Route("pairs", pairs=True)
            raise
        repeats = pairs and _repeats(layer, call)
        route = Route("rows", pairs, repeats, rounds, _roles(call, rows.total))
        if all(_same_by_rows(layer, hooks, call, rows, route, training) for training in (False, True)):
            return replace(route, kind="pairs") if pairs and not repeats else route  # pairs copy no messages
        return Route("pairs" if pairs else "whole", pairs, rounds=rounds)


def takes_pairs(layer: MessagePassing) -> bool:
    """Whether the layer says that it takes `(x_source, x_target)`, by the type hint of its `x`.

    Example:
        >>> from torch_geometric.nn import GCNConv, SAGEConv
        >>> takes_pairs(SAGEConv(2, 2)), takes_pairs(GCNConv(2, 2))
        (True, False)
    """
    parameter = inspect.signature(type(layer).forward).parameters.get("x")
    if parameter is None:
        return False
    hint = parameter.annotation
    if isinstance(hint, str):
        try:
            hint = typing.get_type_hints(type(layer).forward)["x"]
        except Exception:  # a hint that cannot be resolved says nothing
            return False
    return any(typing.get_origin(option) is tuple for option in (hint, *typing.get_args(hint)))


def _same_with_pairs(layer: MessagePassing, call: LayerCall, expected: Any) -> bool:
    """Whether `(x, x)` means source and target: then it is the same as `x`."""
    try:
        return close(call.with_x((call.x, call.x)).run(layer), expected)
    except Exception:  # some layers take pairs in certain settings only, SimpleConv without combine_root for one
        return False


def _repeats(layer: MessagePassing, call: LayerCall) -> bool:
    """Whether the layer applies one of its linear layers to the states of sources and of targets if it is given both,
    as GAT does. Not if it takes statistics of rows: those of rows that are no targets would be among them."""
    if next(layer.buffers(), None) is not None:
        return False
    return _parts_run(layer, call.with_x((call.x, call.x))) > _parts_run(layer, call)


def _parts_run(layer: MessagePassing, call: LayerCall) -> int:
    """How often the layer runs its parts."""
    count = 0

    def counted(*_: Any) -> None:
        nonlocal count
        count += 1

    handles = [part.register_forward_hook(counted) for part in layer.modules() if part is not layer]
    try:
        call.run(layer)
    finally:
        for handle in handles:
            handle.remove()
    return count


def _rounds(layer: MessagePassing, hooks: LayerHooks, call: LayerCall) -> int:
    """How often `propagate` is called; refuses a layer whose messages depend on more of the states than `x_i` and
    `x_j`."""
    edges: list[Any] = []
    once = _recorded(layer, hooks, call, edges)
    again = _recorded(layer, hooks, _perturbed(call), list(edges), replay=True)
    for (edge_index, sent), (other_edge_index, other_sent) in zip(once.propagate, again.propagate, strict=False):
        if not close(edge_index, other_edge_index):
            raise ValueError(
                f"{type(layer).__name__} sends along other edges when the states are others, so its graph is not known "
                "beforehand. Compute the edges once, outside of the layer."
            )
        for key in _taken_whole(layer, sent):
            if not close(sent[key], other_sent.get(key)):
                raise ValueError(
                    f"{type(layer).__name__} computes {key!r} from the states of its nodes and uses it in its messages "
                    f"as it is, so that what a colored node sends cannot be told apart. Let message take {key}_j or "
                    "x_j, or compute it in edge_update."
                )
    return len(once.propagate)


def _taken_whole(layer: MessagePassing, sent: dict[str, Any]) -> list[str]:
    """What the message function takes as it was given to `propagate`, and what only aggregation reads from sources."""
    wanted = requested(layer, "message")
    whole = [name for name in sent if name in wanted]
    update = requested(layer, "aggregate", "update")
    late = [n for n in sent_names(layer, "aggregate", "update") if n in update and f"{n}_j" not in wanted]
    return whole + [name for name in late if name in sent]


def _recorded(
    layer: MessagePassing, hooks: LayerHooks, call: LayerCall, edges: list[Any], replay: bool = False
) -> Captured:
    """What the layer gives to `propagate`. What `edge_update` returns is added to `edges`, or replayed from there: it
    may depend on the states, since it is colored too."""
    captured = Captured(whole=True)

    def after_edge_update(_: Any, inputs: Any, output: Any) -> Any:
        if replay:
            return edges.pop(0) if edges else output
        edges.append(output)
        return None

    hooks.calls.frames.append(Frame(layer, recording=captured))
    handle = layer.register_edge_update_forward_hook(after_edge_update)
    try:
        call.run(layer)
    finally:
        handle.remove()
        hooks.calls.frames.pop()
    return captured


def _roles(call: LayerCall, total: int) -> dict[str, Role]:
    """What each argument seems to be; :func:`_same_by_rows` finds mistakes, and then the layer is run on all rows."""
    num_edges = {value.size(1) for value in call.values if is_edges(value)}

    def role(i: int, name: str, value: Any) -> Role:
        if i == call.key:
            return "rows"
        if is_edges(value):
            return "edge_index"
        if isinstance(value, Tensor) and value.dim():
            per_node, per_edge = value.size(0) == total, value.size(0) in num_edges
            return (
                "rows" if per_node and not (per_edge and name.startswith("edge")) else "edges" if per_edge else "same"
            )
        if name == "size":
            return "size"
        return "count" if name in ("num_nodes", "dim_size") and value == total else "same"

    # What is not given now may be given later, and is not known then.
    return {name: role(i, name, call.values[i]) for i, name in enumerate(call.names) if call.values[i] is not None}


def _same_by_rows(
    layer: MessagePassing, hooks: LayerHooks, call: LayerCall, rows: ColoredRows, route: Route, training: bool
) -> bool:
    """Whether a run on the colored rows alone gives `propagate` what a run on all rows does. With training statistics
    it does not where they are taken before the messages, and random numbers are other ones: then all rows are run."""
    layer.train(training)
    call = _perturbed(call)
    dim = layer.node_dim
    frame = Frame(layer, rows, call=(call, call.x.index_select(dim, rows.index)))
    try:
        whole = hooks.capture(layer, frame, Route("whole"), route.rounds)
        alone = hooks.capture(layer, frame, route, route.rounds)
        pairs = [(None, *c) for c in zip(whole.propagate, alone.propagate, strict=True)]
        pairs += [(a[0], a, b) for a, b in zip(whole.edge_update, alone.edge_update, strict=True)]
        return all(_same_sources(layer, rows, edges, ours[1], theirs[1]) for edges, ours, theirs in pairs)
    except Exception:  # it cannot be run on other rows and edges
        return False
    finally:
        layer.eval()


def _same_sources(
    layer: MessagePassing, rows: ColoredRows, edge_index: Tensor | None, whole: dict[str, Any], alone: dict[str, Any]
) -> bool:
    dim = layer.node_dim
    names = (
        sent_names(layer, "message", "aggregate", "update") if edge_index is None else sent_names(layer, "edge_update")
    )
    for name in names:
        if edge_index is not None and isinstance(lifted := whole.get(f"{name}_j"), Tensor):
            rank = rows.rank[edge_index[0]]
            edges = (rank >= 0).nonzero().flatten()
            ours, theirs = lifted.index_select(dim, edges), alone[f"{name}_j"].index_select(dim, rank[edges])
        else:
            ours, theirs = (v[0] if isinstance(v, (tuple, list)) else v for v in (whole.get(name), alone.get(name)))
            ours = ours.index_select(dim, rows.index) if isinstance(ours, Tensor) else ours
        if not close(ours, theirs):
            return False
    return True


def _perturbed(call: LayerCall) -> LayerCall:
    generator = torch.Generator(device="cpu").manual_seed(0)

    def perturbed(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        return x + torch.randn(x.shape, generator=generator, dtype=torch.float).to(x)

    return call.with_x(tuple(map(perturbed, call.x)) if isinstance(call.x, tuple) else perturbed(call.x))


def close(one: Any, other: Any, digits: float = 1 / 2) -> bool:
    """Whether two results are equal in this part of the digits that their dtype has."""
    ours, theirs = ([v for v in tree_leaves(value) if isinstance(v, Tensor)] for value in (one, other))
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, *_tolerance(a, digits), equal_nan=True)
        for a, b in zip(ours, theirs, strict=True)
    )


def _tolerance(tensor: Tensor, digits: float) -> tuple[float, float]:
    """The relative difference, and the absolute one beside the largest number there is."""
    if not tensor.is_floating_point():
        return 0.0, 0.0
    size = torch.finfo(tensor.dtype).eps ** digits
    scale = float(tensor.detach().abs().nan_to_num().max()) if tensor.numel() else 1.0
    return size, size * max(scale, 1e-30)
