"""Tables in Parquet files, for which pyarrow must be installed."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path


def parquet_columns(path: Path) -> dict[str, list[str]]:
    """The columns of a Parquet file as text, as they would stand in a CSV file; what is null is empty."""
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ValueError(f"{path} is a Parquet file: pip install pyarrow, or save it as .csv.") from error
    if not path.is_file():
        raise ValueError(f"there is no file {path}. Check the path; it is relative to {Path.cwd()}.")
    try:
        columns = parquet.read_table(path).to_pydict()
    except Exception as error:  # pyarrow has many
        raise ValueError(f"{path} cannot be read as a Parquet file: {error}") from error
    return {name: ["" if cell is None else str(cell) for cell in cells] for name, cells in columns.items()}
