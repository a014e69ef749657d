"""A small folder of tables, and runs on it by the command line."""

import csv
import json
from pathlib import Path

from idgnn.cli.main import main

SCHEMA = """
[users]
key = "id"
[items]
key = "id"
[visits]
key = ""
foreign = { user = "users", item = "items" }
time = "day"
"""
TASKS = """
[next]
kind = "recommendation"
entity = "user"
entity_table = "users"
item_table = "items"
time = "day"
target = "items"
train = "train.csv"
valid = "valid.csv"
test = "test.csv"
k = 2

[count]
kind = "entity-regression"
entity = "user"
entity_table = "users"
time = "day"
target = "visits"
train = "count_train.csv"
valid = "count_valid.csv"
"""


def write_tables(folder: Path) -> Path:
    """Six users; each visits two of six items every year."""
    users, items = [f"u{i}" for i in range(6)], [f"i{i}" for i in range(6)]
    favorites = {user: [items[i], items[(i + 2) % 6]] for i, user in enumerate(users)}
    (folder / "users.csv").write_text("id,remark\n" + "".join(f"{user},text of {user}\n" for user in users))
    (folder / "items.csv").write_text("id\n" + "".join(f"{item}\n" for item in items))
    visits = [f"{u},{i},200{y}-06-01\n" for y in range(5) for u in users for i in favorites[u]]
    (folder / "visits.csv").write_text("user,item,day\n" + "".join(visits))
    for part, years in (("train", (1, 2)), ("valid", (3,)), ("test", (4,))):
        rows = [[f"200{y}-01-01", u, json.dumps(favorites[u])] for y in years for u in users]
        with (folder / f"{part}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["day", "user", "items"], *rows])
        if part != "test":
            text = "".join(f"200{y}-01-01,{u},{2 * y}\n" for y in years for u in users)
            (folder / f"count_{part}.csv").write_text("day,user,visits\n" + text)
    (folder / "schema.toml").write_text(SCHEMA)
    (folder / "tasks.toml").write_text(TASKS)
    return folder


def run_of(folder: Path) -> Path:
    [run] = (folder / "runs").iterdir()
    return run


def train(folder: Path, *more: str) -> None:
    options = ["--layers", "2", "--width", "8", "--epochs", "3", "--runs", str(folder / "runs")]
    main(["train", "--tables", str(folder), *options, *more])
