"""The command `idgnn`. Verbs import PyTorch when they run, so that `--help` answers at once."""

from __future__ import annotations

import contextlib
import io
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import tyro

from idgnn.cli.counts import Counts
from idgnn.cli.data import DataVerb
from idgnn.cli.embed import Embed
from idgnn.cli.env import Env
from idgnn.cli.inspect import Inspect
from idgnn.cli.predict import Predict
from idgnn.cli.train import Train

Verb = (
    Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Embed, tyro.conf.subcommand("embed")]
    | Annotated[Counts, tyro.conf.subcommand("counts")]
    | Annotated[Inspect, tyro.conf.subcommand("inspect")]
    | Annotated[DataVerb, tyro.conf.subcommand("data")]
    | Annotated[Env, tyro.conf.subcommand("env")]
)
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
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            verb: Any = tyro.cli(Verb, prog="idgnn", description=_DESCRIPTION, args=given or ["--help"])  # type: ignore
    except SystemExit as stop:
        if stop.code in (0, None):
            raise
        lines = [line.strip("│╭╮╰╯─ ") for line in said.getvalue().splitlines()]
        first = " ".join(line for line in lines[1 : lines.index("", 1) if "" in lines[1:] else None])
        first = re.sub(r"^Error parsing \S+: ", "", first).rstrip(".")
        guess = [lines[i + 1].split()[0] for i, line in enumerate(lines) if line == "Perhaps you meant:"]
        hint = f" Did you mean {guess[0]}?" if guess else ""
        verb_given = " ".join(["idgnn", *(word for word in given[:1] if not word.startswith("-"))])
        _fail(f"{first}.{hint} See {verb_given} --help.")
    return verb


def _say_warning(message: Warning | str, *_: Any) -> None:
    print(f"idgnn: note: {message}", file=sys.stderr)


def _fail(message: str) -> NoReturn:
    print(f"idgnn: {message}", file=sys.stderr)
    sys.exit(2)
