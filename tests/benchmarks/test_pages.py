"""What is written about speed comes from the records: generated pages, and the figures in the text of others."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import peers, relational_page, scaling_page, speed_page
from benchmarks.against_pyg import CONTENDERS as NETWORKS
from benchmarks.speed_page import CONVS, figures, rate, records

ROOT = Path(__file__).parents[2]


def words_of(path: str) -> str:
    """A page with single spaces in place of line breaks."""
    return re.sub(r"\s+", " ", (ROOT / path).read_text())


@pytest.mark.parametrize("writer", [speed_page, scaling_page, relational_page, peers])
def test_pages_are_those_of_the_records(writer):
    command = f"python -m {writer.__name__}{' --page' if writer is peers else ''}"
    assert (ROOT / writer.PAGE).read_text() == writer.page(), f"write it anew: {command}"


def of_cpu() -> list[str]:
    found = {name: each["value"] for name, each in figures("cpu").items()}
    return [
        f"*K* = 3, equal parameters) | {found['training step, ID-GNN-Full : plain GCN']:.1f} |",
        f"the same for ID-GNN-Fast | {found['training step, ID-GNN-Fast : plain GCN']:.1f} |",
        f"ID-GNN-Full's step | {found['training step, ego networks : ID-GNN-Full']:.1f} |",
        f"*K* = 5) | {found['pair queries, training step, a copy per source : identity graph']:.1f} |",
        f"its identity graphs | {found['identity graphs of ENZYMES, networkx ego graphs : ours']:.0f} |",
        f"into PyG graphs | {found['identity graphs of ENZYMES, networkx ego graphs as PyG graphs : ours']:.0f} |",
        f"41,127 ogbg-molhiv molecules | {found['identity graphs of all 41,127 molhiv molecules']:.1f} s |",
        f"million edges in the identity graph) | {found['identity graph of soc-douban (154,908 nodes)']:.1f} s, "
        f"{found['identity graph of soc-douban, memory beside the loaded graph']:.2f} GiB |",
        f"one `cycle_counts` | {found['closed-walk counts of ENZYMES, AddRandomWalkPE : ours, one call']:.1f} |",
        f"all ogbg-molhiv molecules | {found['closed-walk counts of all 41,127 molhiv molecules']:.2f} s |",
    ]


def of_large_graphs() -> list[str]:
    douban, pubmed, million = records("douban"), records("pubmed"), records("million_h200")
    seconds = ", ".join(f"{each['seconds']:.1f}" for each in douban)
    ratios = ", ".join(f"{each['ego_seconds_scaled'] / each['seconds']:.0f}" for each in pubmed)
    return [
        f"GCN, GIN, SAGE, GAT | {seconds} s, at most {max(each['peak_gib'] for each in douban):.2f} GiB |",
        f"scaled from 300 nodes) | {ratios} |",
        f"*K* = 2 and 3 | at most {max(each['seconds'] for each in million):.1f} s |",
    ]


def of_gpu() -> list[str]:
    found = {name: each["value"] for name, each in figures("h200").items()}
    rows = []
    for words, what in (
        ("launched one by one", "128 graphs, eager, forward + backward, ID-GNN-Full : plain"),
        ("replayed as a CUDA graph", "128 graphs, replayed, forward + backward, ID-GNN-Full : plain"),
        ("multiple of ID-GNN-Full", "128 graphs, eager, forward + backward, ego networks : ID-GNN-Full"),
        ("multiple of ID-GNN-Full's", "128 graphs, replayed, forward + backward, ego networks : ID-GNN-Full"),
        ("all 600 graphs in one batch", "600 graphs, replayed, forward + backward, ego networks : ID-GNN-Full"),
        ("128 graphs, as a multiple of ID-GNN-Full's", "128 graphs, memory of a step, ego networks : ID-GNN-Full"),
    ):
        values = [f"{found[f'{conv}, {what}']:.1f}" for conv in CONVS]
        rows.append(f"{words} | {' | '.join(values)} |")
    return rows


def of_loop() -> list[str]:
    keys = ("data", "network", "mode", "processes")
    found = {tuple(each[key] for key in keys): each["steps_per_second"] for each in records("loop_h200")}

    def pair(data: str, mode: str, processes: int) -> str:
        plain, full = (rate(found[data, name, mode, processes]) for name in ("plain GNN", "ID-GNN-Full"))
        return f"{plain} and {full}"

    ways = (("eager", 1), ("recorded", 1), ("recorded, tf32", 1), ("recorded, MPS", 12))
    return [
        *(pair("ENZYMES", *way) for way in ways),
        *(pair("ogbg-molhiv", mode, 1) for mode in ("eager", "recorded", "recorded, tf32")),
    ]


@pytest.mark.parametrize("words", [*of_cpu(), *of_large_graphs(), *of_gpu(), *of_loop()])
def test_the_page_on_costs_has_the_figures_of_the_records(words):
    assert words in words_of("docs/cost.md")


def of_versions() -> list[str]:
    """What ID-GNN-Fast and ID-GNN-Full cost as multiples of the plain GNN."""
    cpu, gpu = figures("against_pyg_cpu"), figures("against_pyg_h200")

    def span(values: list[float]) -> str:
        least, most = f"{min(values):.1f}", f"{max(values):.1f}"
        return least if least == most else f"{least} to {most}"

    def over_plain(found: Mapping[str, Any], mode: str, pyg: str, network: str) -> str:
        """A ratio to PyG's layers over that of the plain network."""
        return span(
            [
                found[f"{conv}, {mode}, {network} : {pyg}"]["value"]
                / found[f"{conv}, {mode}, plain IDGNN : {pyg}"]["value"]
                for conv in CONVS
            ]
        )

    versions = ("ID-GNN-Fast", "ID-GNN-Full")
    steps = [over_plain(cpu, "eager", "PyG", version) for version in versions]
    replayed = [over_plain(gpu, "replayed", "PyG, prepared", version) for version in versions]
    memory = [figures("h200")[f"{conv}, 128 graphs, memory of a step, ID-GNN-Full : plain"]["value"] for conv in CONVS]
    return [
        f"GCN, SAGE, GAT, GIN | {steps[0]} | {steps[1]} |",
        f"replayed as CUDA graphs | {replayed[0]} | {replayed[1]} |",
        f"{span(memory)} times the plain GNN's |",
    ]


@pytest.mark.parametrize("words", of_versions())
def test_fast_or_full_has_the_figures_of_the_records(words):
    assert words in words_of("docs/fast_or_full.md")


def of_pyg(network: str, where: str = "cpu", mode: str = "eager", pyg: str = "PyG") -> list[str]:
    """What a network takes as a multiple of PyG's layers, one for each architecture."""
    found = figures(f"against_pyg_{where}")
    return [f"{found[f'{conv}, {mode}, {network} : {pyg}']['value']:.1f}" for conv in CONVS]


def test_the_readme_has_the_cost_of_both_versions():
    fast, full = of_pyg("ID-GNN-Fast"), of_pyg("ID-GNN-Full")
    assert f"a step costs {min(fast)} to {max(fast)} times" in words_of("README.md")
    assert f"costs {', '.join(full[:3])} and {full[3]} times that" in words_of("README.md")
    full = of_pyg("ID-GNN-Full", "h200")
    words = f"On an H200, without CUDA graphs, it costs {', '.join(full[:3])} and {full[3]} times as much"
    assert words in words_of("README.md")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("given", [(), ("h200",), ("h200", "replayed", "PyG, prepared")], ids=str)
def test_the_page_on_costs_has_the_comparison_with_pyg(network, given):
    assert f"| {' | '.join(of_pyg(network, *given))} |" in words_of("docs/cost.md")


def test_the_page_on_costs_has_the_accuracy_of_all_precisions():
    (accuracy,) = {f"{each['accuracy']:.3f}" for each in records("precision_h200")}
    assert f"no measurable accuracy: {accuracy} on node clustering with each" in words_of("docs/cost.md")
