"""The command `idgnn`. Verbs import PyTorch when they run, so that `--help` answers at once."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
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
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        _parse(given)()
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:  # whoever reads our output has seen enough
        sys.exit(0)
    except (ValueError, OSError) as error:
        _fail(str(error))


def _parse(given: list[str]) -> Callable[[], None]:
    """The verb with its arguments. tyro explains a mistake in a box; we keep its first sentence, on one line."""
    if given and not given[0].startswith("-") and given[0] not in _VERBS:
        close = difflib.get_close_matches(given[0], _VERBS, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"The verbs are {', '.join(_VERBS)}."
        _fail(f"there is no verb {given[0]!r}. {hint} See idgnn --help.")
    verbs: Any = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in _VERBS.items())]  # noqa: UP007
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(verbs, prog="idgnn", description=_DESCRIPTION, args=given or ["--help"])
    except SystemExit as stop:
        if not stop.code:
            raise
        lines = [line.strip("│╭╮╰╯─ ") for line in said.getvalue().splitlines()]
        first = " ".join(lines[1 : lines.index("", 1) if "" in lines[1:] else None])
        first = re.sub(r"^Error parsing (--\S+: )?(\S+: )?", r"\1", first).rstrip(".")
        guess = [lines[i + 1].split()[0] for i, line in enumerate(lines) if line == "Perhaps you meant:"]
        hint = f" Did you mean {guess[0]}?" if guess else ""
        verb = f"{given[0]} " if given and given[0] in _VERBS else ""
        _fail(f"{first}.{hint} See idgnn {verb}--help.")


def _say_warning(message: Warning | str, *_: Any) -> None:
    print(f"idgnn: note: {message}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    print(f"idgnn: {message}", file=sys.stderr)
    sys.exit(2)
