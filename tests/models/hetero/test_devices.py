"""The networks over several node types on a GPU give what they give on the CPU."""

import pytest
import torch
from torch_geometric.nn import HeteroConv, SAGEConv

from idgnn import HeteroConfig, HeteroIDGNN, identity_aware, reachable
from idgnn.graphs.relational.interactions import Interactions
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.training.collaborative import TowerSettings, WalkSettings, measure_all, to_device, train_towers, train_walks
from idgnn.training.relational import RelationalSettings, train_relational
from tests.models.hetero.races import ROOTS, races
from tests.training.test_relational import entities, recommendation

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")),
]
PAIRS = (("circuit", torch.tensor([0, 1, 2, 0])), ("driver", ROOTS))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [{}, {"combine": "attention"}, {"conv": "gat"}, {"conv": "sage", "aggr": "max"}])
def test_encoders(device, options):
    data = races()
    model = HeteroIDGNN.for_data(data, HeteroConfig(hidden_channels=8, num_layers=4, **options)).eval()
    expected = model(data, PAIRS)
    weights = torch.randn_like(expected)
    (expected * weights).sum().backward()
    theirs = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    model.zero_grad()
    model, moved = model.to(device), data.to(device)
    pairs = tuple((kind, ids.to(device)) for kind, ids in PAIRS)
    out = model(moved, pairs)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-4)
    (out * weights.to(device)).sum().backward()
    ours = [weight.grad for weight in model.parameters() if weight.grad is not None]
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(model.embed(moved, pairs), expected.detach(), rtol=1e-4, atol=1e-4)
    ready = model.cpu().index(data.cpu()).prepare(PAIRS).to(device)  # prepared on the CPU, run on the device
    torch.testing.assert_close(model.to(device).run(ready).cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_wrapped_models(device):
    data = races()
    layer = HeteroConv({kind: SAGEConv((3, 3), 4) for kind in data.edge_types})
    model = identity_aware(layer)
    queries = reachable(data, "result", "race", 1)
    expected = model(data.x_dict, data.edge_index_dict, queries=queries)
    moved = data.to(device)
    pairs = tuple((kind, ids.to(device)) for kind, ids in queries)
    out = model.to(device)(moved.x_dict, moved.edge_index_dict, queries=pairs)
    torch.testing.assert_close(out.cpu(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["recommendation", "entity-regression"])
@pytest.mark.parametrize("identity", ["full", "fast", "none"])
def test_training_on_tables(device, kind, identity):
    problem = recommendation() if kind == "recommendation" else entities(kind)
    settings = RelationalSettings(identity=identity, num_layers=2, hidden_channels=8, epochs=2, lr=0.01)
    expected = train_relational(problem, settings)
    run = train_relational(problem, settings, device=device)
    for name, value in expected.metrics["valid"].items():
        assert run.metrics["valid"][name] == pytest.approx(value, rel=0.05, abs=0.05)


@pytest.mark.parametrize("device", DEVICES)
def test_rankings_of_all_items(device):
    lists = ItemLists.of([[0, 1, 2], [1, 2, 3], [3, 4], [0, 4, 5]])
    data = to_device(Interactions(lists, ItemLists.of([[3], [0], [5], [1]]), 6), device)
    towers = train_towers(data, TowerSettings(channels=4, epochs=2, batch_size=4), device=device)
    walks = train_walks(data, WalkSettings(steps=2, users_per_step=4), device=device)
    for scores in (towers, walks.scores):
        assert set(measure_all(scores, data, k=2)) == {"map", "recall", "ndcg", "mrr", "precision"}
