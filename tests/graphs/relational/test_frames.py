"""Columns as pytorch-frame has them: compared with what that package makes of a data frame itself."""

import math
import sys

import pytest
import torch

from idgnn import HeteroConfig, HeteroIDGNN
from idgnn.graphs.relational.columns import as_dicts, find_codes
from idgnn.graphs.relational.graph import aged_channels, aged_snapshot, load_tables, to_graph
from idgnn.graphs.relational.times import seconds
from tests.graphs.relational.small_tables import write_tables

# Of pytorch-frame's own reading of a data frame.
pytestmark = pytest.mark.filterwarnings(
    "ignore:The given NumPy array is not writable", "ignore:Series.dt.dayofweek is deprecated"
)


def test_without_the_package_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_frame", None)
    with pytest.raises(ValueError, match=r"pip install 'idgnn\[relational\]'"):
        to_graph(load_tables(write_tables(tmp_path)), columns="frame")


def test_a_table_is_the_tensor_frame_of_its_data_frame(tmp_path):
    torch_frame, pandas = pytest.importorskip("torch_frame"), pytest.importorskip("pandas")
    tables = load_tables(write_tables(tmp_path))
    codes = find_codes(tables)["drivers"]
    found = to_graph(tables, columns="frame")["drivers"].tf
    frame = pandas.DataFrame(
        {
            "born": pandas.to_datetime(["1985-01-07", "1977-05-10", None, "1990-01-01"]),
            "country": ["UK", "DE", "DE", "UK"],
            "points": [1.5, math.nan, 2.5, math.nan],
        }
    )
    kinds = {"born": torch_frame.timestamp, "country": torch_frame.categorical, "points": torch_frame.numerical}
    theirs = torch_frame.data.Dataset(frame, kinds).materialize()
    assert found.col_names_dict == theirs.tensor_frame.col_names_dict
    for kind in (torch_frame.numerical, torch_frame.timestamp):
        ours, other = found.feat_dict[kind], theirs.tensor_frame.feat_dict[kind]
        assert torch.equal(ours.nan_to_num(-7), other.nan_to_num(-7))
    country = next(code for code in codes if code.name == "country").categories
    numbers = found.feat_dict[torch_frame.categorical][:, 0].tolist()
    assert [country[number] for number in numbers] == frame["country"].tolist()


def test_encoders_are_those_of_the_package(tmp_path):
    """With the weights of encoders that pytorch-frame fitted to a data frame, the states are the same."""
    torch_frame, pandas = pytest.importorskip("torch_frame"), pytest.importorskip("pandas")
    from torch_frame.nn.encoder import LinearEncoder, StypeWiseFeatureEncoder, TimestampEncoder

    from idgnn.models.column_encoder import ColumnEncoder

    tables = load_tables(write_tables(tmp_path, drivers="id,born,points\na,1985-01-07,1\nb,1977-05-10,5\nc,,\n"))
    ours = ColumnEncoder(as_dicts(find_codes(tables))["drivers"], 4)
    frame = pandas.DataFrame(
        {"born": pandas.to_datetime(["1985-01-07", "1977-05-10", None]), "points": [1.0, 5.0, math.nan]}
    )
    kinds = {"born": torch_frame.timestamp, "points": torch_frame.numerical}
    theirs = torch_frame.data.Dataset(frame, kinds).materialize()
    mean = torch_frame.NAStrategy.MEAN
    encoders = {torch_frame.numerical: LinearEncoder(na_strategy=mean), torch_frame.timestamp: TimestampEncoder()}
    names = theirs.tensor_frame.col_names_dict
    reference = StypeWiseFeatureEncoder(4, theirs.col_stats, names, encoders)
    reference.load_state_dict(ours.encoder.state_dict() | {k: v for k, v in reference.named_buffers()})
    expected = reference(theirs.tensor_frame)[0].sum(1)
    found = ours(to_graph(tables, columns="frame")["drivers"].tf)
    torch.testing.assert_close(found[:2], expected[:2])  # the median of two times is one of them, our mean is not
    assert torch.isfinite(found).all()


def test_a_snapshot_has_the_columns_of_its_rows_and_ages_beside_them(tmp_path):
    pytest.importorskip("torch_frame")
    graph = to_graph(load_tables(write_tables(tmp_path)), columns="frame")
    past = aged_snapshot(graph, seconds("2001-12-31"))
    assert len(past["results"].tf) == 4 == past["results"].num_nodes
    assert {kind: past[kind].x.size(1) for kind in past.node_types} == aged_channels(graph)
    assert past["drivers"].x[0, 0] > 1.6  # the age of the driver in decades


def test_a_network_with_encoders_learns_them(tmp_path):
    """The encoders run where the states start, in training, in batches of queries and in embed."""
    pytest.importorskip("torch_frame")
    from idgnn.models.column_encoder import ColumnEncoder

    tables = load_tables(write_tables(tmp_path))
    graph = aged_snapshot(to_graph(tables, columns="frame"), seconds("2003-01-01"))
    encoders = {kind: ColumnEncoder(codes, 6) for kind, codes in as_dicts(find_codes(tables)).items() if codes}
    config = HeteroConfig(hidden_channels=6, num_layers=3, root="drivers")
    model = HeteroIDGNN.for_data(graph, config, {k: e for k, e in encoders.items() if k in ("drivers", "circuits")})
    model(graph, "drivers").square().sum().backward()
    # Numbers are missing, and have finite gradients.
    for name, weight in model.encoders.named_parameters():
        assert weight.grad is not None and torch.isfinite(weight.grad).all(), name
    assert all(float(w.grad.abs().sum()) > 0 for n, w in model.encoders["drivers"].named_parameters() if "bias" in n)
    model.eval()
    torch.testing.assert_close(model.embed(graph, "drivers"), model(graph, "drivers").detach(), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="cannot be written to a file"):
        model.save(tmp_path / "model")
    del graph["drivers"].tf
    with pytest.raises(ValueError, match="has an encoder for 'drivers', but"):
        model(graph, "drivers")
