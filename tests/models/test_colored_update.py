"""`identity_aware(color="message+update")`: any layer, exact, and at first the layer that was given."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GIN, PNA, GATConv, GCNConv, GraphSAGE, SAGEConv, TransformerConv

from idgnn import IDGNN, RootLoader, identity_aware, match_budget
from idgnn.models.budget import num_parameters

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 1, 5, 3], [1, 2, 3, 4, 0, 3, 2, 0, 1, 5]])  # directed, one self-loop
X = torch.randn(7, 3, dtype=torch.double, generator=torch.Generator().manual_seed(0))  # node 6 has no edges

LAYERS = {
    "gcn": lambda: GCNConv(3, 4),
    "sage": lambda: SAGEConv(3, 4, aggr="max"),
    "gat": lambda: GATConv(3, 2, heads=2),
    "transformer": lambda: TransformerConv(3, 4),
}
MODELS = {
    "gcn": lambda: GCN(3, 8, num_layers=3, out_channels=4),
    "sage": lambda: GraphSAGE(3, 8, num_layers=3, out_channels=4),
    "gat": lambda: GAT(3, 8, num_layers=2, out_channels=4, heads=2),
    "gin": lambda: GIN(3, 8, num_layers=3, out_channels=4, norm="batch_norm"),
    "pna": lambda: PNA(3, 8, 2, 4, aggregators=["mean", "max"], scalers=["identity"], deg=torch.tensor([1, 4, 2])),
}


def drawn(wrapped: nn.Module) -> nn.Module:
    """With color maps as training would make them; the widths are known after the first call."""
    for weight in (getattr(wrapped, "colors", None) or wrapped.color).parameters():
        nn.init.normal_(weight, std=0.5)
    return wrapped


@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS.keys())
def test_a_layer_adds_a_linear_map_of_the_colored_rows_input(make):
    torch.manual_seed(0)
    given = make().double()
    message, update = (identity_aware(given, color=color) for color in ("message", "message+update"))
    colored = torch.tensor([True, False, False, True, False, False, True])
    torch.testing.assert_close(update(X, EDGES, colored=colored), given(X, EDGES))
    drawn(update)
    message.load_state_dict({n: v for n, v in update.state_dict().items() if "update" not in n})
    added = X @ update.color.update.weight.t() * colored[:, None]
    torch.testing.assert_close(update(X, EDGES, colored=colored), message(X, EDGES, colored=colored) + added)
    assert torch.equal(update(X, EDGES, colored=torch.zeros_like(colored)), given(X, EDGES))
    assert torch.equal(update(X, EDGES), given(X, EDGES))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS.keys())
def test_a_model_is_one_colored_copy_of_the_graph_per_query_with_its_gradients(make):
    torch.manual_seed(0)
    model = identity_aware(make().double(), color="message+update").eval()
    with torch.no_grad():
        torch.testing.assert_close(model(X, EDGES), model.module(X, EDGES))
    drawn(model)
    pairs = torch.tensor([[0, 2, 3, 6, 4], [0, 2, 1, 6, 5]])

    def run(answer) -> tuple[Tensor, tuple[Tensor, ...]]:
        out = answer()
        return out, torch.autograd.grad((out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum(), weights)

    weights = [weight for weight in model.parameters() if weight.requires_grad]
    out, gradients = run(lambda: model(X, EDGES, queries=pairs))
    copies = [(read, torch.arange(7) == color) for read, color in pairs.t().tolist()]
    expected, other = run(lambda: torch.stack([model(X, EDGES, colored=colored)[read] for read, colored in copies]))
    torch.testing.assert_close(out, expected)
    for ours, theirs in zip(gradients, other, strict=True):
        torch.testing.assert_close(ours, theirs)
    assert not torch.allclose(out, model.module(X, EDGES)[pairs[0]])


def test_weights_are_saved_and_read_into_a_model_that_was_never_called(tmp_path):
    torch.manual_seed(0)
    model = identity_aware(MODELS["gcn"]().double(), color="message+update").eval()
    with pytest.raises(ValueError, match="has no width before the first call"):
        model.save(tmp_path / "model.safetensors")
    model(X, EDGES)
    drawn(model).save(tmp_path / "model.safetensors")
    read = identity_aware(MODELS["gcn"]().double(), color="message+update").load(tmp_path / "model.safetensors")
    assert torch.equal(read.double()(X, EDGES), model(X, EDGES))


def test_other_colors_are_refused():
    for make in (lambda: identity_aware(GCNConv(2, 2), color="all"), lambda: IDGNN(2, 4, 2, color="all")):
        with pytest.raises(ValueError, match="color is 'all', expected one of 'message', 'message\\+update'"):
            make()


@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin", SAGEConv])
def test_the_budget_counts_the_second_weights(conv):
    narrow, wide = (
        match_budget(lambda w, color=color: IDGNN(1, w, 2, conv=conv, color=color), 100000)
        for color in ("message+update", "message")
    )
    assert narrow < wide
    model = IDGNN(1, narrow, 2, conv=conv, color="message+update")
    assert abs(num_parameters(model) - 100000) <= 1000


@pytest.mark.parametrize("conv", ["gcn", "sage", "sage-sum", "gat", "gin", "gine"])
def test_embed_and_batches_of_roots_are_algorithm_1(conv):
    """The other paths are compared with brute force in tests/laws."""
    torch.manual_seed(0)
    name, _, aggr = conv.partition("-")
    options = {"edge_dim": 2} if name == "gine" else {"aggr": aggr or "max"}
    model = IDGNN(3, 8, 4, num_layers=3, conv=name, color="message+update", **options).double().eval()
    for layer in model.convs:
        nn.init.normal_(layer.operator.update_colored, std=0.5)
    edge = {"edge_attr": torch.randn(EDGES.size(1), 2, dtype=torch.double)} if name == "gine" else {}
    data, pairs = Data(x=X, edge_index=EDGES, **edge), torch.tensor([[0, 2, 3, 6, 4], [0, 2, 1, 6, 5]])
    with torch.no_grad():
        for roots in (torch.arange(7), pairs):
            expected = model(X, EDGES, queries=roots, engine="ego", **edge)
            torch.testing.assert_close(model.embed(data, roots), expected)
            for batch in RootLoader(data, model, roots, batch_size=3):
                torch.testing.assert_close(model.run(batch.ready), expected[batch.index])
