"""A batch that is cut out of a prepared dataset is the batch that is prepared by itself."""

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch import Tensor
from torch_geometric.data import Batch, Data

from idgnn import IDGNN
from idgnn.models.prepared import PreparedGraphs
from tests.laws.networks import ACTS, KINDS, Kind, assert_same_function, encoder
from tests.laws.test_batching import ASKED, datasets

pytestmark = pytest.mark.filterwarnings("ignore::idgnn.identity.identity_graph.UnreachedColorWarning")


def prepare(model: IDGNN, kind: Kind, graphs: list[Data], asked: str | None, engine: str | None):
    batch = Batch.from_data_list(graphs)
    queries = None if asked is None else batch[asked]
    return batch, model.prepare(batch.x, batch.edge_index, queries=queries, engine=engine, **kind.edge(batch))


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("identity", ["full", "fast", "none"])
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(draw=st.data(), listed=datasets(), num_layers=st.integers(1, 4))
def test_a_cut_batch_gives_what_the_batch_gives(kind, identity, asked, draw, listed, num_layers):
    kind = KINDS[kind]
    for data in listed:
        if data.x is None:
            data.x = torch.ones(data.num_nodes, 3, dtype=torch.double)
    chosen = draw.draw(st.lists(st.sampled_from(range(len(listed))), min_size=1, max_size=4, unique=True))
    engine = draw.draw(st.sampled_from(["trimmed", "graph", "ego"])) if identity == "full" else None
    act = draw.draw(st.sampled_from(ACTS))
    model = encoder(kind, num_layers, identity, residual=draw.draw(st.booleans()), act=act)
    batch, everything = prepare(model, kind, listed, asked, engine)
    stack = PreparedGraphs(everything, batch.batch, len(listed))
    for ids in (chosen, list(reversed(chosen))):  # the second time what the first left behind must not matter
        ready, cut = stack.cut(torch.tensor(ids))
        _, expected = prepare(model, kind, [listed[i] for i in ids], asked, engine)
        runs = (lambda: model.run(ready)), (lambda: model.run(expected))  # noqa: B023
        assert_same_function(*runs, [], list(model.parameters()))
        assert cut.graph(stack.queries).tolist() == graph_of_queries([listed[i] for i in ids], asked)


def graph_of_queries(graphs: list[Data], asked: str | None) -> list[int]:
    def count(data: Data) -> int:
        queries = data[asked] if asked else torch.arange(data.num_nodes)
        assert isinstance(queries, Tensor)
        return queries.size(-1)

    return [i for i, data in enumerate(graphs) for _ in range(count(data))]


def test_layers_of_the_users_own_cannot_be_cut():
    from torch_geometric.nn import GraphConv

    model = IDGNN(1, 4, 2, 2, GraphConv, "full")
    ready = model.prepare(torch.ones(2, 1), torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="Prepare every batch by itself"):
        PreparedGraphs(ready, torch.tensor([0, 1]), 2)
