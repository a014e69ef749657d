"""Layers of a model that color their messages for the duration of a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch_geometric.nn import MessagePassing

from idgnn.layers.wrapping.color_map import ColorMap
from idgnn.layers.wrapping.colored_rows import ColoredRows
from idgnn.layers.wrapping.coloring import Call, Route, run_colored
from idgnn.layers.wrapping.examination import examine
from idgnn.layers.wrapping.shadow import shadowed


@contextmanager
def coloring(
    layers: Mapping[str, tuple[MessagePassing, ColorMap]], rows: ColoredRows, routes: dict[str, Route]
) -> Iterator[None]:
    """Within the block the layers color their messages; their routes are found out on the way and kept."""

    def stand_in(name: str, layer: MessagePassing, color: ColorMap) -> Any:
        original = layer.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            call = Call.of(original, args, kwargs)
            if name not in routes:
                routes[name] = examine(layer, original, call)
            return run_colored(layer, original, call, rows, color, routes[name])

        return forward

    with ExitStack() as stack:
        for name, (layer, color) in layers.items():
            stack.enter_context(shadowed(layer, forward=stand_in(name, layer, color)))
        yield
