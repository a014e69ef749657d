"""Speed, as far as it can be tested on any machine: there are no more rows and messages than there were."""

import json

from benchmarks.rows import RECORD, measure


def test_rows_and_messages_are_as_recorded():
    recorded = json.loads(RECORD.read_text())
    found = measure()
    changed = {
        f"{name}: {what}": (before, found.get(name, {}).get(what))
        for name, counts in recorded.items()
        for what, before in counts.items()
        if found.get(name, {}).get(what) != before
    }
    assert found.keys() == recorded.keys() and not changed, (
        f"{changed} (before, now). If that is meant to be, record it: python -m benchmarks.rows --write"
    )
