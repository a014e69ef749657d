"""The tables: one file each, with everything about it. Imports no PyTorch.

The file of a table has its name in :data:`idgnn.choices.TableName`, and defines `TABLE`.
"""

from __future__ import annotations

from importlib import import_module
from typing import get_args

from idgnn.choices import TableName
from idgnn.experiments.table import Table

TABLES: dict[str, Table] = {name: import_module(f"{__name__}.{name}").TABLE for name in get_args(TableName)}
"""All tables by name, in the order in which they are run and shown."""
