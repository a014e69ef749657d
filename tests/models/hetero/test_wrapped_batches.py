"""Wrapped models over several node types: parts of a graph, batches of roots, colored updates and files."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import HeteroConv, HGTConv, SAGEConv

from idgnn import HeteroConfig, HeteroIDGNN, RootLoader, identity_aware, reachable
from tests.models.hetero.races import ROOTS, races
from tests.models.hetero.test_identity_aware import MODELS, Typed, colored_by_hand, draw

pytestmark = [
    pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning"),
    pytest.mark.usefixtures("double"),
]
CIRCUITS = torch.tensor([0, 1, 2, 0])
PAIRS = (("circuit", CIRCUITS), ("driver", ROOTS))


def wrapped(name: str, color: str = "message"):
    data, module = races(), MODELS[name]()
    with torch.no_grad():
        module(data.x_dict, data.edge_index_dict)
    model = identity_aware(module, color=color)
    model(data.x_dict, data.edge_index_dict, queries="driver")  # color maps without a width get theirs
    draw(model)
    return data, model.eval()


def far_away():
    """Two copies of a graph that are not connected: batches of the first see nothing of the second."""
    one, other = races(), races()
    for kind in one.node_types:
        size = one[kind].num_nodes
        one[kind].x = torch.cat([one[kind].x, other[kind].x + 1])
        other[kind].first = size
    for kind in one.edge_types:
        shift = torch.tensor([[other[kind[0]].first], [other[kind[2]].first]])
        one[kind].edge_index = torch.cat([one[kind].edge_index, other[kind].edge_index + shift], dim=1)
    return one


@pytest.mark.parametrize("name", MODELS)
def test_a_part_of_the_graph_answers_as_the_whole(name):
    _, model = wrapped(name)
    data = far_away()
    others = (("circuit", torch.tensor([4, 0])), ("driver", torch.tensor([1, 9])))  # no color reaches these
    for queries in (("driver", ROOTS), others, reachable(data, "driver", "circuit", 4)):
        expected = model(data.x_dict, data.edge_index_dict, queries=queries).detach()
        torch.testing.assert_close(model.embed(data, queries, memory="10KB"), expected, rtol=0, atol=1e-10)
        ready = model.prepare(data, queries)
        torch.testing.assert_close(model.run(ready), expected, rtol=0, atol=1e-10)
    part = model.prepare(data, ("driver", ROOTS))
    if name != "HANConv":  # which weighs relations by all nodes
        assert part.call.num_nodes["driver"] <= 5 < data["driver"].num_nodes


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["SAGEConv", "lazy", "encoder", "takes the graph"])
def test_batches_of_roots_answer_as_the_whole(kind, workers):
    data = far_away()
    if kind == "encoder":
        model = HeteroIDGNN.for_data(data, HeteroConfig(hidden_channels=4, num_layers=3))
        whole = lambda asked: model(data, asked)  # noqa: E731
    elif kind == "takes the graph":
        model = identity_aware(Typed())
        whole = lambda asked: model(data, queries=asked)  # noqa: E731
    else:
        model = wrapped(kind)[1].train()
        whole = lambda asked: model(data.x_dict, data.edge_index_dict, queries=asked)  # noqa: E731
    for queries in ("driver", PAIRS):
        loader = RootLoader(data, model, queries, batch_size=3, shuffle=True, num_workers=workers)
        expected = whole(queries)
        weight = torch.randn_like(expected)
        theirs = torch.autograd.grad((expected * weight).sum(), list(model.parameters()), allow_unused=True)
        parts, order = [], []
        for batch in loader:
            parts.append(model.run(batch.ready))
            order.append(batch.index)
            node = batch.queries if queries == "driver" else batch.queries[0]
            assert node.tolist() == (batch.index if queries == "driver" else CIRCUITS[batch.index]).tolist()
        assert len(order) == len(loader) == (4 if queries == "driver" else 2)
        out = torch.empty_like(expected).index_copy(0, torch.cat(order), torch.cat(parts))
        torch.testing.assert_close(out, expected, rtol=0, atol=1e-10)
        ours = torch.autograd.grad((out * weight).sum(), list(model.parameters()), allow_unused=True)
        for one, other in zip(ours, theirs, strict=True):
            zero = torch.zeros(())
            torch.testing.assert_close(one if one is not None else zero, other if other is not None else zero)


@pytest.mark.parametrize("name", MODELS)
def test_colored_updates_equal_one_colored_copy_each(name):
    data, model = wrapped(name, "message+update")
    assert any(update.shape is not None for update in updates(model))
    for read, nodes in (("circuit", CIRCUITS), ("driver", ROOTS)):
        found = model(data.x_dict, data.edge_index_dict, queries=((read, nodes), ("driver", ROOTS)))
        expected = colored_by_hand(model, data, read, nodes, ROOTS)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)
        torch.testing.assert_close(
            model.embed(data, ((read, nodes), ("driver", ROOTS))), expected.detach(), rtol=0, atol=1e-10
        )


@pytest.mark.parametrize("kind", ["HeteroConv", "HGTConv"])
def test_a_colored_update_adds_a_map_of_the_own_state(kind):
    """One round, message maps plain: the colored driver has W h more than the plain one, once for each layer there."""
    data = races()
    if kind == "HeteroConv":
        module = HeteroConv({kind: SAGEConv((3, 3), 3) for kind in data.edge_types})
    else:
        module = HGTConv(3, 3, data.metadata())
    model = identity_aware(module, color="message+update")
    plain = model(data.x_dict, data.edge_index_dict, queries="driver")
    torch.testing.assert_close(plain, module(data.x_dict, data.edge_index_dict)["driver"])  # zero at first
    total = 0
    for name, parameter in model.colors.named_parameters():
        if "update" in name:
            nn.init.normal_(parameter)
            if name.startswith("layer.driver.") or "result__of__driver" in name or "<result___of___driver>" in name:
                total = total + parameter
    out = model(data.x_dict, data.edge_index_dict, queries="driver")
    assert not isinstance(total, int)
    torch.testing.assert_close(out, plain + data["driver"].x @ total.t())


@pytest.mark.parametrize("color", ["message", "message+update"])
@pytest.mark.parametrize("name", ["SAGEConv", "HGTConv", "to_hetero"])
def test_files_hold_the_weights(name, color, tmp_path):
    data, model = wrapped(name, color)
    model.save(tmp_path / "model.safetensors")
    other = identity_aware(MODELS[name](), color=color).load(tmp_path / "model.safetensors")
    expected = model(data.x_dict, data.edge_index_dict, queries=PAIRS)
    assert torch.equal(other(data.x_dict, data.edge_index_dict, queries=PAIRS), expected)


class Residual(nn.Module):
    """Adds what a round started from, which has more rows than matter after it."""

    def __init__(self) -> None:
        super().__init__()
        kinds = races().edge_types
        self.convs = nn.ModuleList(HeteroConv({kind: SAGEConv((3, 3), 3) for kind in kinds}) for _ in range(3))

    def forward(self, x_dict, edge_index_dict):
        for conv in self.convs:
            x_dict = {kind: x_dict[kind] + h.tanh() for kind, h in conv(x_dict, edge_index_dict).items()}
        return x_dict


def test_a_round_computes_the_rows_that_matter():
    """Three results of a chain of layers: sizes by round; a model that needs all rows gets them."""
    data, model = wrapped("SAGEConv")
    sizes: dict[int, int] = {}
    for k, conv in enumerate(model.module.convs):
        for layer in conv.modules():
            if isinstance(layer, SAGEConv):
                layer.register_forward_hook(lambda _, args, out, k=k: sizes.update({k: sizes.get(k, 0) + out.size(0)}))
    asked = ("driver", torch.tensor([1]))
    expected = colored_by_hand(model, data, "driver", [1], [1])
    sizes.clear()
    torch.testing.assert_close(model(data.x_dict, data.edge_index_dict, queries=asked), expected)
    assert sizes[3] == 1 and sizes[0] > sizes[1] > sizes[2] > sizes[3]  # one edge type ends at drivers
    residual = identity_aware(Residual())
    residual(data.x_dict, data.edge_index_dict, queries=asked)
    draw(residual)
    assert residual.prepare(data, asked).plan.trim is None
    torch.testing.assert_close(
        residual(data.x_dict, data.edge_index_dict, queries=asked),
        colored_by_hand(residual, data, "driver", [1], [1]),
    )


def updates(model) -> list:
    return [part.update for part in model.color_maps() if part.update is not None]


def test_bad_batches_get_a_sentence():
    data = races()
    model = identity_aware(MODELS["SAGEConv"]())
    with pytest.raises(ValueError, match="fanout is for graphs of one node type"):
        RootLoader(data, model, "driver", fanout=(3, 3))
    with pytest.raises(ValueError, match="expected a HeteroIDGNN or a model over several node types"):
        RootLoader(data, nn.Linear(2, 2), "driver")
    with pytest.raises(ValueError, match="the network is over several node types, but data is a Data"):
        RootLoader(data.to_homogeneous(), model)
    with pytest.raises(ValueError, match="name the node type 'pilot'"):
        RootLoader(data, model, "pilot")
