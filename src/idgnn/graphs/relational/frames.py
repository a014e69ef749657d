"""Tables as `TensorFrame`s of pytorch-frame (the extra `relational`), and their columns as its encoders take them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from idgnn.graphs.relational.columns import ColumnCode, cells_of
from idgnn.graphs.relational.tables import KeyedTable
from idgnn.graphs.relational.times import year_of

if TYPE_CHECKING:
    from torch_frame import TensorFrame

_STYPES = {"number": "numerical", "category": "categorical", "time": "timestamp"}


def tensor_frame(table: KeyedTable, codes: tuple[ColumnCode, ...]) -> TensorFrame:
    """The columns of a table: numbers as they are, categories as numbers, times by their parts.

    A missing cell, and a category that is not known, are what pytorch-frame has for them: NaN, or -1.
    """
    frame = _package()
    parts: dict[str, list[np.ndarray]] = {}
    for code, values in cells_of(table, codes):  # [rows]
        if code.kind == "category":
            parts.setdefault(code.kind, []).append(np.where(np.isnan(values), -1, values).astype(np.int64))
        elif code.kind == "number":
            parts.setdefault(code.kind, []).append(values.astype(np.float32))
        else:
            parts.setdefault(code.kind, []).append(_time_parts(values, code))
    features = {getattr(frame, _STYPES[kind]): torch.from_numpy(np.stack(each, 1)) for kind, each in parts.items()}
    return frame.TensorFrame(features, column_names(codes), num_rows=len(table))


def column_names(codes: tuple[ColumnCode, ...]) -> dict[Any, list[str]]:
    """The columns of each of pytorch-frame's types."""
    frame = _package()
    names: dict[Any, list[str]] = {}
    for code in codes:
        if code.kind in _STYPES:
            names.setdefault(getattr(frame, _STYPES[code.kind]), []).append(code.name)
    return names


def column_statistics(codes: tuple[ColumnCode, ...]) -> dict[str, dict[Any, Any]]:
    """What pytorch-frame's encoders of numbers, categories and times want to know of each column.

    A missing time is filled in by the mean time, where pytorch-frame has the median.
    """
    _package()
    from torch_frame.data.stats import StatType

    found: dict[str, dict[Any, Any]] = {}
    for code in codes:
        if code.kind == "number":
            found[code.name] = {StatType.MEAN: code.mean, StatType.STD: code.scale}
        elif code.kind == "category":
            found[code.name] = {StatType.COUNT: (list(code.categories), [])}
        elif code.kind == "time":
            middle = torch.from_numpy(_time_parts(np.array([code.mean]), code)[0])
            found[code.name] = {StatType.YEAR_RANGE: [year_of(code.first)], StatType.MEDIAN_TIME: middle}
    return found


def _time_parts(seconds: np.ndarray, code: ColumnCode) -> np.ndarray:
    """Year, month, day, weekday, hour, minute and second, as pytorch-frame numbers them `[rows, 7]`; -1 without a time.

    Years before the first one of the training rows count as that one: pytorch-frame's encoding has none before it.
    """
    gone = np.isnan(seconds)
    whole = np.where(gone, 0, seconds).astype(np.int64)
    moment = whole.astype("datetime64[s]")
    year, month, day = (moment.astype(f"datetime64[{unit}]") for unit in "YMD")
    days = day.astype(np.int64)  # since 1970-01-01, a Thursday
    parts = [
        np.maximum(year.astype(np.int64) + 1970, year_of(code.first)),
        (month - year.astype("datetime64[M]")).astype(np.int64),
        (day - month.astype("datetime64[D]")).astype(np.int64),
        (days + 3) % 7,
        whole // 3600 % 24,
        whole // 60 % 60,
        whole % 60,
    ]
    return np.where(gone[:, None], -1, np.stack(parts, axis=1))


def _package() -> Any:
    try:
        import torch_frame
    except ImportError:
        raise ValueError("columns='frame' needs a package: pip install 'idgnn[relational]'.") from None
    return torch_frame
