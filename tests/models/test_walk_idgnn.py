import pytest
import torch
from torch_geometric.data import HeteroData

import idgnn
from idgnn.graphs.relational.interactions import pairs_graph
from idgnn.graphs.relational.task_tables import ItemLists
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.walk_idgnn import WalkIDGNN

LISTS = ItemLists.of([[0, 1, 3], [1, 2], [], [2, 3], [4]])
NUM_ITEMS = 6


def by_identity_graph(data: HeteroData, exponents: list[float]) -> torch.Tensor:
    """The equation of the class, row by row on the identity graph of all users and items."""
    users, items = torch.arange(5).repeat_interleave(NUM_ITEMS), torch.arange(NUM_ITEMS).repeat(5)
    with pytest.warns(UnreachedColorWarning):
        graph = idgnn.identity_graph(data, len(exponents), (("item", items), ("user", users)))
    degree = {
        "item": torch.bincount(LISTS.item, minlength=NUM_ITEMS).clamp(min=1).double(),
        "user": LISTS.size.clamp(min=1).double(),
    }
    h = {kind: torch.zeros(graph[kind].num_nodes, dtype=torch.double) for kind in graph.node_types}
    for k, exponent in enumerate(exponents):
        sent = {kind: state + (graph[kind].colored if k == 0 else 0) for kind, state in h.items()}
        h = {kind: torch.zeros_like(state) for kind, state in h.items()}
        for kind in graph.edge_types:
            source, target = graph[kind].edge_index
            h[kind[2]].index_add_(0, target, sent[kind[0]][source])
        h = {kind: state * degree[kind][graph[kind].node] ** exponent for kind, state in h.items()}
    return h["item"][graph.query_row].view(5, NUM_ITEMS)


@pytest.mark.parametrize("exponents", [[0.0, 0.0, 0.0], [-1.0, -1.0, 0.0], [-0.7, -0.9, -0.2], [0.5], [-0.3] * 5])
def test_it_is_id_gnn_full(exponents):
    model = WalkIDGNN(LISTS, NUM_ITEMS, exponents).double()
    model.exponents.data = torch.tensor(exponents, dtype=torch.double)
    found = model.scores(torch.arange(5))
    torch.testing.assert_close(found, by_identity_graph(pairs_graph(LISTS, NUM_ITEMS), exponents), atol=1e-6, rtol=1e-6)


def test_counts_are_walk_counts():
    data = pairs_graph(LISTS, NUM_ITEMS)
    items, users = torch.arange(NUM_ITEMS).repeat(5), torch.arange(5).repeat_interleave(NUM_ITEMS)
    counts = idgnn.walk_counts(data, None, (("item", items), ("user", users)), 3)[:, 2]
    assert WalkIDGNN(LISTS, NUM_ITEMS, (0, 0, 0)).scores(torch.arange(5)).flatten().tolist() == counts.tolist()


def test_gradients_are_those_of_finite_differences():
    model = WalkIDGNN(LISTS, NUM_ITEMS).double()
    start = torch.tensor([-0.7, -0.9, -0.2], dtype=torch.double)

    def total(exponents: torch.Tensor) -> torch.Tensor:
        model.exponents.data = exponents
        return model.scores(torch.tensor([0, 3])).square().sum()

    total(start).backward()
    assert model.exponents.grad is not None
    for k, gradient in enumerate(model.exponents.grad.tolist()):
        shift = 1e-6 * torch.eye(3, dtype=torch.double)[k]
        slope = (total(start + shift) - total(start - shift)).item() / 2e-6
        assert gradient == pytest.approx(slope, rel=1e-5)


def test_an_even_number_of_rounds_is_refused():
    with pytest.raises(ValueError, match="2 exponents were given, expected an odd number"):
        WalkIDGNN(LISTS, NUM_ITEMS, (0.0, 0.0))
