"""The cases of the soak: each draws graphs, models, options or faults, and checks what comes out against a second way.

A case returns what it was (for the table of figures), and raises if an answer is wrong or an error is no sentence.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import networkx as nx
import numpy as np
import torch
from torch_geometric.data import Data

from idgnn import IDGNN, FileSource, ModelSettings, Run, TaskSettings, TrainOptions, cycle_counts, train, walk_counts
from idgnn.cli.main import main
from idgnn.experiments.spec import RunRecord
from idgnn.experiments.store import Store
from idgnn.graphs.files.read import read_files
from idgnn.training.run_folder import RunFolder
from tests.laws import brute_force

CONVS = ("gcn", "sage", "gat", "gin")
KEPT = ("model.safetensors", "model.json", "predictions.csv")


class WrongError(AssertionError):
    """An answer is wrong, or an error is not a sentence."""


def draw_edges(rng: random.Random, most: int = 14) -> tuple[int, list[tuple[int, int]]]:
    """The number of nodes and edges of an awkward graph: empty, hubs, self-loops, duplicates, one way, in parts."""
    size = rng.randint(1, most)
    kind = rng.choice(("empty", "random", "star", "path", "cycle", "clique", "parts"))
    if kind == "random":
        edges = [(rng.randrange(size), rng.randrange(size)) for _ in range(rng.randrange(3 * size))]
    elif kind == "star":
        edges = [(leaf, 0) for leaf in range(1, size)]
    elif kind == "path":
        edges = [(node, node + 1) for node in range(size - 1)]
    elif kind == "cycle":
        edges = [(node, (node + 1) % size) for node in range(size)]
    elif kind == "clique":
        edges = [(a, b) for a in range(size) for b in range(size) if a != b or rng.random() < 0.2]
    elif kind == "parts":
        edges = [(a, b) for a in range(size) for b in range(size) if (a < size // 2) == (b < size // 2)][: 3 * size]
    else:
        edges = []
    if kind != "clique" and rng.random() < 0.6:
        edges += [(b, a) for a, b in edges]
    rng.shuffle(edges)
    return size, edges


def draw_graph(rng: random.Random, most: int = 14) -> Data:
    """The same with features in float64."""
    size, edges = draw_edges(rng, most)
    index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t().contiguous()
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    return Data(x=torch.randn(size, 3, generator=generator, dtype=torch.float64), edge_index=index)


def draw_model(rng: random.Random) -> IDGNN:
    """A network with weights and statistics that are not those of its beginning."""
    conv = rng.choice(CONVS)
    identity = rng.choice(("full", "full", "fast", "none"))
    options = {"aggr": rng.choice(("max", "mean", "sum"))} if conv == "sage" else {}
    model = IDGNN(
        3,
        rng.choice((2, 5, 8)),
        rng.choice((1, 4)),
        rng.randint(1, 5),
        conv,
        identity,
        color=rng.choice(("message", "message+update")),
        cycle_length=rng.randint(1, 5),
        cycle_scale=rng.choice(("log", "walk")),
        **options,
    ).double()
    torch.manual_seed(rng.randrange(2**31))
    with torch.no_grad():
        for value in (*model.parameters(), *(each for each in model.buffers() if each.is_floating_point())):
            value.copy_(torch.rand_like(value) * 0.9 + 0.1)
    return model.eval()


def answers(rng: random.Random, folder: Path) -> str:
    """A network on a graph: its answers, those in little memory, and those of one colored copy for each query."""
    data, model = draw_graph(rng), draw_model(rng)
    size = int(data.num_nodes or 0)
    pairs = torch.randint(size, (2, rng.randint(1, 6)), generator=torch.Generator().manual_seed(rng.randrange(99)))
    queries = rng.choice((None, pairs[0], pairs))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # colors that reach no query
        found = model(data.x, data.edge_index, queries=queries)
        embedded = model.embed(data, queries, memory=rng.choice((None, 2**20)))
    _same(embedded, found, "embed")
    if model.identity == "full":
        nodes = list(range(size)) if queries is None else (queries if queries.dim() == 1 else queries[0]).tolist()
        colors = nodes if queries is None or queries.dim() == 1 else queries[1].tolist()
        with torch.no_grad():
            expected = brute_force.embeddings(model, data.x, data.edge_index, list(zip(nodes, colors, strict=True)))
        _same(found, expected, "brute force")
    return f"{model.identity} {model.config.conv}"


def _same(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    scale = float(expected.abs().max().clamp(min=1)) if expected.numel() else 1.0
    if found.shape != expected.shape or not torch.allclose(found, expected, atol=1e-9 * scale, rtol=1e-9):
        raise WrongError(f"{what} differs by {float((found - expected).abs().max()):.3g}")


def counts(rng: random.Random, folder: Path) -> str:
    """Closed walks and walks of pairs against powers of a matrix of Python's integers."""
    data, length = draw_graph(rng, 10), rng.randint(1, 9)
    size = int(data.num_nodes or 0)
    matrix = np.zeros((size, size), dtype=object)
    for a, b in data.edge_index.t().tolist():
        matrix[a, b] += 1
    pairs = torch.randint(size, (2, 5), generator=torch.Generator().manual_seed(rng.randrange(99)))
    closed, walks, power = [], [], np.eye(size, dtype=object)
    for _ in range(length):
        power = power @ matrix
        closed.append([power[v, v] for v in range(size)])
        walks.append([power[a, b] for a, b in pairs.t().tolist()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counts beyond 2^53
        ours = cycle_counts(data.edge_index, size, length), walk_counts(data.edge_index, size, pairs, length)
    for found, expected in zip(ours, (closed, walks), strict=True):
        wanted = torch.tensor(np.array(expected, dtype=np.float64).T.copy())
        if not torch.allclose(found, wanted, rtol=1e-12, atol=0):
            raise WrongError("counts are not those of the powers of the matrix")
    return "counted"


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
        return _sentence(lambda: read_files(source))


def damage(rng: random.Random, path: Path) -> None:
    """Cuts a file off, changes bytes of it, repeats a part, or empties it."""
    content = bytearray(path.read_bytes())
    kind = rng.choice(("cut", "flip", "bytes", "repeat", "empty", "zeros"))
    place = rng.randrange(len(content)) if content else 0
    if kind == "cut":
        content = content[:place]
    elif kind == "flip" and content:
        content[place] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        content[place : place + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
    elif kind == "repeat":
        content = content + content[place:]
    elif kind == "zeros":
        content[place : place + 16] = bytes(16)
    else:
        content = bytearray()
    path.write_bytes(bytes(content))


def _sentence(work: Callable[[], object]) -> str:
    """Whether something was done or refused in a sentence; any other error is raised."""
    try:
        work()
    except (ValueError, OSError) as error:
        if not str(error).strip():
            raise WrongError(f"a {type(error).__name__} says nothing") from error
        return "refused"
    return "done"


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
                raise WrongError(f"{column} of {row['node']} is {theirs}, and was {ours} in training")
    return f"trained {task}"


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


def _train(graph: Data, folder: Path, epochs: int = 6) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(
            graph,
            TaskSettings(name="node-classification", features="auto"),
            model=ModelSettings(width=4, layers=2),
            training=TrainOptions(epochs=epochs, query_batch_size=16, device="cpu", keep="best"),
            folder=folder,
            resume=RunFolder(folder).exists(),
        )


def _labeled(rng: random.Random) -> Data:
    graph = nx.gnp_random_graph(40, 0.1, seed=rng.randrange(2**31))
    edges = torch.tensor(list(graph.to_directed().edges), dtype=torch.long).view(-1, 2).t()
    return Data(edge_index=edges, num_nodes=40, y=torch.arange(40) % 3)


def _child(work: Callable[[], None]) -> int:
    """Starts a child process; it ends with 0, or with 2 after an error that is a sentence, and otherwise with 1."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            work()
        status = 0
    except (ValueError, OSError):
        status = 2
    except BaseException:
        traceback.print_exc()
    os._exit(status)


def _finished(folder: Path) -> bool:
    return RunFolder(folder).exists() and RunFolder(folder).read()["result"] is not None


def killed(rng: random.Random, folder: Path) -> str:
    """Training that is killed at random until it is done writes the same bytes as training without a pause."""
    graph = _labeled(rng)
    _train(graph, folder / "whole")
    kills = 0
    while not _finished(folder / "killed"):
        pid = _child(lambda: _train(graph, folder / "killed"))
        deadline = time.monotonic() + rng.random() * 0.4 * (1 + kills / 4)  # a busy machine takes longer to start
        while time.monotonic() < deadline and not os.waitpid(pid, os.WNOHANG)[0]:
            time.sleep(0.001)
        try:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            kills += 1
        except (ProcessLookupError, ChildProcessError):
            pass
        if kills > 200:
            raise WrongError("training does not get on")
    _same_files(folder / "whole", folder / "killed")
    return "killed" if kills else "not killed"


def _same_files(ours: Path, theirs: Path) -> None:
    for name in KEPT:
        if (ours / name).read_bytes() != (theirs / name).read_bytes():
            raise WrongError(f"{name} differs")


def disk_full(rng: random.Random, folder: Path) -> str:
    """A disk that is full while a run is written: a sentence, and what was written before can be resumed."""
    graph = _labeled(rng)
    _train(graph, folder / "whole")
    limit = rng.choice((0, 100, 1000, 3000, 10_000, 50_000))

    def full() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        _train(graph, folder / "full")

    _, status = os.waitpid(_child(full), 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 2):
        raise WrongError(f"a full disk ended training with {code}")
    if not _finished(folder / "full"):
        _train(graph, folder / "full")
    _same_files(folder / "whole", folder / "full")
    return "refused" if code else "done"


def damaged_run(rng: random.Random, folder: Path) -> str:
    """A file of a finished run is damaged: it is refused, or answers are those of before."""
    graph = _labeled(rng)
    _train(graph, folder / "run", epochs=2)
    expected = Run.load(folder / "run").predict(graph, device="cpu")
    name = rng.choice(("model.safetensors", "model.json", "run.json", "metrics.jsonl"))
    damage(rng, folder / "run" / name)
    found: list[dict] = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        outcome = _sentence(lambda: found.append(Run.load(folder / "run").predict(graph, device="cpu")))
    if found and found[0] != expected and not said:
        raise WrongError(f"a damaged {name} changes the answers without a word")
    return f"{outcome} {name}"


def damaged_checkpoint(rng: random.Random, folder: Path) -> str:
    """The checkpoint of a run under way is damaged: it is refused, or the result is that of before."""
    graph = _labeled(rng)
    _train(graph, folder / "whole", epochs=3)
    pid = _child(lambda: _train(graph, folder / "run", epochs=3))
    while not (folder / "run" / "checkpoint.safetensors").is_file() and not os.waitpid(pid, os.WNOHANG)[0]:
        time.sleep(0.0005)
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        return "ended before"
    if _finished(folder / "run") or not (folder / "run" / "checkpoint.safetensors").is_file():
        return "ended before"
    damage(rng, folder / "run" / "checkpoint.safetensors")
    outcome = _sentence(lambda: _train(graph, folder / "run", epochs=3))
    if outcome == "done":
        _same_files(folder / "whole", folder / "run")
    return outcome


def clock(rng: random.Random, folder: Path) -> str:
    """The clock jumps, and files are of the future or the past: results are the same."""
    graph, before = _labeled(rng), time.time
    _train(graph, folder / "whole", epochs=2)
    with mock.patch("time.time", lambda: before() + rng.choice((-1e9, -3600, 0, 3600, 1e9))):
        _train(graph, folder / "jumping", epochs=2)
        for path in (folder / "jumping").iterdir():
            moment = rng.choice((0, 1e9, 4e9))
            os.utime(path, (moment, moment))
        again = Run.load(folder / "jumping").predict(graph, device="cpu")
    _same_files(folder / "whole", folder / "jumping")
    if again != Run.load(folder / "whole").predict(graph, device="cpu"):
        raise WrongError("another clock changes the answers")
    return "done"


def store(rng: random.Random, folder: Path) -> str:
    """Several processes append to a store, some are killed, and lines are damaged: all other records are there."""
    records = Store(folder / "store")
    numbers = range(rng.randint(1, 5))

    def append(number: int) -> None:
        for i in range(20):
            records.append(RunRecord(f"{number}-{i}", {}, {"value": number * 100 + i}))

    children = [_child(lambda number=number: append(number)) for number in numbers]
    lost = set()
    if rng.random() < 0.5:
        time.sleep(rng.random() * 0.02)
        os.kill(children[0], signal.SIGKILL)
        lost.add(0)
    for child in children:
        os.waitpid(child, 0)
    if records.path.is_file() and rng.random() < 0.5:
        with records.path.open("ab") as file:
            file.write(rng.randbytes(rng.randrange(1, 50)).replace(b"\n", b""))
        records.append(RunRecord("last", {}, {"value": -1}))
    found = records.read().finished
    for key, record in found.items():
        number, _, i = key.partition("-")
        if record.result != {"value": -1 if key == "last" else int(number) * 100 + int(i)}:
            raise WrongError(f"the record of {key} is {record.result}")
    missing = {f"{number}-{i}" for number in set(numbers) - lost for i in range(20)} - set(found)
    if missing:
        raise WrongError(f"records are lost: {sorted(missing)[:5]}")
    return "killed" if lost else "done"


CASES: dict[str, Callable[[random.Random, Path], str]] = {
    "answers": answers,
    "counts": counts,
    "files": files,
    "command": command,
    "killed": killed,
    "disk full": disk_full,
    "damaged run": damaged_run,
    "damaged checkpoint": damaged_checkpoint,
    "clock": clock,
    "store": store,
}
