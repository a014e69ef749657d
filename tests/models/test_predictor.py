"""An encoder and a head, as wide as the budget allows."""

import json
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch

from idgnn import IDGNN
from idgnn.models.budget import num_parameters
from idgnn.models.heads import GraphHead, NodeHead
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.settings import ModelSettings
from tests.models.small_graphs import CONVS, IDENTITIES, PAIRS, edge_of, ladder

LEVELS = ("node", "pair", "graph")
OUTPUTS = 6


def plain_gcn(level: str, width: int = 256, num_layers: int = 3) -> int:
    """Parameters of a plain GCN with the head that the paper gives it; for pairs a linear layer."""
    encoder = IDGNN(1, width, None, num_layers, "gcn", "none")
    head = GraphHead(width, OUTPUTS) if level == "graph" else NodeHead(width, OUTPUTS)
    return num_parameters(encoder) + num_parameters(head)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_every_network_has_the_parameters_of_a_plain_gcn_within_one_percent(conv, identity, level):
    settings = ModelSettings(conv=conv, identity=identity)
    found = num_parameters(make_predictor(settings, level, 1, OUTPUTS, edge_dim=2))
    expected = plain_gcn(level, num_layers=5 if level == "pair" else 3)
    assert abs(found - expected) <= 0.01 * expected


@pytest.mark.parametrize("level", ["node", "graph"])
def test_the_reference_is_the_plain_gcn_itself(level):
    model = make_predictor(ModelSettings(conv="gcn", identity="none"), level, 1, OUTPUTS, None)
    assert model.settings["encoder"]["hidden_channels"] == 256
    assert num_parameters(model) == plain_gcn(level)


def test_the_conditional_embedding_of_a_pair_is_read_by_one_linear_layer_and_two_embeddings_by_an_mlp():
    settings = ModelSettings(pair_head="paper")
    full, plain = (
        make_predictor(replace(settings, identity=each), "pair", 1, OUTPUTS, None) for each in ("full", "none")
    )
    assert [tuple(p.shape) for p in full.head.parameters()] == [(OUTPUTS, full.encoder.pair_channels), (OUTPUTS,)]
    assert tuple(next(plain.head.parameters()).shape) == (256, 2 * plain.settings["encoder"]["hidden_channels"])


@pytest.mark.parametrize("heads", [2, 3, 8])
@pytest.mark.parametrize("identity", IDENTITIES)
def test_attention_heads_share_the_width(identity, heads):
    model = make_predictor(ModelSettings(conv="gat", identity=identity, heads=heads), "node", 1, OUTPUTS, None)
    assert model.settings["encoder"]["hidden_channels"] % heads == 0


@pytest.mark.parametrize("level", LEVELS)
def test_a_width_is_taken_as_given(level):
    model = make_predictor(ModelSettings(width=20, budget=256), level, 1, OUTPUTS, None)
    assert model.settings["encoder"]["hidden_channels"] == 20
    assert model.encoder.num_layers == (5 if level == "pair" else 3)
    assert make_predictor(ModelSettings(width=20, layers=2), level, 1, OUTPUTS, None).encoder.num_layers == 2


def answer(model: Predictor, level: str) -> torch.Tensor:
    """About two graphs in evaluation mode."""
    batch = Batch.from_data_list([ladder(4), ladder(5, seed=1)])
    pairs = torch.cat([PAIRS, PAIRS + 8], dim=1)
    queries = pairs if level == "pair" else None
    conv = model.settings["encoder"]["conv"]
    ready = model.encoder.prepare(batch.x, batch.edge_index, queries=queries, **edge_of(conv, batch))
    graph = batch.batch if queries is None else batch.batch[queries[0]]
    with torch.no_grad():
        return model.eval()(ready, graph, 2)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
def test_a_saved_network_answers_as_before(tmp_path, conv, identity, level):
    settings = ModelSettings(conv=conv, identity=identity, width=12, cycle_length=4, cycle_scale="walk")
    model = make_predictor(settings, level, 3, OUTPUTS, edge_dim=2)
    for norm in model.encoder.norms:
        norm.module.running_mean.normal_()
    expected = answer(model, level)
    assert expected.shape == ({"node": 18, "pair": 10, "graph": 2}[level], OUTPUTS)
    model.save(tmp_path)
    again = Predictor.load(tmp_path)
    assert again.settings == model.settings == json.loads(json.dumps(model.settings))
    assert torch.equal(answer(again, level), expected)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_an_answer_depends_on_its_own_graph_alone(identity, level):
    model = make_predictor(ModelSettings(identity=identity, width=12), level, 3, OUTPUTS, None).eval()
    together, alone = answer(model, level), []
    for data in (ladder(4), ladder(5, seed=1)):
        ready = model.encoder.prepare(data.x, data.edge_index, queries=PAIRS if level == "pair" else None)
        size = PAIRS.size(1) if level == "pair" else data.num_nodes
        with torch.no_grad():
            alone.append(model(ready, torch.zeros(size, dtype=torch.long), 1))
    assert torch.allclose(together, torch.cat(alone), atol=1e-5)


def test_an_encoder_is_not_loaded_as_a_predictor(tmp_path):
    IDGNN(1, 4, 2).save(tmp_path)
    with pytest.raises(ValueError, match=r"holds a IDGNN, expected a Predictor. Load it with IDGNN.load"):
        Predictor.load(tmp_path)


@pytest.mark.parametrize("name", ["layers", "width", "budget", "heads", "cycle_length"])
def test_settings_below_one_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} is 0, expected a whole number of at least 1"):
        replace(ModelSettings(), **{name: 0})


def test_a_budget_that_no_width_meets_is_refused():
    with pytest.raises(ValueError, match="no width gives"):
        make_predictor(ModelSettings(conv="gat", heads=64, budget=20), "node", 1, OUTPUTS, None)
