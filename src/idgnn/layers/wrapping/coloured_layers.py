"""Layers of a model that colour their messages for the duration of a block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from torch_geometric.nn import MessagePassing

from idgnn.layers.wrapping.colour_map import ColourMap
from idgnn.layers.wrapping.coloured_rows import ColouredRows
from idgnn.layers.wrapping.colouring import Call, Route, run_coloured
from idgnn.layers.wrapping.examination import examine
from idgnn.layers.wrapping.shadow import shadowed


@contextmanager
def colouring(
    layers: Mapping[str, tuple[MessagePassing, ColourMap]], rows: ColouredRows, routes: dict[str, Route]
) -> Iterator[None]:
    """Within the block the layers colour their messages; their routes are found out on the way and kept."""

    def stand_in(name: str, layer: MessagePassing, colour: ColourMap) -> Any:
        original = layer.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            call = Call.of(original, args, kwargs)
            if name not in routes:
                routes[name] = examine(layer, original, call)
            return run_coloured(layer, original, call, rows, colour, routes[name])

        return forward

    with ExitStack() as stack:
        for name, (layer, colour) in layers.items():
            stack.enter_context(shadowed(layer, forward=stand_in(name, layer, colour)))
        yield
