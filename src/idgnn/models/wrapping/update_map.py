r"""What a colored row adds to its own update: the second weights of `color="message+update"` for any layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.parameter import UninitializedParameter, is_lazy

from idgnn.models.wrapping.calls import ColoredRows


class UpdateMap(nn.Module):
    r"""Adds a linear map of its own input to the output of the colored row:

    .. math:: \mathbf{h}_v' = \textsc{Layer}(\ldots)_v + \mathbf{W}_c \mathbf{h}_v

    :math:`\mathbf{W}_c` is zero at first: a wrapped network starts as exactly the plain one. Its widths are those of
    the first call.

    Args:
        place: Device and dtype of the weights.

    Example:
        >>> update = UpdateMap({})
        >>> update(torch.ones(2, 3), torch.ones(2, 4)).tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """

    weight: nn.Parameter | UninitializedParameter

    def __init__(self, place: dict[str, Any]) -> None:
        super().__init__()
        self.weight = UninitializedParameter(**place)

    @property
    def shape(self) -> torch.Size | None:
        """`[out_channels, in_channels]`, `None` before the first call."""
        return None if isinstance(self.weight, UninitializedParameter) else self.weight.shape

    def reset_parameters(self) -> None:
        """Makes the update plain again."""
        if self.shape is not None:
            nn.init.zeros_(self.weight)

    def forward(self, h: Tensor, out: Tensor) -> Tensor:
        """`out + W h` for inputs `[..., in_channels]` and outputs `[..., out_channels]` of the same rows."""
        self.set_shape((out.size(-1), h.size(-1)), h.device, self.weight.dtype)
        if self.shape != (out.size(-1), h.size(-1)):
            raise ValueError(
                f"a layer whose update is colored maps width {h.size(-1)} to {out.size(-1)}, but its update map was "
                f"made for {list(reversed(self.weight.shape))}. Give it states of the width of its first call."
            )
        return out + linear(h, self.weight).to(out.dtype)

    def set_shape(self, shape: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> None:
        """Gives a map of unknown widths its widths."""
        if isinstance(self.weight, UninitializedParameter):
            with torch.inference_mode(False), torch.no_grad():  # weights made in it could not be trained
                self.weight.materialize(shape, device=device, dtype=dtype)
                self.weight.zero_()

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        # A parameter without a shape cannot be detached, which is what the default does with it.
        if self.shape is not None:
            super()._save_to_state_dict(destination, prefix, keep_vars)
        else:
            destination[prefix + "weight"] = self.weight

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        saved = state_dict.get(prefix + "weight")
        if isinstance(self.weight, UninitializedParameter) and isinstance(saved, Tensor) and not is_lazy(saved):
            self.weight.materialize(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def extra_repr(self) -> str:
        return f"{self.shape}"


def by_color(second: Tensor, of_second: Tensor, of_first: Tensor, dim: int) -> Tensor:
    """Rows along `dim` of one tensor where they have the second color, of the other where they have the first."""
    shape = [1] * of_first.dim()
    shape[dim] = -1
    return torch.where(second.view(shape), of_second, of_first)


def with_update(
    layer: nn.Module, updates: Sequence[UpdateMap], own: Tensor, rows: ColoredRows, dim: int, output: Any
) -> Any:
    """What a layer returns, with the update of its colored rows along `dim` colored; `own` are the inputs of all."""
    out = output[0] if isinstance(output, tuple) else output
    if not isinstance(out, Tensor) or out.dim() != own.dim() or not out.is_floating_point():
        given = f"a tensor of {out.dim()} dimensions" if isinstance(out, Tensor) else f"a {type(out).__name__}"
        raise ValueError(
            f"{type(layer).__name__} was given states of {own.dim()} dimensions and returns {given}, so that its "
            'update cannot be colored. Use color="message".'
        )
    index = rows.index[rows.index < out.size(dim)]  # targets are the first sources, as in PyG's samplers
    mine, given = out.index_select(dim, index), own.index_select(dim, index)
    changed = [update(given, mine) for update in updates]
    new = changed[0]
    if rows.second is not None:
        new = by_color(rows.second[: index.numel()], changed[1], changed[0], dim)
    out = out.index_copy(dim, index, new)
    return (out, *output[1:]) if isinstance(output, tuple) else out
