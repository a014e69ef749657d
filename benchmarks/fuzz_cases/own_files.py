"""Files that are written, damaged and read, and commands on them."""

from __future__ import annotations

import gzip
import io
import os
import random
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import networkx as nx
import numpy as np
from safetensors.torch import load_file

from benchmarks.fuzz_cases.draws import draw_edges
from benchmarks.fuzz_cases.outcomes import WrongError, damage, in_a_sentence
from idgnn import FileSource
from idgnn.cli.main import main
from idgnn.graphs.files.read import read_files


def files(rng: random.Random, folder: Path) -> str:
    """A graph written to a file and read again; then the file damaged, which is read or refused in a sentence."""
    size, edges = draw_edges(rng)
    names = [f"{rng.choice(('n', 'ü', 'a b', '-'))}{node}" for node in range(size)]
    kind = rng.choice(("csv", "tsv", "txt"))
    cut = {"csv": ",", "tsv": "\t", "txt": ";"}[kind]
    rows = [f"source{cut}target"] + [f"{names[a]}{cut}{names[b]}" for a, b in edges]
    nodes = [f"id{cut}age{cut}kind"] + [f"{name}{cut}{rng.randrange(90)}{cut}{rng.choice('xy')}" for name in names]
    paths = folder / f"e.{kind}", folder / f"n.{kind}"
    for path, lines in zip(paths, (rows, nodes), strict=True):
        content = ("\n".join(lines) + "\n" * rng.randrange(3)).encode()
        path.write_bytes(gzip.compress(content) if rng.random() < 0.3 else content)
    source = FileSource(*paths, label="kind", directed=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [graph] = read_files(source).graphs
        if sorted(map(tuple, graph.edge_index.t().tolist())) != sorted(edges) or graph.node_name != names:
            raise WrongError("a graph is not as it was written")
        damage(rng, rng.choice(paths))
        return in_a_sentence(lambda: read_files(source))


def command(rng: random.Random, folder: Path) -> str:
    """`idgnn train` with options drawn at random, then `idgnn predict`: answers that agree, or one sentence."""
    _write_network(rng, folder, rng.randint(2, 40))
    task = rng.choice(("node-classification", "node-clustering", "link-prediction", "shortest-path", "node-regression"))
    options = ["--edges", "e.csv", "--nodes", "n.csv", "--task", task, "--epochs", "1", "--width", "4"]
    options += ["--device", "cpu", "--runs", "runs"]
    if task.startswith("node-c") or task == "node-regression":
        options += ["--label", rng.choice(("kind", "age"))] * (task != "node-clustering")
    for name, values in (
        ("--identity", ("full", "fast", "none")),
        ("--layers", ("1", "2", "4", "0")),
        ("--conv", ("gcn", "sage", "gat", "gin", "gine")),
        ("--features", ("constant", "degree", "onehot", "embedding", "counts", "auto")),
        ("--query-batch-size", ("1", "7", "1000")),
        ("--valid", ("0.1", "0.5", "0.99", "nan")),
        ("--test", ("0.1", "0.3")),
        ("--dropout", ("0.5", "1")),
        ("--class-weights", ("balanced",)),
        ("--metric", ("accuracy", "macro_f1", "mae", "roc_auc")),
        ("--symmetric", ("True", "False")),
        ("--ignore", ("age", "kind")),
        ("--fanout", ("3", "2 2")),
        ("--keep", ("best",)),
    ):
        if rng.random() < 0.12:
            options += [name, *rng.choice(values).split()]
    code, said = _main(["train", *options], folder)
    if code != 0:
        return "refused"
    (run,) = (folder / "runs").iterdir()
    if task in ("link-prediction", "shortest-path"):
        return f"trained {task}"
    files = ["--edges", "e.csv", "--nodes", "n.csv"]
    code, said = _main(["predict", str(run), *files, "--output", "p.csv", "--device", "cpu"], folder)
    if code != 0:
        raise WrongError(f"predictions were refused: {said}")
    held_out, every = _rows(run / "predictions.csv"), {row["node"]: row for row in _rows(folder / "p.csv")}
    for row in held_out:
        for column in row.keys() & every[row["node"]].keys() - {"node", "graph", "part"}:
            ours, theirs = row[column], every[row["node"]][column]
            if ours != theirs and not np.isclose(float(ours), float(theirs), atol=1e-4):
                if _all_rows_are_equal(run):
                    return "equal rows"
                raise WrongError(f"{column} of {row['node']} is {theirs}, and was {ours} in training")
    return f"trained {task}"


def _all_rows_are_equal(run: Path) -> bool:
    """Whether a BatchNorm of the run saw equal rows alone: what it divides by, and what follows, is rounding."""
    weights = load_file(run / "model.safetensors")
    return any(float(value.max()) < 1e-12 for name, value in weights.items() if name.endswith("running_var"))


def _write_network(rng: random.Random, folder: Path, size: int) -> None:
    graph = nx.gnp_random_graph(size, min(4 / size, 1), seed=rng.randrange(2**31))
    edges = "".join(f"{a},{b}\n" for a, b in graph.edges) or "0,1\n"
    (folder / "e.csv").write_text(f"source,target\n{edges}")
    rows = "".join(f"{node},{rng.randrange(9)}.5,{rng.choice('xyz')}\n" for node in graph)
    (folder / "n.csv").write_text(f"id,age,kind\n{rows}")


def _rows(path: Path) -> list[dict[str, str]]:
    lines = [line.split(",") for line in path.read_text().splitlines()]
    return [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]


def _main(arguments: list[str], folder: Path) -> tuple[int, str]:
    """The exit code of a command, and what it said; its errors must be one sentence."""
    out, errors, before = io.StringIO(), io.StringIO(), Path.cwd()
    os.chdir(folder)
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            main(arguments)
    except SystemExit as stop:
        code = int(stop.code or 0)
    except Exception as error:
        raise WrongError(f"{' '.join(arguments)}: {''.join(traceback.format_exception(error))}") from error
    finally:
        os.chdir(before)
    if code not in (0, 2) or "Traceback" in errors.getvalue() or (code == 2 and not errors.getvalue().strip()):
        raise WrongError(f"{' '.join(arguments)} ended with {code}: {errors.getvalue()}")
    return code, errors.getvalue()
