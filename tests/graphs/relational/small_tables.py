"""A small Formula 1: drivers, circuits, races with a date, results."""

from pathlib import Path

SCHEMA = """
[drivers]
key = "id"

[circuits]
key = "id"

[races]
key = "id"
foreign = { circuit = "circuits" }
time = "date"

[results]
key = ""
foreign = { race = "races", driver = "drivers" }
time = "race.date"
"""

TABLES = {
    "drivers": "id,born,country,points,remark\na,1985-01-07,UK,1.5,tall\nb,1977-05-10,DE,\\N,fast\n"
    "c,,DE,2.5,calm\nd,1990-01-01,UK,NA,new\n",
    "circuits": "id,length\nx,5\ny,3\nz,4\n",
    "races": "id,circuit,date\n1,x,2000-05-01\n2,y,2001-05-01\n3,x,2002-05-01\n",
    "results": "race,driver,position\n1,a,1\n1,b,2\n2,a,1\n2,c,2\n3,a,3\n3,b,\n",
}


def write_tables(folder: Path, schema: str = SCHEMA, **changed: str) -> Path:
    """Writes the tables, some of them changed, and the schema."""
    for name, text in (TABLES | changed).items():
        (folder / f"{name}.csv").write_text(text)
    (folder / "schema.toml").write_text(schema)
    return folder
