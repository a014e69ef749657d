"""Looking at a layer at its first colored call: which way it can be colored, or why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch_geometric.nn import MessagePassing

from idgnn.layers.wrapping.coloring import Call, Route, takes_pairs
from idgnn.layers.wrapping.quiet import quiet
from idgnn.layers.wrapping.refusals import several_hops
from idgnn.layers.wrapping.rehearsal import Record, rehearse, requested, sent_names
from idgnn.layers.wrapping.shadow import shadowed
from idgnn.layers.wrapping.steps import count_steps


def examine(layer: MessagePassing, forward: Callable[..., Any], call: Call) -> Route:
    """Tries the layer on the states of this call, without side effects, and refuses what would not be Eq. 3."""
    name = type(layer).__name__
    with quiet(layer, _device(call)), shadowed(layer, forward=forward):
        call.run(forward)  # a lazy layer gets its weights here, before anything is counted
        steps = count_steps(layer, {name: layer}, lambda *a, **k: layer.forward(*a, **k), call.args, call.kwargs)
        hops = steps.total
        if hops == 0:
            raise ValueError(
                f"{name} sends no message through propagate, so there is nothing to color. Let its forward call "
                "self.propagate, and compute messages in its message function."
            )
        if hops > 1:
            why, advice = several_hops(hops)
            raise ValueError(f"{name} {why}. {advice}.")
        if isinstance(call.x, tuple) or (takes_pairs(layer) and _same_with_pairs(forward, call, steps.output)):
            return Route(pairs=True, rounds=0)
        return Route(pairs=False, rounds=_rounds(layer, forward, call))


def _same_with_pairs(forward: Callable[..., Any], call: Call, expected: Any) -> bool:
    """Whether `(x, x)` means source and target: then it is the same as `x`."""
    try:
        return close(call.with_x((call.x, call.x)).run(forward), expected)
    except Exception:  # some layers take pairs in certain settings only, SimpleConv without combine_root for one
        return False


def _rounds(layer: MessagePassing, forward: Callable[..., Any], call: Call) -> int:
    """How often `propagate` is called; refuses a layer whose messages know more of the states than `x_i` and `x_j`."""
    once = _noted(layer, forward, call, None)
    again = _noted(layer, forward, _shaken(call), once[1])
    for (edges, sent), (other_edges, other_sent) in zip(once[0].propagate, again[0].propagate, strict=False):
        if not close(edges, other_edges):
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
    return len(once[0].propagate)


def _taken_whole(layer: MessagePassing, sent: dict[str, Any]) -> list[str]:
    """What the message function takes as it was given to `propagate`, and what only aggregation reads from sources."""
    wanted = requested(layer, "message")
    whole = [name for name in sent if name in wanted]
    update = requested(layer, "aggregate", "update")
    late = [n for n in sent_names(layer, "aggregate", "update") if n in update and f"{n}_j" not in wanted]
    return whole + [name for name in late if name in sent]


def _noted(
    layer: MessagePassing, forward: Callable[..., Any], call: Call, edges: list[Any] | None
) -> tuple[Record, list[Any]]:
    """A rehearsal, and what `edge_updater` returned in it. With `edges` it returns those instead: what comes out of
    `edge_update` may depend on the states, since it is colored too."""
    updated: list[Any] = []
    given: Iterator[Any] = iter(edges or [])
    original = layer.edge_updater

    def edge_updater(*args: Any, **kwargs: Any) -> Any:
        updated.append(original(*args, **kwargs))
        return next(given, updated[-1])

    with shadowed(layer, edge_updater=edge_updater):
        return rehearse(layer, lambda: call.run(forward), rounds=None), updated


def _shaken(call: Call) -> Call:
    generator = torch.Generator(device="cpu").manual_seed(0)

    def shake(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        return x + torch.randn(x.shape, generator=generator, dtype=torch.float).to(x)

    return call.with_x(tuple(map(shake, call.x)) if isinstance(call.x, tuple) else shake(call.x))


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


def _device(call: Call) -> torch.device:
    tensors = [v for v in tree_leaves((call.args, call.kwargs)) if isinstance(v, Tensor)]
    return tensors[0].device if tensors else torch.device("cpu")
