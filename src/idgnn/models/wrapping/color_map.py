r"""The second message function of a layer whose first one is given: :math:`\textsc{Msg}_1` of Eq. 3."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.parameter import UninitializedParameter, is_lazy
from torch_geometric.nn import MessagePassing

from idgnn.choices import Color
from idgnn.models.wrapping.update_map import UpdateMap, by_color


class ColorMap(nn.Module):
    r"""What a colored node sends in place of its state: an affine map of it, before the layer's own message function

    .. math::
        \textsc{Msg}_1(\mathbf{h}) = \textsc{Msg}_0(\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1),
        \qquad \mathbf{W}_1 = \mathbf{I} + \mathbf{D}.

    With `color="message+update"` it also holds the :class:`~idgnn.models.wrapping.update_map.UpdateMap` of the layer.
    With two colors it holds the map of the second one, `second`.

    The parameters are `delta`, the :math:`\mathbf{D}` above, and `bias`, :math:`\mathbf{b}_1`. Both start at zero: the
    two message functions are equal, so the network starts as exactly the plain one (Proposition 1), also in half
    precision, and weight decay pulls towards the plain network instead of towards silence.

    Args:
        channels: The width of the states, or `None` to take it from the first state that comes.
        like: The module whose device and dtype the parameters take.
        color: What is colored.
        colors: How many colors there are.

    Example:
        >>> color = ColorMap(3)
        >>> color(torch.ones(2, 3)).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """

    delta: nn.Parameter | UninitializedParameter
    bias: nn.Parameter | UninitializedParameter

    def __init__(
        self, channels: int | None, like: nn.Module | None = None, color: Color = "message", colors: int = 1
    ) -> None:
        super().__init__()
        weights = [] if like is None else [p for p in like.parameters() if p.is_floating_point()]
        place: dict[str, Any] = {"device": weights[0].device, "dtype": weights[0].dtype} if weights else {}
        self.follows_input = not weights
        self.update = UpdateMap(place) if color == "message+update" else None
        if channels is None:
            self.delta = UninitializedParameter(**place)
            self.bias = UninitializedParameter(**place)
        else:
            self.delta = nn.Parameter(torch.zeros(channels, channels, **place))
            self.bias = nn.Parameter(torch.zeros(channels, **place))
        self.second = ColorMap(channels, like, color) if colors == 2 else None

    @property
    def updates(self) -> tuple[UpdateMap, ...]:
        """The update map of each color; none if updates are not colored."""
        maps = (self.update, None if self.second is None else self.second.update)
        return tuple(each for each in maps if each is not None)

    @property
    def channels(self) -> int | None:
        """The width of the states, `None` while it is not known."""
        return None if isinstance(self.delta, UninitializedParameter) else self.delta.size(0)

    def reset_parameters(self) -> None:
        """Makes the two message functions equal again, and the update plain."""
        if self.channels is not None:
            nn.init.zeros_(self.delta)
            nn.init.zeros_(self.bias)
        if self.update is not None:
            self.update.reset_parameters()
        if self.second is not None:
            self.second.reset_parameters()

    def forward(self, h: Tensor, second: Tensor | None = None, dim: int = -2) -> Tensor:
        """`W1 h + b1` for states `h` `[..., channels]`, in the dtype of `h` also under autocast.

        `second` `[rows]` says which of the rows along `dim` have the second color.
        """
        if second is not None:
            if self.second is None:
                raise ValueError(
                    "two colors are given to a module with one. Make it with identity_aware(..., colors=2)."
                )
            return by_color(second, self.second(h), self(h), dim)
        if not h.is_floating_point():
            raise ValueError(
                f"a layer that is to be colored was given {h.dtype} states, expected floating point numbers. Convert "
                "them with x.float(), or embed them in a model and make the model identity-aware."
            )
        if self.channels is None:
            # Without weights to go by, the dtype is the input's; under autocast that one says nothing about weights.
            follow = self.follows_input and not torch.is_autocast_enabled(h.device.type)
            self.set_channels(h.size(-1), h.device, h.dtype if follow else self.delta.dtype)
        if h.size(-1) != self.channels:
            raise ValueError(
                f"a layer that is to be colored was given states of width {h.size(-1)}, but its color map has width "
                f"{self.channels}. Give it states of that width."
            )
        return h + linear(h, self.delta, self.bias).to(h.dtype)

    def set_channels(self, channels: int, device: torch.device, dtype: torch.dtype) -> None:
        """Gives a map of unknown width its width."""
        for parameter, shape in ((self.delta, (channels, channels)), (self.bias, (channels,))):
            if isinstance(parameter, UninitializedParameter):
                with torch.inference_mode(False), torch.no_grad():  # weights made in it could not be trained
                    parameter.materialize(shape, device=device, dtype=dtype)
                    parameter.zero_()
        if self.second is not None:
            self.second.set_channels(channels, device, dtype)

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # A parameter without a shape cannot be detached, which is what the default does with it.
        if self.channels is not None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
        else:
            destination[prefix + "delta"], destination[prefix + "bias"] = self.delta, self.bias

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        for name in ("delta", "bias"):
            parameter, saved = getattr(self, name), state_dict.get(prefix + name)
            if is_lazy(parameter) and isinstance(saved, Tensor) and not is_lazy(saved):
                parameter.materialize(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"{self.channels}"


def source_channels(module: MessagePassing) -> int | None:
    """The width of the states that a layer sends, as far as its attributes tell; `None` where they do not.

    Only PyG's own layers, and what is derived from them, are taken at their word: elsewhere `in_channels` may mean
    anything.

    Example:
        >>> from torch_geometric.nn import SAGEConv, LGConv
        >>> source_channels(SAGEConv((4, 8), 16)), source_channels(LGConv())
        (4, None)
    """
    layer: Any = module
    names = {c.__name__ for c in type(layer).__mro__ if c.__module__.startswith("torch_geometric.")}
    if names <= {"MessagePassing"}:
        return None
    width: Any = None
    if names & {"GINConv", "GINEConv"}:
        width = _first_linear(layer.nn)
    elif "EdgeConv" in names:
        width = (_first_linear(layer.nn) or 0) // 2
    elif "DNAConv" in names:
        width = layer.multi_head.in_channels
    elif "SignedConv" in names and not layer.first_aggr:
        width = 2 * layer.in_channels
    elif hasattr(layer, "in_channels"):
        width = layer.in_channels
    elif hasattr(layer, "channels"):
        width = layer.channels
    width = width[0] if isinstance(width, tuple) else width
    return width if isinstance(width, int) and width > 0 else None


def _first_linear(module: Any) -> int | None:
    if not isinstance(module, nn.Module):
        return None
    for child in module.modules():
        for name in ("in_features", "in_channels"):
            width = getattr(child, name, None)
            if isinstance(width, int) and width > 0 and hasattr(child, "weight"):
                return width
    return None
