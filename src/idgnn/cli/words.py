"""How words on the command line become values, where tyro would not say what it expected."""

from __future__ import annotations

from dataclasses import replace
from types import NoneType
from typing import Any, get_args

from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

Spec = PrimitiveConstructorSpec[Any]


def our_rules() -> ConstructorRegistry:
    """For a `with`: the rules below, ahead of tyro's own."""
    registry = ConstructorRegistry()
    registry.primitive_rule(_optional)
    registry.primitive_rule(_number)
    return registry


def _optional(info: PrimitiveTypeInfo) -> Spec | UnsupportedTypeAnnotationError | None:
    """`X | None` is read as `X`, in its own order of choices: for `None` an option is left out."""
    kinds = [kind for kind in get_args(info.type) if kind is not NoneType]
    if NoneType not in get_args(info.type) or len(kinds) != 1:
        return None
    spec = ConstructorRegistry.get_primitive_spec(PrimitiveTypeInfo.make(kinds[0], info.markers))
    if not isinstance(spec, PrimitiveConstructorSpec):
        return spec
    return replace(
        spec,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: ["None"] if value is None else spec.str_from_instance(value),
    )


def _number(info: PrimitiveTypeInfo) -> Spec | None:
    """A number, or whole numbers one after the other."""
    if info.type in (int, float):
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar=info.type.__name__.upper(),
            instance_from_str=lambda words: _read(info.type, words[0]),
            is_instance=lambda value: isinstance(value, info.type | int),
            str_from_instance=lambda value: [str(value)],
        )
    if info.type == tuple[int, ...]:
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar="[INT [INT ...]]",
            instance_from_str=lambda words: tuple(_read(int, word) for word in words),
            is_instance=lambda value: isinstance(value, tuple) and all(isinstance(each, int) for each in value),
            str_from_instance=lambda value: list(map(str, value)),
        )
    return None


def _read(kind: type, word: str) -> Any:
    try:
        return kind(word)
    except ValueError:
        expected = "a whole number" if kind is int else "a number"
        raise ValueError(f"{word!r} was given, expected {expected}.") from None
