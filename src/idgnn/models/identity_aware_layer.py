"""One PyG layer as a round of heterogeneous message passing."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch_geometric.nn import MessagePassing

from idgnn.choices import Color
from idgnn.layers.eager import eager
from idgnn.models.wrapping.calls import Calls, ColoredRows, Context
from idgnn.models.wrapping.color_map import ColorMap, source_channels
from idgnn.models.wrapping.hooks import LayerHooks
from idgnn.models.wrapping.wrapped import Wrapped, copied


class IdentityAwareLayer(Wrapped):
    """One round of heterogeneous message passing (Eq. 3) by a PyG layer. Made by :func:`idgnn.identity_aware`.

    Called as the layer itself, with `colored` besides, which says for each row of `x` whether its messages are
    colored; if it was made with two colors, which color 0, 1 or 2 they have. Without it, or with no row colored, the
    output is that of the layer, bit for bit.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import SAGEConv
        >>> from idgnn import identity_aware
        >>> layer = identity_aware(SAGEConv(2, 4))
        >>> x, edge_index = torch.randn(3, 2), torch.tensor([[0, 1], [1, 2]])
        >>> layer(x, edge_index, colored=torch.tensor([True, False, False])).shape
        torch.Size([3, 4])
    """

    def __init__(self, layer: MessagePassing, color: Color = "message", colors: int = 1) -> None:
        super().__init__()
        self.module = copied(layer)
        self.color = ColorMap(source_channels(layer), like=layer, color=color, colors=colors)
        self._calls = Calls()
        self._hooks = LayerHooks("", self.color, self._calls)
        self._hooks.install(self.module)

    def forward(self, *args: Any, colored: Tensor | None = None, **kwargs: Any) -> Any:
        """The layer's own output, with the messages of the rows that `colored` `[rows]` names colored."""
        if "queries" in kwargs and not self.takes("queries"):
            raise ValueError(
                f"a wrapped {type(self.module).__name__} was given queries, but a single layer takes `colored`, the "
                "color of each row of x. For queries, wrap a model that calls the layer, or use IDGNN."
            )
        rows = None if colored is None else ColoredRows.of(colored)
        if rows is None:
            return self.module(*args, **kwargs)
        return self._colored(rows, args, kwargs)

    @eager
    def _colored(self, rows: ColoredRows, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self._calls.running(Context(rows)):
            return self.module(*args, **kwargs)

    def reset_parameters(self) -> None:
        """Draws the layer's weights again, and makes the two message functions equal."""
        self.module.reset_parameters()
        self.color.reset_parameters()
