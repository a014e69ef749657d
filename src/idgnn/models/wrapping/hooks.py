r"""Coloring what a PyG layer sends and nothing else: the heterogeneous message passing of Eq. 3, by public hooks.

A colored node's *message* comes from :math:`\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1`; the state that a node brings to
its own AGG stays as it is. So a layer needs two versions of its input, one to send and one to receive with. There are
three routes, and which of them is exact for a layer is decided at its first colored call
(:mod:`idgnn.models.wrapping.examine`):

* *rows*: the layer is run up to its call of `propagate` on the mapped states of the colored rows alone. In the real
  run, on the plain states, what `propagate` reads from the source of an edge is replaced for the colored rows.
* *whole*: the same with the states of all rows, for layers that normalize their states over rows or by the edges.
* *pairs*: the layer takes `(x_source, x_target)`, and is given the colored and the plain states.

The hooks are installed once. They belong to the layer: they are copied and pickled with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from torch import Tensor, nn
from torch_geometric import EdgeIndex
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from idgnn.models.wrapping.calls import Calls, Captured, CapturedError, ColoredRows, Frame, Trim, is_edges
from idgnn.models.wrapping.color_map import ColorMap
from idgnn.models.wrapping.examine import examine
from idgnn.models.wrapping.layer_call import LayerCall, Route, requested, rows_call, sent_names
from idgnn.models.wrapping.update_map import with_update


class InstalledHooks:
    """Hooks of a wrapped module on a layer, which can be taken away from a copy of it."""

    handles: list[Any]  # kept because unpickling one reserves its number


class LayerHooks(InstalledHooks):
    """Colors the messages of one layer in the calls of a wrapped module.

    Args:
        name: The name of the layer.
        color: The second message function.
        calls: The calls of the wrapped module.
    """

    def __init__(self, name: str, color: ColorMap, calls: Calls) -> None:
        self.name, self.color, self.calls = name, color, calls
        self.route: Route | None = None
        self.handles = []

    def install(self, layer: MessagePassing) -> None:
        """Registers the hooks."""
        self.handles = [
            layer.register_forward_pre_hook(self.before_forward, with_kwargs=True),
            layer.register_forward_hook(self.after_forward, always_call=True),
            layer.register_propagate_forward_pre_hook(self.before_propagate),
            layer.register_message_forward_pre_hook(self.before_message),
            layer.register_edge_update_forward_pre_hook(self.before_edge_update),
        ]

    def before_forward(self, layer: MessagePassing, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Changes the arguments of a colored call."""
        frame = Frame(layer)
        self.calls.frames.append(frame)
        context = self.calls.find((*args, *kwargs.values()))
        if context is None:
            return None
        call = LayerCall.of(layer, args, kwargs)
        if self.route is None:
            self.route = examine(layer, self, call, context.rows)
        rows, num_targets, dim = context.rows, None, layer.node_dim
        trim = context.trim
        if trim is not None:
            call, rows, num_targets = self._trimmed(call, trim)
        source, target = call.x if isinstance(call.x, tuple) else (call.x, call.x)
        if not isinstance(source, Tensor):
            raise ValueError(
                f"{type(layer).__name__} was given no states to send: x is {type(source).__name__}, expected a tensor."
            )
        fewer = num_targets is not None and num_targets < target.size(dim)
        if trim is not None and fewer and self.route.repeats and num_targets >= trim.least_part * target.size(dim):
            frame.num_targets, fewer = num_targets, False  # the other rows are cut off from what it returns
        if fewer:
            target = target.narrow(dim, 0, num_targets)
        if rows is None:
            return (call.with_x((source, target)) if fewer else call).inputs
        rows.check(source, dim)
        frame.rows, sent = rows, self.color(source.index_select(dim, rows.index), rows.second, dim)
        frame.own, frame.updated = target if isinstance(target, Tensor) else source, rows
        if fewer or self.route.kind == "pairs" or isinstance(call.x, tuple):
            return call.with_x((rows.replace(source, sent, dim), target)).inputs
        frame.call = call, sent
        frame.captured = self.capture(layer, frame, self.route, self.route.rounds)
        return call.inputs

    def after_forward(self, layer: MessagePassing, args: Any, output: Any) -> Any:
        """Called at the end of every call, also of one that failed; then there is no output."""
        frame = self.calls.frame(layer)
        if frame is None:
            return None
        self.calls.frames.pop()
        colored = frame.rows is not None and output is not None
        if colored and not frame.num_propagate and any(is_edges(v) and v.size(1) for v in args):
            raise RuntimeError(
                f"the hooks of {type(layer).__name__}.propagate were left out, as torch.compile does inside of a "
                "compiled part, so that its messages have no color. Compile the model that identity_aware returns."
            )
        if output is not None and frame.num_targets is not None:
            output = _first_rows(output, layer.node_dim, frame.num_targets)
        if output is None or frame.updated is None or self.color.update is None:
            return output
        assert frame.own is not None
        return with_update(layer, self.color.updates, frame.own, frame.updated, layer.node_dim, output)

    def _trimmed(self, call: LayerCall, trim: Trim) -> tuple[LayerCall, ColoredRows | None, int]:
        """One round with the edges that matter in it; its colored sources, and how many targets.

        They are the first edges of those that the model was given. Of edges that it made of these, by a filter for
        example, they are the edges into the targets.
        """
        k = trim.rounds[self.name] - 1
        num_edges, num_targets = trim.num_edges[k], trim.num_targets[k]
        first, parts = slice(num_edges), dict[int, slice | Tensor]()  # by the place among the arguments
        for i, value in enumerate(call.values):
            if is_edges(value):
                given = value.size(1) == trim.num_edges[0] and self.calls.is_given(value)
                parts[i] = first if given else value[1] < num_targets

        def change(i: int, _: str) -> Any:
            value = call.values[i]
            if i == call.key or not isinstance(value, Tensor) or not value.dim():
                return value
            if i in parts:
                return value[:, parts[i]]
            # In a chain all else belongs to edges.
            mine = [part for place, part in parts.items() if call.values[place].size(1) == value.size(0)]
            if len(mine) > 1 and any(part is not first for part in mine):
                raise ValueError(
                    f"the layer {self.name!r} was given several sets of {value.size(0)} edges that the model made, "
                    f"and it is not known to which of them a value of {value.size(0)} rows belongs. Call a layer for "
                    "each set of edges."
                )
            return value[mine[0]] if mine else value

        return call.map(change), trim.rows[k], num_targets

    def capture(self, layer: MessagePassing, frame: Frame, route: Route, limit: int | None) -> Captured:
        """What the layer sends for colored rows: its arguments of `propagate`, recorded in a run of its own."""
        call, sent = frame.call
        rows = frame.rows
        assert rows is not None
        given = [name for name, value in zip(call.names, call.values, strict=True) if value is not None]
        whole = route.kind == "whole" or any(name not in (route.roles or {}) for name in given)
        if whole:
            call = call.with_x(rows.replace(call.x, sent, layer.node_dim))
        else:
            call = rows_call(call, sent, rows.index, route.roles or {})
        captured = Captured(whole, limit)
        self.calls.frames.append(Frame(layer, recording=captured))
        training = any(part.training for part in layer.modules())
        kept = [(buffer, buffer.clone()) for buffer in layer.buffers()] if training else []
        try:
            call.run(layer)
        except CapturedError:
            pass
        finally:
            self.calls.frames.pop()
            for buffer, value in kept:  # running statistics are those of the real run
                buffer.data.copy_(value)
        return captured

    def before_propagate(self, layer: MessagePassing, inputs: tuple[Any, Any, dict[str, Any]]) -> Any:
        """Records the arguments of `propagate`, or replaces what it reads from colored sources."""
        edge_index, size, kwargs = inputs
        frame = self.calls.frame(layer)
        if frame is None:
            if self.calls.find((edge_index,)) is not None:
                raise ValueError(
                    f"propagate of {type(layer).__name__} is called from outside of that layer, where it cannot be "
                    "colored. Call the layer itself."
                )
            return None
        if frame.records_propagate(edge_index, kwargs) or frame.captured is None:
            return None
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
        _, seen = self._captured(layer, frame, "propagate")
        functions = ("message", "aggregate", "update")
        sent, wanted = sent_names(layer, *functions), requested(layer, *functions)
        dim, colored = layer.node_dim, {}
        for name in sent:
            if kwargs.get(name) is not None:
                colored[name] = self._source(frame, kwargs[name], seen.get(name), dim)
        # A name that is also requested as it is (`x` beside `x_j`) has to stay one tensor: its messages change later.
        late = {name: value for name, value in colored.items() if name in wanted and isinstance(value, Tensor)}
        frame.late = {f"{name}_j": value.index_select(dim, edge_index[0]) for name, value in late.items()}
        pairs = {n: (value, _target(kwargs[n])) for n, value in colored.items() if n not in wanted}
        return edge_index, size, {**kwargs, **pairs}

    def before_message(self, layer: MessagePassing, inputs: tuple[dict[str, Any]]) -> Any:
        """Replaces what was lifted from colored sources."""
        frame = self.calls.frame(layer)
        return None if frame is None or not frame.late else {**inputs[0], **frame.late}

    def before_edge_update(self, layer: MessagePassing, inputs: tuple[Any, Any, dict[str, Any]]) -> Any:
        """The same for `edge_update`, whose arguments were lifted to the edges already in most layers."""
        edge_index, size, kwargs = inputs
        frame = self.calls.frame(layer)
        if frame is None:
            return None
        frame.num_edge_update += 1
        if frame.recording is not None:
            frame.recording.edge_update.append((edge_index, kwargs))
            return None
        if frame.captured is None or frame.rows is None:
            return None
        if isinstance(edge_index, EdgeIndex):
            edge_index = edge_index.as_tensor()
        _, seen = self._captured(layer, frame, "edge_update")
        dim, colored = layer.node_dim, {}
        rank = frame.rows.rank[edge_index[0]]
        edges = (rank >= 0).nonzero().flatten()
        for name in sent_names(layer, "edge_update"):
            if isinstance(lifted := kwargs.get(f"{name}_j"), Tensor):
                taken = edges if frame.captured.whole else rank[edges]
                colored[f"{name}_j"] = lifted.index_copy(dim, edges, seen[f"{name}_j"].index_select(dim, taken))
            elif kwargs.get(name) is not None:
                colored[name] = self._source(frame, kwargs[name], seen.get(name), dim), _target(kwargs[name])
        return edge_index, size, {**kwargs, **colored}

    def _captured(
        self, layer: MessagePassing, frame: Frame, which: Literal["propagate", "edge_update"]
    ) -> tuple[Any, dict[str, Any]]:
        """What was captured for this call of `propagate` or `edge_update`."""
        place = (frame.num_propagate if which == "propagate" else frame.num_edge_update) - 1
        assert frame.captured is not None and self.route is not None
        if place >= len(getattr(frame.captured, which)):  # more often than at the first call, for example by edge type
            frame.captured = self.capture(layer, frame, replace(self.route, kind="whole"), None)
        calls = getattr(frame.captured, which)
        if place >= len(calls):
            raise ValueError(
                f"{type(layer).__name__} calls propagate a different number of times when the states differ, so that "
                "messages cannot be told apart. Make the number of calls independent of x."
            )
        return calls[place]

    def _source(self, frame: Frame, plain: Any, seen: Any, dim: int) -> Any:
        """One argument of `propagate` as it is read from sources: colored rows from what was captured."""
        plain, seen = _source(plain), _source(seen)
        if not isinstance(plain, Tensor) or not isinstance(seen, Tensor) or plain is seen:
            return plain
        assert frame.rows is not None and frame.captured is not None
        seen = seen.index_select(dim, frame.rows.index) if frame.captured.whole else seen
        return frame.rows.replace(plain, seen, dim)


class ReversibleParameters:
    """The `parameters` of one of PyG's reversible blocks, which computes the gradients of those by itself: its own
    weights, and in a colored call the color maps of its layers.

    Args:
        block: The block.
        colors: The color maps of its layers.
        calls: The calls of the wrapped module.
    """

    def __init__(self, block: InvertibleModule, colors: list[ColorMap], calls: Calls) -> None:
        self.block, self.colors, self.calls = block, colors, calls

    def __call__(self, recurse: bool = True) -> Iterator[nn.Parameter]:
        """Yields them, as the method of the module does."""
        yield from nn.Module.parameters(self.block, recurse)
        if self.calls.colored:
            for color in self.colors:
                yield from color.parameters()


def remove_hooks(module: nn.Module) -> None:
    """Takes the hooks of an earlier wrapped module away from a copy of its parts."""
    for layer in module.modules():
        vars(layer).pop("parameters", None) if isinstance(layer, InvertibleModule) else None
        if isinstance(layer, MessagePassing):
            for hook in list(layer._forward_pre_hooks.values()):
                if isinstance(owner := getattr(hook, "__self__", None), InstalledHooks):
                    for handle in owner.handles:
                        handle.remove()


def _first_rows(output: Any, dim: int, number: int) -> Any:
    """The first rows of what a layer returns; beside them a tuple holds what was asked for, attention for example."""
    if isinstance(output, tuple):
        return output[0].narrow(dim, 0, number), *output[1:]
    return output.narrow(dim, 0, number)


def _source(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value


def _target(value: Any) -> Any:
    return value[1] if isinstance(value, (tuple, list)) else value
