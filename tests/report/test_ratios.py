"""Table 4 as ratios."""

from dataclasses import replace

from idgnn.experiments.tables.table4 import CONTENDERS, PASSES
from idgnn.report.ratios import ratios
from tests.report.made import filled, record, runs

NO_GRAPHS = ["not run", "not run"]  # forward, forward + backward, as CUDA graphs


def shown(*times: dict[str, float], replayed: bool = False) -> dict[str, list[str]]:
    """The ratios of records with these times of a contender as a multiple of the GCN's, one for each seed."""
    records = {}
    for spec, ratio in zip(runs("table4")["text", "gcn", "forward"], times, strict=False):
        result = {
            column: {
                row: {"ms": 7.0 * ratio.get(row, 1.0), "std": 0.1, "ratio": ratio.get(row, 1.0)} for row in CONTENDERS
            }
            for column in PASSES
        }
        if replayed:
            for row in CONTENDERS:
                result["forward"][row] |= {"replayed_ms": 1.0, "replayed_ratio": 2 * ratio.get(row, 0.5)}
        records[spec.key] = replace(record(spec, 0, machine="H200, 1 run side by side"), result=result)
    block = ratios(filled("table4", records))
    assert block is not None
    return {line.name: [cell.text for cell in line.cells] for line in block.lines}


def test_published_ratios_are_beside_ours_which_are_the_median_over_seeds():
    found = shown(
        {"full-gcn-ego": 8.0, "full-gcn": 2.0},
        {"full-gcn-ego": 6.0, "full-gcn": 3.0},
        {"full-gcn-ego": 90.0, "full-gcn": 10.0},
    )
    assert found["ID-GNN-Full on ego networks : GCN"] == ["5.0", "8.0", "3.5", "8.0", *NO_GRAPHS]
    assert found["ID-GNN-Full, ours : GCN"] == ["5.0", "3.0", "3.5", "3.0", *NO_GRAPHS]
    assert found["ID-GNN-Full, ego networks : ours"] == [
        "",
        "4.0",
        "",
        "4.0",
        *NO_GRAPHS,
    ]  # of 4, 2 and 9, each of one record


def test_cuda_graphs_have_ratios_of_their_own():
    found = shown({"full-gcn-ego": 8.0, "full-gcn": 2.0}, replayed=True)
    assert found["ID-GNN-Full on ego networks : GCN"][4:] == ["16.0", "not run"]
    assert found["ID-GNN-Full, ego networks : ours"][4:] == ["4.0", "not run"]


def test_without_records_only_the_published_ratios_are_shown():
    assert shown()["ID-GNN-Full, ours : GCN"] == ["5.0", "not run", "3.5", "not run", *NO_GRAPHS]
    assert ratios(filled("table2", {})) is None
