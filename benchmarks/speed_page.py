"""Writes `docs/speed.md` from the records of all benchmarks: `python -m benchmarks.speed_page`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.against_pyg import CONTENDERS as NETWORKS
from benchmarks.loop import MODES, NAMES
from idgnn.writing import write_text

RESULTS = Path(__file__).parent / "results"
PAGE = Path("docs/speed.md")
CONVS = {"gcn": "GCN", "sage": "SAGE", "gat": "GAT", "gin": "GIN"}

HEAD = """# Speed

Ratios, except PubMed's, compare networks that take turns in one run; each is the median over the rounds. This page is
written by `python -m benchmarks.speed_page` from `benchmarks/results`; no number is written by hand. How the cost grows
with the graph is in [`scaling.md`](scaling.md), what was tried and what came of it in `benchmarks/NOTES.md`.
"""
PYG = """\
The same network once made of PyG's layers, as its users write it, and once as an `IDGNN`: 128 ENZYMES graphs, *K* = 3,
all with the parameters of a 256-wide GCN; forward and backward. Each line is a multiple of PyG's time. *Colored
messages* is ID-GNN-Full as in Eq. 3 (`color="message"`); the default colors the update, too. PyG's GCN and GAT add
self-loops in every layer of every step, and its GCN computes degrees; *prepared*, this is done before, as it is for an
`IDGNN`. Only so can they be recorded as CUDA graphs.
"""
GPU = """\
Batches of ENZYMES graphs, *K* = 3, all with the parameters of a 256-wide GCN; forward and backward, prepared before.
*Eager* launches one kernel after the other, as PyTorch does: that takes longer than most kernels run, so all contenders
look alike, and ID-GNN-Full costs little beside the plain GNN. *Replayed* as CUDA graphs, they show what they compute.
"""
PAIRS = """\
Pairs: PROTEINS graphs with 1000 pairs each, *K* = 5, a GCN of width 256; ID-GNN-Full beside one colored copy of the
graph per source. Products of a few thousand rows do not fill a large GPU, so fewer rows save less than their share.
"""
TF32 = """\
The same 128 graphs and the same pairs with products in TF32 (`--precision tf32`), replayed. Tensor cores read rows that
begin at multiples of 16 bytes, and widths here are those of equal parameters: ID-GNN-Full with colored messages has 182
channels (GCN) and 181 (GAT), the plain GIN 181. These hardly gain, so the ratios are not those of aligned widths.
"""
LOOP = """\
Steps of training a second with a GCN in batches of 128 graphs, all processes together, and the share of a step that
goes into cutting its batch out of the dataset. *Recorded* steps are replayed as CUDA graphs, the default of `idgnn
train` on a GPU: batches are drawn anew in each epoch and padded to a few sizes, and a recorded step cuts its batch
itself. *Eager* ones are not (`--cuda-graphs off`), *compiled* ones are recorded too (`--compile`). *MPS*: under
NVIDIA's Multi-Process Service, without which processes take turns on the GPU. Rows with *fixed batches* are from
before: every batch was recorded by itself, batches stayed the same for 50 epochs, and ID-GNN-Full colored messages
alone.
"""
PRECISION = """\
What coarser matrix products cost in accuracy: ID-GNN-Full (GCN) on ENZYMES, node clustering, {epochs} epochs with all
else at its default, held-out accuracy as mean and standard deviation over {seeds} seeds. By default products are in
float32.
"""
MOLHIV = """\
The same with `--data ogbg-molhiv --processes 1 --modes eager recorded`: 33 thousand molecules, 258 batches an epoch.
"""
LARGE = """\
`model.embed`, ID-GNN-Full of width 64 for all nodes. Ego networks of PubMed are timed on {sample} nodes and scaled.
"""


def main() -> None:
    """Reads the records and writes the page."""
    write_text(PAGE, page())


def page() -> str:
    """The whole page."""
    gpu = figures("h200")
    sample = records("pubmed")[0]["ego_roots"]
    return "\n".join(
        [
            HEAD,
            "## Training steps and building, on a CPU\n",
            source("cpu", "make bench"),
            *table(("what", "measured", "target", ""), cpu_rows()),
            "\n## Beside PyG's own layers\n",
            source("against_pyg_cpu", "python -m benchmarks.against_pyg"),
            source("against_pyg_h200", "python -m benchmarks.against_pyg --device cuda"),
            PYG,
            *table(("forward and backward", *CONVS.values()), pyg_rows()),
            "\n## Training steps, on a GPU\n",
            source("h200", "python -m benchmarks.gpu"),
            GPU,
            *table(("forward and backward", *CONVS.values()), gpu_rows(gpu)),
            "",
            PAIRS,
            *table(("a copy per source, as a multiple of ID-GNN-Full", "8 graphs", "64 graphs"), pair_rows(gpu)),
            "",
            source("h200_tf32", "python -m benchmarks.gpu --precision tf32 --modes replayed --more"),
            TF32,
            *table(("forward and backward, TF32", *CONVS.values()), tf32_rows()),
            "\n## The training loop\n",
            source("loop_cpu", "python -m benchmarks.loop"),
            source("loop_h200", f"python -m benchmarks.loop --device cuda --processes 1 12 --modes {' '.join(MODES)}"),
            MOLHIV,
            LOOP,
            *table(("", "processes", "plain GNN", "ID-GNN-Fast", "ID-GNN-Full", "cutting"), loop_rows()),
            "\n## Precision\n",
            source("precision_h200", "python -m benchmarks.precision --device cuda"),
            PRECISION.format(epochs=record("precision_h200")["epochs"], seeds=records("precision_h200")[0]["seeds"]),
            *table(("`--precision`", "accuracy"), precision_rows()),
            "\n## Large graphs\n",
            *(source(name, command_of(name)) for name in ("douban", "pubmed", "million_h200")),
            LARGE.format(sample=sample),
            *table(("graph", "*K*", "layer", "rows", "seconds", "memory", "ego networks : ours"), large_rows()),
            "",
        ]
    )


def record(name: str) -> dict[str, Any]:
    """What a benchmark wrote: date, machine, versions, figures."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def where(machine: dict[str, Any]) -> str:
    """The machine in words: its GPU, or how many threads of its processor."""
    if "gpu" in machine:
        return machine["gpu"]
    threads = machine["threads"]
    return f"{threads} thread{'' if threads == 1 else 's'} of an {machine['processor']}"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> list[str]:
    """Lines of Markdown; the first columns are words, the others numbers."""
    head = list(head)
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    return [f"| {' | '.join(cells)} |" for cells in (head, rule, *rows)]


def records(name: str) -> list[dict[str, Any]]:
    """The figures of a record."""
    return record(name)["figures"]


def figures(name: str) -> dict[str, dict[str, Any]]:
    """The figures of a record that have names."""
    return {each["name"]: each for each in records(name)}


def source(name: str, command: str) -> str:
    """Where figures come from."""
    found, link = record(name), f"[all figures](../benchmarks/results/{name}.json)"
    machine, torch = where(found["machine"]), found["versions"]["torch"]
    return f"{machine}, PyTorch {torch}, {found['date']}: `{command}` ({link}).\n"


def command_of(name: str) -> str:
    """What embedded a large graph."""
    options = record(name)["options"]
    command = f"python -m benchmarks.large_graphs {options['graph']}"
    for each in ("conv", "layers", "memory", "device", "sample"):
        if value := options[each]:
            command += f" --{each} {' '.join(map(str, value)) if isinstance(value, list) else value}"
    return command


def cpu_rows() -> Iterable[list[str]]:
    """All figures of `make bench`."""
    for each in records("cpu"):
        target = f"{each['target']} {each['unit']}" if each["target"] else ""
        yield [each["name"], f"{each['value']:.3g} {each['unit']}", target, "" if each["met"] else "missed"]


def pyg_rows() -> Iterable[list[str]]:
    """One row for each network, one column for each architecture."""
    for name, place in (("against_pyg_cpu", "CPU"), ("against_pyg_h200", "H200")):
        found = figures(name)
        for mode, pyg in (("eager", "PyG"), ("eager", "PyG, prepared"), ("replayed", "PyG, prepared")):
            if f"gcn, {mode}: {pyg}" in found:
                yield section(f"{place}, {mode}, {pyg}")
                yield ["time", *of(found, f"{mode}: {pyg}", "{:.3g} ms")]
                for network in NETWORKS:
                    yield [network, *of(found, f"{mode}, {network} : {pyg}")]


def gpu_rows(found: dict[str, dict[str, Any]]) -> Iterable[list[str]]:
    """One row for each question, one column for each architecture."""
    for number in (128, 600):
        for mode in ("eager", "replayed"):
            step = f"{number} graphs, {mode}, forward + backward"
            yield section(f"{number} graphs, {mode}")
            yield ["plain GNN", *of(found, f"{step}: plain", "{:.2f} ms")]
            yield ["ID-GNN-Fast : plain", *of(found, f"{step}, ID-GNN-Fast : plain")]
            yield ["ID-GNN-Full : plain", *of(found, f"{step}, ID-GNN-Full : plain")]
            yield ["ego networks : ID-GNN-Full", *of(found, f"{step}, ego networks : ID-GNN-Full")]
        memory = f"{number} graphs, memory of a step"
        yield section(f"{number} graphs, memory")
        yield ["ID-GNN-Full", *of(found, f"{memory}, ID-GNN-Full", "{:.0f} MiB")]
        yield ["ID-GNN-Full : plain", *of(found, f"{memory}, ID-GNN-Full : plain")]
        yield ["ego networks : ID-GNN-Full", *of(found, f"{memory}, ego networks : ID-GNN-Full")]


def tf32_rows() -> Iterable[list[str]]:
    """Replayed steps in TF32: one row for each network, and pairs."""
    found, step = figures("h200_tf32"), "128 graphs, replayed, forward + backward"
    yield ["plain GNN", *of(found, f"{step}: plain", "{:.2f} ms")]
    for network in ("ID-GNN-Fast", "ID-GNN-Full, colored messages", "ID-GNN-Full"):
        yield [f"{network} : plain", *of(found, f"{step}, {network} : plain")]
    for network in ("ID-GNN-Full, colored messages", "ID-GNN-Full"):
        pairs = found[f"pairs, 8 graphs, replayed, forward + backward, a copy per source : {network}"]
        yield [f"pairs, a copy per source : {network}", marked(pairs), "", "", ""]


def section(name: str) -> list[str]:
    """A row that says what the next ones are about."""
    return [f"**{name}**", *[""] * len(CONVS)]


def of(found: dict[str, dict[str, Any]], what: str, form: str = "{:.2f}") -> list[str]:
    """A figure of every architecture."""
    return [marked(found[f"{conv}, {what}"], form) for conv in CONVS]


def marked(each: dict[str, Any], form: str = "{:.2f}") -> str:
    """A figure, and its target if it misses that."""
    return form.format(each["value"]) + ("" if each["met"] else f" (target {each['target']})")


def pair_rows(found: dict[str, dict[str, Any]]) -> Iterable[list[str]]:
    """Time and memory, of a small and of a larger batch."""
    for name, what in (
        ("eager", "eager, forward + backward"),
        ("replayed", "replayed, forward + backward"),
        ("memory", "memory of a step"),
    ):
        names = [f"pairs, {number} graphs, {what}, a copy per source : ID-GNN-Full" for number in (8, 64)]
        yield [name, *(marked(found[each]) for each in names)]


def loop_rows() -> Iterable[list[str]]:
    """One row for each way to train, one column for each network."""
    for name, place in (("loop_cpu", "CPU"), ("loop_h200", "H200")):
        found = records(name)
        for key in dict.fromkeys((each["data"], each["mode"], each["processes"]) for each in found):
            data, mode, processes = key
            each = [one for one in found if (one["data"], one["mode"], one["processes"]) == key]
            rates = {one["network"]: one["steps_per_second"] for one in each}
            shares = [one["outside"] for one in each if one["outside"] is not None]
            how = "" if place == "CPU" else f", {mode}"
            yield [
                f"{data}, {place}{how}",
                str(processes),
                *(rate(rates[network]) if network in rates else "" for network in NAMES.values()),
                "" if not shares else f"{min(shares):.0%} to {max(shares):.0%}",
            ]


def precision_rows() -> Iterable[list[str]]:
    """One row for each precision."""
    for each in records("precision_h200"):
        yield [f"`{each['precision']}`", f"{each['accuracy']:.4f} ± {each['deviation']:.4f}"]


def rate(value: float) -> str:
    """Three digits, or as many as there are before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def large_rows() -> Iterable[list[str]]:
    """All embeddings of large graphs."""
    for name, graph in (("douban", "soc-douban"), ("pubmed", "PubMed"), ("million_h200", "random")):
        for each in records(name):
            ego = each.get("ego_seconds_scaled")
            memory = each.get("peak_gpu_gib")
            yield [
                f"{graph}: {each['nodes']:,} nodes, {each['edges']:,} edges",
                str(each["layers"]),
                CONVS[each["conv"]],
                f"{each['identity_rows']:,}",
                f"{each['seconds']:.2g}",
                f"{each['peak_gib']:.2f} GiB" if memory is None else f"{memory:.1f} GiB on the GPU",
                "" if ego is None else f"{ego / each['seconds']:.0f}; rows: {fewer(each):.0f}",
            ]


def fewer(each: dict[str, Any]) -> float:
    """How many rows of ego networks there are for each of ours."""
    return each["ego_rows_scaled"] / each["identity_rows"]


if __name__ == "__main__":
    main()
