"""Walk counts of heterogeneous graphs against products of dense matrices."""

import pytest
import torch
from torch_geometric.data import HeteroData

from idgnn import AddCycleCounts, cycle_counts, walk_counts
from tests.models.hetero.races import races


def dense(data: HeteroData, kind: tuple[str, str, str]) -> torch.Tensor:
    matrix = torch.zeros(data[kind[0]].num_nodes, data[kind[2]].num_nodes, dtype=torch.double)
    for one, other in data[kind].edge_index.t().tolist():
        matrix[one, other] += 1
    return matrix


def test_closed_walks_over_all_edge_types_and_along_a_meta_path():
    data = races()
    of, back = ("result", "of", "driver"), ("driver", "rev_of", "result")
    there = dense(data, back) @ dense(data, of)
    expected = torch.stack([there.diag(), (there @ there).diag(), (there @ there @ there).diag()], dim=1)
    assert torch.equal(cycle_counts(data, "driver", 3, meta_path=[back, of]), expected)
    whole = data.to_homogeneous()
    start = sum(data[kind].num_nodes for kind in data.node_types[: data.node_types.index("driver")])
    assert torch.equal(
        cycle_counts(data, "driver", 4), cycle_counts(whole.edge_index, whole.num_nodes, 4)[start : start + 5]
    )


def test_walks_between_types_along_a_meta_path():
    data = races()
    path = [("circuit", "rev_at", "race"), ("race", "rev_in", "result"), ("result", "of", "driver")]
    matrix = dense(data, path[0]) @ dense(data, path[1]) @ dense(data, path[2])
    circuits, drivers = torch.cartesian_prod(torch.arange(3), torch.arange(5)).t()
    asked = (("circuit", circuits), ("driver", drivers))
    assert torch.equal(walk_counts(data, None, asked, 1, meta_path=path)[:, 0], matrix[circuits, drivers])
    # All walks of three steps between these types are of this meta-path.
    assert torch.equal(walk_counts(data, None, asked, 3)[:, 2], matrix[circuits, drivers])
    with pytest.raises(ValueError, match="can be walked only once"):
        walk_counts(data, None, asked, 2, meta_path=path)
    with pytest.raises(ValueError, match="does not start from 'race'"):
        walk_counts(data, None, asked, 1, meta_path=[path[0], path[2]])
    with pytest.raises(ValueError, match="no edge type of the graph"):
        walk_counts(data, None, asked, 1, meta_path=[("circuit", "near", "driver")])
    with pytest.raises(ValueError, match="expected one from 'driver' back to 'driver'"):
        cycle_counts(data, "driver", 1, meta_path=path)


def test_counts_are_appended_to_the_features_of_all_types():
    data = races()
    del data["race"].x
    data["race"].num_nodes = 7
    added = AddCycleCounts(length=4, scale="counts")(data)
    for kind in data.node_types:
        counts = cycle_counts(data, kind, 4).float()
        expected = counts if kind == "race" else torch.cat([data[kind].x, counts], dim=1)
        assert torch.equal(added[kind].x, expected)
    assert "x" not in data["race"]  # the argument is as it was
    several = AddCycleCounts(length=4, scale="standardized").fit([data, races()])
    counts = torch.cat([several(races())[kind].x[:, 3:] for kind in data.node_types])
    torch.testing.assert_close(counts.mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    data["circuit"].x = torch.zeros(3, 1, dtype=torch.long)
    with pytest.raises(ValueError, match=r"x has dtype torch\.int64"):
        AddCycleCounts()(data)
