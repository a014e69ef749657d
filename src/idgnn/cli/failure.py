"""How a mistake of the user is told: one sentence, also if `torchrun` has started several processes."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NoReturn

_REPORT = "TORCHELASTIC_ERROR_FILE"  # set by torchrun: the file of each process whose text it shows when all have ended
# torchrun ends all processes as soon as one fails: seconds for the first one to print.
_HEAD_START = 5.0


def fail(message: str) -> NoReturn:
    """Ends this process with code 2. Of several the first one prints; torchrun shows the reports of all of them."""
    if _REPORT in os.environ:
        reason = {"message": f"idgnn: {message}", "extraInfo": {"timestamp": str(int(time.time()))}}
        Path(os.environ[_REPORT]).write_text(json.dumps({"message": reason}), encoding="utf-8")
    if _reported_by_first():
        time.sleep(_HEAD_START)
    else:
        print(f"idgnn: {message}", file=sys.stderr)
    sys.exit(2)


def message_of(error: ValueError | OSError) -> str:
    """The text of an error; that of the operating system without its number."""
    if not isinstance(error, OSError) or error.strerror is None:
        return str(error)
    return f"{f'{error.filename} cannot be used: ' if error.filename else ''}{error.strerror.lower()}."


@contextmanager
def printed_once() -> Iterator[None]:
    """What all processes print alike, such as help and mistakes in the arguments, is printed by the first one alone."""
    if not _reported_by_first():
        yield
        return
    with open(os.devnull, "w") as nothing, redirect_stdout(nothing), redirect_stderr(nothing):
        yield


def _reported_by_first() -> bool:
    """Whether torchrun has started this process and an earlier one, so that nothing is lost if this one is silent."""
    return _REPORT in os.environ and os.environ.get("RANK", "0") != "0"
