"""`torch.compile` gives what eager gives, for graphs of any size."""

import shutil

import pytest
import torch
from torch_geometric.nn import GCNConv

from idgnn import identity_graph
from tests.models.small_graphs import CONVS, PAIRS, edge_of, ladder, network


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def outcome(model, conv, data, **options) -> list[torch.Tensor]:
    """Embeddings and the gradients of all parameters."""
    parameters = list(model.parameters())
    out = model(data.x, data.edge_index, **edge_of(conv, data), **options)
    towards = torch.linspace(-1, 1, out.numel()).view_as(out)
    return [out.detach(), *torch.autograd.grad(out, parameters, towards, materialize_grads=True)]


def assert_alike(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("conv", CONVS)
def test_traced_with_a_prebuilt_graph(conv):
    """Without a warning: the plan is there before anything is computed, so that nothing interrupts the rounds."""
    model = network(conv, num_layers=2).train()
    eager = network(conv, num_layers=2).train()
    eager.load_state_dict(model.state_dict())
    compiled = torch.compile(model, backend="aot_eager")
    for rungs in (4, 3):  # the second size makes the shapes dynamic
        data = ladder(rungs)
        graph = identity_graph(data, 2)
        assert_alike(outcome(compiled, conv, data, graph=graph), outcome(eager, conv, data, graph=graph))
    for mine, other in zip(model.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(mine, other)


# Queries, counts and layers of PyG interrupt the trace; PyTorch then looks at the .grad of what is half computed.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")
@pytest.mark.parametrize(
    ("conv", "identity", "queries"), [("gcn", "full", PAIRS), ("gcn", "fast", None), (GCNConv, "full", None)]
)
def test_traced_without_a_prebuilt_graph(conv, identity, queries):
    model = network(conv, identity, num_layers=1).eval()
    compiled = torch.compile(model, backend="aot_eager")
    for rungs in (4, 3):
        data = ladder(rungs)
        asked = None if queries is None else queries % (2 * rungs)
        ours, theirs = (outcome(one, conv, data, queries=asked) for one in (compiled, model))
        assert_alike(ours, theirs)


@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="needs a C++ compiler")
def test_compiled_by_inductor_with_a_prebuilt_graph():
    model = network("gcn", num_layers=2).eval()
    compiled = torch.compile(model)
    data = ladder()
    graph = identity_graph(data, 2)
    assert_alike(outcome(compiled, "gcn", data, graph=graph), outcome(model, "gcn", data, graph=graph))
