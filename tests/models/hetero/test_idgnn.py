"""The ready encoder for heterogeneous graphs: files, options, training, and what is refused."""

import json
import pickle
import warnings
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData

from idgnn import HeteroConfig, HeteroIDGNN, PairHead, reachable, snapshot
from idgnn.identity.cost import TooLargeError
from idgnn.identity.unreached import UnreachedColorWarning
from tests.models.hetero.races import ROOTS, races

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
PAIRS = (("circuit", torch.tensor([0, 1, 2, 0])), ("driver", ROOTS))


def network(data: HeteroData, **options) -> HeteroIDGNN:
    model = HeteroIDGNN.for_data(data, HeteroConfig(hidden_channels=8, out_channels=4, **options))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.3)
    return model


@pytest.mark.parametrize("identity", ["full", "fast", "none"])
@pytest.mark.parametrize("combine", ["sum", "attention"])
def test_files_hold_the_same_model(identity, combine, tmp_path):
    data = races()
    model = network(data, identity=identity, combine=combine, root="driver", num_embeddings={"race": 7})
    model.save(tmp_path)
    loaded = HeteroIDGNN.load(tmp_path)
    assert json.loads((tmp_path / "model.json").read_text())["settings"]["config"]["root"] == "driver"
    for queries in ("driver", PAIRS):
        torch.testing.assert_close(loaded(data, queries), model.eval()(data, queries), rtol=0, atol=0)
        torch.testing.assert_close(model.embed(data, queries), model(data, queries).detach(), rtol=1e-5, atol=1e-5)
    assert model(data, PAIRS).size(1) == model.pair_channels


def test_second_weights_are_those_of_the_root_type():
    data = races()
    some, every = network(data, root="driver"), network(data)
    assert some.layers[0].weight_colored.size(0) == 1 and every.layers[0].weight_colored.size(0) == 6
    with pytest.raises(ValueError, match="made with another root type"):
        some(data, "race")
    last = data["race"].x.size(0)
    data["race"].x = torch.cat([data["race"].x, data["race"].x[:1]])  # without edges: it sends no message
    with pytest.raises(ValueError, match="made with another root type"):
        some(data, ("race", torch.tensor([last])))


def test_a_colored_update_is_that_of_the_root_type_and_zero_at_first(tmp_path):
    data = races()
    config = HeteroConfig(hidden_channels=8, root="driver")
    torch.manual_seed(0)
    update = HeteroIDGNN.for_data(data, config).eval()
    torch.manual_seed(0)
    message = HeteroIDGNN.for_data(data, replace(config, color="message")).eval()
    assert update.layers[0].update_colored.shape == (1, 8, 8) and message.layers[0].update_colored is None
    assert HeteroIDGNN.for_data(data, replace(config, root=None)).layers[0].update_colored.shape == (4, 8, 8)
    assert HeteroIDGNN.for_data(data, replace(config, identity="none")).layers[0].update_colored is None
    assert torch.equal(update(data, "driver"), message(data, "driver"))
    update(data, "driver").square().sum().backward()
    assert all(bool(layer.update_colored.grad.any()) for layer in update.layers)  # training changes it
    for layer in update.layers:
        nn.init.normal_(layer.update_colored)
    assert not torch.allclose(update(data, "driver"), message(data, "driver"))
    update.save(tmp_path)
    assert torch.equal(HeteroIDGNN.load(tmp_path)(data, PAIRS), update(data, PAIRS))
    with pytest.raises(ValueError, match="color is 'update', expected"):
        replace(config, color="update")


@pytest.mark.parametrize(("color", "apart"), [("message", False), ("message+update", True)])
@pytest.mark.parametrize("options", [{}, {"combine": "attention"}, {"conv": "sage"}])
def test_only_a_colored_update_tells_a_node_from_its_twin(options, color, apart):
    """Two users of the same items, without features: read when the first of them is colored."""
    data = HeteroData()
    data["user"].num_nodes, data["item"].num_nodes = 3, 2
    edges = torch.tensor([[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]])
    data["user", "buys", "item"].edge_index, data["item", "of", "user"].edge_index = edges, edges.flip(0)
    itself, twin, other = network(data, color=color, num_layers=3, **options).double()(
        data, (("user", [0, 1, 2]), ("user", [0, 0, 0]))
    )
    assert torch.allclose(itself, twin, atol=1e-12) != apart
    assert not torch.allclose(itself, other, atol=1e-6)


def test_an_index_is_made_once_and_used_again():
    data = races()
    model = network(data)
    index = model.index(data)
    for queries in ("driver", PAIRS):
        torch.testing.assert_close(model(index, queries), model(data, queries), rtol=0, atol=0)
    assert torch.equal(model(pickle.loads(pickle.dumps(index)), PAIRS), model(data, PAIRS))  # as worker processes do
    ready = index.prepare(PAIRS).to("cpu")
    torch.testing.assert_close(model.run(ready), model(data, PAIRS), rtol=0, atol=0)


def test_embed_within_little_memory():
    data = races()
    model = network(data).eval()
    queries = reachable(data, "driver", "circuit", 4)
    expected = model(data, queries).detach()
    for memory in (None, "12KiB", "64KiB"):
        torch.testing.assert_close(model.embed(data, queries, memory=memory), expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(TooLargeError, match="the plain states of 35 nodes in 4 rounds"):
        model.embed(data, queries, memory="1KiB")
    assert model.train().embed(data, "driver").shape == (5, 4) and model.training


def test_dropout_acts_in_training_alone():
    data = races()
    model = network(data, dropout=0.5)
    assert not torch.equal(model(data, "driver"), model(data, "driver"))
    model.eval()
    assert torch.equal(model(data, "driver"), model(data, "driver"))


def test_queries_with_times_are_those_of_their_snapshots():
    data = races()
    data["race"].time = torch.arange(7)
    model = network(data)
    times = torch.tensor([6, 2, 6, 4])
    out = model(data, ("driver", ROOTS), query_time=times)
    for place, time in enumerate(times.tolist()):
        alone = model(snapshot(data, time), ("driver", ROOTS[place : place + 1]))
        torch.testing.assert_close(out[place : place + 1], alone, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="query_time needs the graph itself"):
        model(model.index(data), "driver", query_time=3)


def test_it_learns_which_circuits_a_driver_has_raced_on():
    """Without identity a circuit looks the same to every driver, so that only the full version can."""
    data = races()
    race = {int(a): int(b) for a, b in data["race", "at", "circuit"].edge_index.t()}
    of = dict(data["result", "of", "driver"].edge_index.t().tolist())
    where = {(of[int(a)], race[int(b)]) for a, b in data["result", "in", "race"].edge_index.t()}
    circuits, drivers = torch.cartesian_prod(torch.arange(3), torch.arange(5)).t()
    label = torch.tensor([(d, c) in where for c, d in zip(circuits.tolist(), drivers.tolist(), strict=True)])
    assert 0 < int(label.sum()) < 15
    queries = (("circuit", circuits), ("driver", drivers))
    config = HeteroConfig(hidden_channels=16, out_channels=16, num_layers=3, root="driver")
    model = HeteroIDGNN.for_data(data, config)
    head = PairHead(model.pair_channels, 1, None)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.02)
    ready = model.prepare(data, queries)
    for _ in range(60):
        optimizer.zero_grad()
        score = head(model.run(ready)).squeeze(-1)
        loss = nn.functional.binary_cross_entropy_with_logits(score, label.float())
        loss.backward()
        optimizer.step()
    assert ((head(model.run(ready)).squeeze(-1) > 0) == label).all()


def test_half_precision_by_autocast():
    data = races()
    model = network(data).eval()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(data, "driver")
    torch.testing.assert_close(out.float(), model(data, "driver"), rtol=0.1, atol=0.1)


@pytest.mark.filterwarnings("default::idgnn.identity.identity_graph.UnreachedColorWarning")
def test_pairs_that_no_color_reaches_are_warned_of():
    data = races()
    lonely = HeteroData({kind: {"x": data[kind].x} for kind in data.node_types})
    for kind in data.edge_types:
        lonely[kind].edge_index = data[kind].edge_index[:, :0]
    model = network(data)
    for call in (model, model.embed):
        with pytest.warns(UnreachedColorWarning, match="4 of 4 queries read a node that lies more than 4 steps"):
            call(lonely, PAIRS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(data, reachable(data, "driver", "circuit", 4))


@pytest.mark.parametrize("conv", ["sage", "gat", "gin", "gine"])
def test_operators_of_edge_types_are_saved_and_embedded(conv, tmp_path):
    data = races()
    data["result", "of", "driver"].edge_attr = torch.randn(20, 2)
    model = network(data, conv=conv, aggr="max", heads=2, combine="attention", root="driver").eval()
    model.save(tmp_path)
    loaded = HeteroIDGNN.load(tmp_path)
    assert loaded.config == model.config
    for queries in ("driver", PAIRS):
        expected = model(data, queries).detach()
        torch.testing.assert_close(loaded(data, queries), expected, rtol=0, atol=0)
        for memory in (None, "12KiB"):
            torch.testing.assert_close(model.embed(data, queries, memory=memory), expected, rtol=1e-5, atol=1e-5)
    ready = pickle.loads(pickle.dumps(model.index(data))).prepare(PAIRS).to("cpu")
    torch.testing.assert_close(model.run(ready), model(data, PAIRS), rtol=0, atol=0)
    if conv == "gine":
        del data["result", "of", "driver"].edge_attr
        with pytest.raises(ValueError, match=r"edge_attr of .* is NoneType, expected \[num_edges, 2\]"):
            model(data, "driver")
        with pytest.raises(ValueError, match="no edge type has edge features"):
            network(data, conv=conv)


def test_bad_input_gets_a_sentence():
    data = races()
    model = network(data)
    with pytest.raises(ValueError, match=r"'circuit' is 3 message steps from 'driver' .* Use at least 3 layers"):
        network(data, num_layers=2)(data, PAIRS)
    with pytest.raises(ValueError, match="the options name the node type 'pilot'"):
        network(data, root="pilot")
    with pytest.raises(ValueError, match="Use conv='sage' for maxima"):
        network(data, aggr="max")
    with pytest.raises(ValueError, match="identity is 'half'"):
        network(data, identity="half")
    other = races()
    del other["race", "at", "circuit"]
    with pytest.raises(ValueError, match="but the network was made for"):
        model(other, "driver")
    wide = races(5)
    with pytest.raises(ValueError, match=r"x of 'driver' is \[5, 5\], expected \[num_nodes, 3\]"):
        model(wide, "driver")
    with pytest.raises(ValueError, match=r"x of 'driver' has dtype torch\.float64"):
        model(races().apply(lambda t: t.double() if t.is_floating_point() else t), "driver")
    few = network(data, num_embeddings={"driver": 4})
    with pytest.raises(ValueError, match="5 nodes of 'driver', but the network has a learned vector for 4"):
        few(data, "driver")
    broken = races()
    broken["race"].x[2, 0] = float("nan")
    with pytest.raises(ValueError, match="x of 'race' holds NaN or infinite features in 1 rows"):
        model(broken, "driver")
    with pytest.raises(ValueError, match="name the node type 'pilot'"):
        model(data, "pilot")
    with pytest.raises(ValueError, match="the queries are none of 'driver', expected at least one"):
        model(data, ("driver", []))
    with pytest.raises(ValueError, match="query_time is '2010-01-01', expected numbers"):
        model(data, "driver", query_time="2010-01-01")
