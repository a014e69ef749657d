"""The command `idgnn`. Verbs import PyTorch when they run, so that `--help` answers at once."""

from __future__ import annotations

import difflib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import NoneType
from typing import Annotated, Any, Union, get_args

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

from idgnn.cli.arguments import options_of
from idgnn.cli.counts import Counts
from idgnn.cli.data import DataVerb
from idgnn.cli.env import Env
from idgnn.cli.failure import fail, message_of, printed_once
from idgnn.cli.inspect import Inspect
from idgnn.cli.predict import Embed, Predict
from idgnn.cli.report import Report
from idgnn.cli.reproduce import Reproduce
from idgnn.cli.train import Train

_VERBS = {
    "train": Train,
    "predict": Predict,
    "embed": Embed,
    "counts": Counts,
    "inspect": Inspect,
    "reproduce": Reproduce,
    "report": Report,
    "data": DataVerb,
    "env": Env,
}
_DESCRIPTION = "Identity-aware graph neural networks: train, predict, embed, count."

_Spec = PrimitiveConstructorSpec[Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line. Exit code 2 is for mistakes that the user can correct, 130 for Ctrl-C, 143 for SIGTERM."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _warnings_as_notes(), _terminated_as_interrupted():
            with printed_once():
                verb = _parse(given)
            verb()
    except _Terminated:
        sys.exit(143)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output, such as head, has closed it
        sys.exit(0)
    except (ValueError, OSError) as error:
        fail(message_of(error))


class _Terminated(KeyboardInterrupt):
    """SIGTERM was received."""


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """For the duration of a command, SIGTERM stops it as Ctrl-C does: cleanly, with advice on how to continue."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    process = os.getpid()

    def stop(*_: object) -> None:
        if os.getpid() != process:  # a process that was forked from it
            os._exit(143)
        raise _Terminated

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_as_notes() -> Iterator[None]:
    """For the duration of a command, prints user warnings as one line each and hides advice to programmers."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def print_note(message: Warning | str, category: type[Warning], *place: Any) -> None:
            if issubclass(category, UserWarning):
                print(f"idgnn: note: {message}", file=sys.stderr)
            else:
                show(message, category, *place)

        warnings.showwarning = print_note
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")
        yield


def _parse(given: list[str]) -> Callable[[], None]:
    """The verb with its arguments. tyro reports mistakes in the arguments, with exit code 2."""
    if given == ["--version"]:
        given = ["env"]
    registry = ConstructorRegistry()
    registry.primitive_rule(_optional_rule)
    registry.primitive_rule(_number_rule)
    if given and given[0] in _VERBS:
        verb = tyro.cli(_VERBS[given[0]], prog=f"idgnn {given[0]}", args=given[1:], registry=registry)
        return replace(verb, written=options_of(given)) if isinstance(verb, Train) else verb
    if given and not given[0].startswith("-"):
        close = difflib.get_close_matches(given[0], _VERBS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The verbs are {', '.join(_VERBS)}."
        fail(f"there is no verb {given[0]!r}. {hint} See idgnn --help.")
    verbs: Any = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in _VERBS.items())]  # noqa: UP007
    return tyro.cli(verbs, prog="idgnn", description=_DESCRIPTION, args=given or ["--help"], registry=registry)


def _optional_rule(info: PrimitiveTypeInfo) -> _Spec | UnsupportedTypeAnnotationError | None:
    """`X | None` is read as `X`, with its own choices: for `None` the option is left out."""
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


def _number_rule(info: PrimitiveTypeInfo) -> _Spec | None:
    """A number or several whole numbers; the error says what was expected, which tyro's own does not."""
    if info.type not in (int, float, tuple[int, ...]):
        return None
    kind = float if info.type is float else int
    expected = "a number" if kind is float else "a whole number"

    def number(word: str) -> int | float:
        try:
            return kind(word)
        except ValueError:
            raise ValueError(f"{word!r} was given, expected {expected}.") from None

    if info.type == tuple[int, ...]:
        return PrimitiveConstructorSpec(
            nargs="*",
            metavar="[INT [INT ...]]",
            instance_from_str=lambda words: tuple(map(number, words)),
            is_instance=lambda value: isinstance(value, tuple) and all(isinstance(each, int) for each in value),
            str_from_instance=lambda value: list(map(str, value)),
        )
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=kind.__name__.upper(),
        instance_from_str=lambda words: number(words[0]),
        is_instance=lambda value: isinstance(value, kind | int),
        str_from_instance=lambda value: [str(value)],
    )
