"""All expectations that some tables allow to judge, and how many of them hold."""

from __future__ import annotations

from collections.abc import Sequence

from idgnn.experiments.spec import Protocol
from idgnn.report.blocks import Block, Head, Line, Shown
from idgnn.report.expectations.beside_pgnn import beside_pgnn
from idgnn.report.expectations.check import SIGNS, Tally, Verdict
from idgnn.report.expectations.full_by_architecture import full_by_architecture
from idgnn.report.expectations.gain_and_level import gain, level
from idgnn.report.expectations.plain_gnns import plain_gnns
from idgnn.report.layout import PROTOCOLS
from idgnn.report.tables import Table

_VERDICTS: tuple[Verdict, ...] = ("holds", "does not hold", "not run")


def expectations(tables: Sequence[Table]) -> list[Block]:
    """How many hold, and then each of them; nothing if no table has any, or if it is of small runs."""
    if any(table.layout.quick for table in tables):
        return []
    made = (write(tables) for write in (gain, level, full_by_architecture, beside_pgnn, plain_gnns))
    found = [block for block in made if block is not None]
    return [_counts([tally for block in found for tally in block.tallies]), *found] if found else []


def total(blocks: Sequence[Block], protocol: Protocol) -> Tally:
    """What :func:`expectations` found under a protocol, taken together."""
    tallies = blocks[0].tallies if blocks else ()  # the first block counts all others
    return Tally(
        "all", protocol, tuple(check for each in tallies if each.protocol == protocol for check in each.checks)
    )


def headline(blocks: Sequence[Block]) -> list[str]:
    """A sentence for each protocol."""
    said = []
    for tally in (total(blocks, protocol) for protocol in PROTOCOLS):
        held, not_held, not_run = (tally.number(verdict) for verdict in _VERDICTS)
        so_far = sum(check.so_far for check in tally.checks)
        if tally.checks:
            said.append(
                f"Of {len(tally.checks)} expectations under the protocol {tally.protocol}, {held} held and {not_held} "
                f"did not{f' ({so_far} of these so far)' if so_far else ''}; for {not_run} there is no result yet."
            )
    return said


def _counts(tallies: Sequence[Tally]) -> Block:
    """A row for each kind of expectation."""
    ordered = [tally for protocol in PROTOCOLS for tally in tallies if tally.protocol == protocol]
    lines = tuple(
        Line(
            tally.name,
            (*(Shown(_count(tally, verdict)) for verdict in _VERDICTS), Shown(str(len(tally.checks)))),
            f"Protocol {tally.protocol}",
        )
        for tally in ordered
    )
    heads = tuple(map(Head, ("✓ holds", "✗ does not hold", "not run", "of")))
    return Block("how-many-hold", "How many hold", SIGNS, "expectation", heads, lines, tuple(ordered))


def _count(tally: Tally, verdict: Verdict) -> str:
    number, so_far = tally.number(verdict), tally.so_far(verdict)
    return f"{number}" + (f" ({so_far} so far)" if so_far else "")
