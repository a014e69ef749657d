r"""Coloring the layers of a model over several node types.

A layer that is called for one edge type is colored as in any model (:mod:`idgnn.models.wrapping.hooks`): it has a color
map, which is used if the source type of its edges has colored rows. A layer that is given all types at once (HGTConv,
HANConv) has one for each node type. It is run up to its messages on states in which the colored rows are mapped; in the
real run, on the plain states, what its messages read from sources is replaced by what was seen then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import HANConv, HGTConv, MessagePassing
from torch_geometric.nn.module_dict import ModuleDict

from idgnn.models.wrapping.calls import Captured, CapturedError, ColoredRows, Frame, is_edges
from idgnn.models.wrapping.color_map import ColorMap
from idgnn.models.wrapping.hetero_calls import HeteroCalls, TypedContext
from idgnn.models.wrapping.hetero_trim import TypedTrim
from idgnn.models.wrapping.hooks import InstalledHooks, LayerHooks
from idgnn.models.wrapping.layer_call import LayerCall, sent_names
from idgnn.models.wrapping.update_map import with_update


class EdgeTypeHooks(LayerHooks):
    """Colors a layer that is called for one edge type at a time."""

    calls: HeteroCalls

    def before_forward(self, layer: MessagePassing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Gives the color map its width at the first call, whether colored or not; then as ever."""
        if self.color.channels is None:
            x = kwargs.get("x", args[0] if args else None)
            source = x[0] if isinstance(x, (tuple, list)) else x
            set_width(self.color, source)
        typed = next((found for each in (*args, *kwargs.values()) if (found := self.calls.typed(each))), None)
        if typed is not None and typed.trim is not None:
            return self._trimmed_round(layer, LayerCall.of(layer, args, kwargs), typed, typed.trim)
        changed = super().before_forward(layer, args, kwargs)
        if self.color.update is not None:
            frame, x = self.calls.frames[-1], LayerCall.of(layer, args, kwargs).x
            frame.own = x[1] if isinstance(x, (tuple, list)) else x
            if typed is not None:  # else the model has made one graph of all types
                frame.updated = typed.colored[typed.kind[2]]
        return changed

    def _trimmed_round(self, layer: MessagePassing, call: LayerCall, typed: TypedContext, trim: TypedTrim) -> Any:
        """The arguments for the rows and edges that matter in the round of this layer, colored sources mapped."""
        frame, k = Frame(layer), trim.rounds[self.name] - 1
        self.calls.frames.append(frame)
        source, target = call.x if isinstance(call.x, (tuple, list)) else (call.x, call.x)
        count, num_edges = trim.num_targets[k][typed.kind[2]], trim.num_edges[k][typed.kind]
        if target.size(0) < count:
            raise ValueError(f"{type(layer).__name__} was given {target.size(0)} rows, expected {count}.")
        frame.own = target = target[:count]
        frame.updated = _first(typed.colored[typed.kind[2]], count)
        rows = None if typed.context is None else _first(typed.context.rows, source.size(0))
        if rows is not None:
            source = rows.replace(source, self.color(source.index_select(0, rows.index)), 0)
        given = {value.size(1) for value in call.values if is_edges(value)}

        def change(i: int, _: str) -> Any:
            value = call.values[i]
            if i == call.key:
                return source, target
            if is_edges(value):
                return value[:, :num_edges]
            if not isinstance(value, Tensor) or isinstance(value, nn.Parameter) or not value.dim():
                return value
            return value[:num_edges] if value.size(0) in given else value

        return call.map(change).inputs

    def after_forward(self, layer: MessagePassing, args: Any, output: Any) -> Any:
        """Gives the map of the update its widths at the first call, whether colored or not; then as ever."""
        frame, update = self.calls.frame(layer), self.color.update
        out = output[0] if isinstance(output, tuple) else output
        if frame is not None and update is not None and isinstance(out, Tensor) and frame.own is not None:
            update.set_shape((out.size(-1), frame.own.size(-1)), out.device, update.weight.dtype)
        return super().after_forward(layer, args, output)


@dataclass
class _TypedFrame(Frame):
    """One running call of a layer of all types."""

    states: dict[str, Tensor] = field(default_factory=dict)
    colored: Mapping[str, ColoredRows | None] = field(default_factory=dict)


class AllTypesHooks(InstalledHooks):
    """Colors a layer that takes `x_dict` and `edge_index_dict`.

    Args:
        name: The name of the layer.
        colors: The second message function of each node type.
        calls: The calls of the wrapped module.
    """

    def __init__(self, name: str, colors: ModuleDict, calls: HeteroCalls) -> None:
        self.name, self.colors, self.calls = name, colors, calls
        self.handles = []

    def install(self, layer: MessagePassing) -> None:
        """Registers the hooks."""
        self.handles = [
            layer.register_forward_pre_hook(self.before_forward, with_kwargs=True),
            layer.register_forward_hook(self.after_forward, always_call=True),
            layer.register_propagate_forward_pre_hook(self.before_propagate),
        ]
        if isinstance(layer, HANConv):
            self.handles.append(layer.k_lin.register_forward_pre_hook(self.before_weighting))

    def before_forward(self, layer: MessagePassing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Runs the layer on colored states first, if there are any."""
        x_dict, edge_index_dict = _dicts(layer, args, kwargs)
        frame = _TypedFrame(layer, states=x_dict)
        self.calls.frames.append(frame)
        for kind, color in self.colors.items():
            if isinstance(color, ColorMap) and color.channels is None:
                set_width(color, x_dict.get(kind))
        found = {kind: self.calls.typed(edges) for kind, edges in edge_index_dict.items()}
        if not any(found.values()):
            if self.calls.colored:
                self.calls.find(tuple(edge_index_dict.values()))  # which says what is wrong with them
            return
        frame.call = _weighted(layer, x_dict, edge_index_dict, found)
        colored = dict(x_dict)
        frame.colored = next(typed for typed in found.values() if typed is not None).colored
        for (source, _, _), typed in found.items():
            if typed is not None and typed.context is not None and colored[source] is x_dict[source]:
                rows, x = typed.context.rows, x_dict[source]
                rows.check(x, 0)
                colored[source] = rows.replace(x, self.colors[source](x.index_select(0, rows.index)), 0)
        if all(colored[kind] is x_dict[kind] for kind in x_dict):
            return
        limit = 1 if isinstance(layer, HGTConv) else len(edge_index_dict) if isinstance(layer, HANConv) else None
        frame.captured = Captured(whole=True, limit=limit)
        self.calls.frames.append(Frame(layer, recording=frame.captured, call=list(frame.call)))
        try:
            layer.forward(colored, edge_index_dict)
        except CapturedError:
            pass
        finally:
            self.calls.frames.pop()

    def after_forward(self, layer: MessagePassing, args: tuple[Any, ...], output: Any) -> Any:
        """Called at the end of every call, also of one that failed; then there is no output."""
        frame = self.calls.frame(layer)
        if frame is None:
            return None
        self.calls.frames.pop()
        outs = output[0] if isinstance(output, tuple) else output
        updates = [color.update for color in self.colors.values() if isinstance(color, ColorMap)]
        if (
            all(update is None for update in updates)
            or not isinstance(outs, dict)
            or not isinstance(frame, _TypedFrame)
        ):
            return None
        outs = dict(outs)
        for key, color in self.colors.items():
            kind = str(key)
            update, x, out = getattr(color, "update", None), frame.states.get(kind), outs.get(kind)
            if update is None or x is None or out is None:
                continue
            update.set_shape((out.size(-1), x.size(-1)), out.device, update.weight.dtype)
            if (rows := frame.colored.get(kind)) is not None:
                outs[kind] = with_update(layer, [update], x, rows, 0, out)
        return (outs, *output[1:]) if isinstance(output, tuple) else outs

    def before_propagate(self, layer: MessagePassing, inputs: tuple[Any, Any, dict[str, Any]]) -> Any:
        """Records the arguments of `propagate`, or replaces what it reads from sources."""
        edge_index, size, kwargs = inputs
        frame = self.calls.frame(layer)
        if frame is None:
            return None
        if frame.records_propagate(edge_index, kwargs) or frame.captured is None:
            return None
        _, seen = frame.captured.propagate[frame.num_propagate - 1]
        changed = dict(kwargs)
        for name in sent_names(layer, "message"):
            plain, colored = kwargs.get(name), seen.get(name)
            if isinstance(plain, tuple) and isinstance(colored, tuple):
                changed[name] = (colored[0], plain[1])
            elif plain is not None:
                changed[name] = colored
        return edge_index, size, changed

    def before_weighting(self, _: nn.Module, args: tuple[Tensor, ...]) -> Any:
        """HANConv weighs the relations of a node type by a mean over its nodes: here, over the plain rows."""
        frame = self.calls.frames[-1] if self.calls.frames else None
        return None if frame is None or not frame.call else (args[0].index_select(1, frame.call.pop(0)),)


def _first(rows: ColoredRows | None, total: int) -> ColoredRows | None:
    """The colored ones among the first rows."""
    index = None if rows is None else rows.index[rows.index < total]
    return None if index is None or not index.numel() else ColoredRows(index, total)


def set_width(color: ColorMap, source: Any) -> None:
    """Gives a color map the width of the states that its layer is called with."""
    if isinstance(source, Tensor) and source.is_floating_point():
        follow = color.follows_input and not torch.is_autocast_enabled(source.device.type)
        color.set_channels(source.size(-1), source.device, source.dtype if follow else color.delta.dtype)


def end_types(layer: MessagePassing) -> tuple[list[str] | None, set[str]]:
    """The node types that a layer of all types sends messages from, `None` if it is none, and those that it reaches."""
    edge_types = layer.metadata[1] if isinstance(layer, HANConv) else getattr(layer, "edge_types", None)
    if not isinstance(edge_types, list) or not all(isinstance(kind, tuple) for kind in edge_types):
        return None, set()
    return sorted({source for source, _, _ in edge_types}), {target for _, _, target in edge_types}


def _dicts(layer: MessagePassing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[dict, dict]:
    given = dict(zip(("x_dict", "edge_index_dict"), args, strict=False)) | kwargs
    x_dict, edge_index_dict = given.get("x_dict"), given.get("edge_index_dict")
    if not isinstance(x_dict, dict) or not isinstance(edge_index_dict, dict):
        raise ValueError(
            f"{type(layer).__name__} was given {type(x_dict).__name__} and {type(edge_index_dict).__name__}, expected "
            "the dictionaries x_dict and edge_index_dict."
        )
    return x_dict, edge_index_dict


def _weighted(
    layer: MessagePassing, x_dict: dict, edge_index_dict: dict, found: dict[Any, TypedContext | None]
) -> list[Tensor]:
    """The plain rows of the node types whose relations HANConv weighs, in the order in which it does so."""
    if not isinstance(layer, HANConv):
        return []
    plain = next(typed.plain_row for typed in found.values() if typed is not None)
    targets = {target for _, _, target in edge_index_dict}
    return [plain[kind] for kind, x in x_dict.items() if kind in targets and x.size(0)]
