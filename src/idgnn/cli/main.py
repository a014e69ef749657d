"""The command `idgnn`. Verbs import PyTorch when they run, so that `--help` answers at once."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from itertools import dropwhile, takewhile
from typing import Annotated, Any, NoReturn, Union

import tyro

from idgnn.cli.counts import Counts
from idgnn.cli.data import DataVerb
from idgnn.cli.embed import Embed
from idgnn.cli.env import Env
from idgnn.cli.inspect import Inspect
from idgnn.cli.predict import Predict
from idgnn.cli.report import Report
from idgnn.cli.reproduce import Reproduce
from idgnn.cli.train import Train
from idgnn.cli.words import our_rules

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


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line. Exit code 2 is for what the user can put right, 130 for Ctrl-C."""
    warnings.showwarning = _say_warning
    # What libraries tell those who write code with them.
    warnings.filterwarnings("ignore", category=FutureWarning)
    warnings.filterwarnings("ignore", "TensorFloat32 tensor cores")
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _parse(given)()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever reads our output has seen enough
        sys.exit(0)
    except (ValueError, OSError) as error:
        _fail(_sentence(error))


def _parse(given: list[str]) -> Callable[[], None]:
    """The verb with its arguments. tyro explains a mistake in a box; we keep its first sentence, on one line."""
    if given == ["--version"]:
        given = ["env"]
    if given and not given[0].startswith("-") and given[0] not in _VERBS:
        close = difflib.get_close_matches(given[0], _VERBS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The verbs are {', '.join(_VERBS)}."
        _fail(f"there is no verb {given[0]!r}. {hint} See idgnn --help.")
    verbs: Any = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in _VERBS.items())]  # noqa: UP007
    said = io.StringIO()
    try:
        with our_rules(), contextlib.redirect_stderr(said):
            return tyro.cli(verbs, prog="idgnn", description=_DESCRIPTION, args=given or ["--help"])
    except SystemExit as stop:
        if not stop.code:
            raise
        # The title, the sentence, and more, between rules; where output is not UTF-8, these are of hyphens.
        lines = [re.sub(r"^-+$", "", line.strip("│╭╮╰╯─ ")) for line in said.getvalue().splitlines()]
        first = " ".join(takewhile(bool, dropwhile(lambda line: not line, lines[1:])))
        first = re.sub(r"^Error parsing (--\S+: )?(\S+: )?", r"\1", first).rstrip(".")
        first, close = _choice(first)
        guess = close or [lines[i + 1].split()[0] for i, line in enumerate(lines) if line == "Perhaps you meant:"]
        guess = [name for each in guess if (name := each.rstrip(",")) not in given]  # which is of another verb
        hint = f" Did you mean {guess[0]}?" if guess else ""
        verb = f"{given[0]} " if given and given[0] in _VERBS else ""
        _fail(f"{first}.{hint} See idgnn {verb}--help.")


def _choice(said: str) -> tuple[str, list[str]]:
    """What tyro says about a choice that is none, as we say it, and the choices that may have been meant."""
    found = re.fullmatch(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*)\)", said)
    if found is None:
        return said, []
    choices = re.findall(r"'([^']*)'", found[3])
    close = difflib.get_close_matches(found[1], choices, n=1)
    return f"{found[2]} is {found[1]!r}, expected one of {', '.join(choices)}", close


def _sentence(error: ValueError | OSError) -> str:
    """What an error says; of the system's own, without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{f'{error.filename} cannot be used: ' if error.filename else ''}{error.strerror.lower()}."


def _say_warning(message: Warning | str, *_: Any) -> None:
    print(f"idgnn: note: {message}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    print(f"idgnn: {message}", file=sys.stderr)
    sys.exit(2)
