"""Of queries that no color reaches a warning points to the line that asked them, whatever was called there."""

import pytest
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GIN, GCNConv

from idgnn import IDGNN, HeteroIDGNN, ToIdentityGraph, identity_aware, identity_graph
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.hetero.config import HeteroConfig

FAR = torch.tensor([[5], [0]])
PATH = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
DATA = Data(x=torch.ones(6, 1), edge_index=torch.cat([PATH, PATH.flip(0)], dim=1), far=FAR)
TYPED = HeteroData(user={"x": torch.ones(2, 1)}, item={"x": torch.ones(2, 1)})
TYPED["user", "item"].edge_index = torch.tensor([[0, 1], [0, 1]])
TYPED["item", "user"].edge_index = torch.tensor([[0, 1], [0, 1]])
TYPED_FAR = ("user", torch.tensor([1])), ("user", torch.tensor([0]))
MODEL, OTHER_LAYERS, TWO = IDGNN(1, 8, 2), IDGNN(1, 8, 2, conv=GCNConv), IDGNN(1, 8, 2, colors=2)
WRAPPED = identity_aware(GIN(1, 8, 3))
TYPED_MODEL = HeteroIDGNN.for_data(TYPED, HeteroConfig(hidden_channels=4, out_channels=2, num_layers=2))
CALLS = {
    "identity_graph": lambda: identity_graph(DATA, 3, FAR),
    "transform": lambda: ToIdentityGraph(3, "far")(DATA),
    "call": lambda: MODEL(DATA.x, DATA.edge_index, queries=FAR),
    "call with all rows": lambda: MODEL(DATA.x, DATA.edge_index, queries=FAR, engine="graph"),
    "prepare": lambda: MODEL.prepare(DATA.x, DATA.edge_index, queries=FAR),
    "embed": lambda: MODEL.embed(DATA, FAR),
    "other layers": lambda: OTHER_LAYERS(DATA.x, DATA.edge_index, queries=FAR),
    "two colors": lambda: TWO(DATA.x, DATA.edge_index, queries=torch.tensor([[5], [0], [1]])),
    "wrapped": lambda: WRAPPED(DATA.x, DATA.edge_index, queries=FAR),
    "wrapped, embed": lambda: WRAPPED.embed(DATA, FAR),
    "typed graph": lambda: identity_graph(TYPED, 2, TYPED_FAR),
    "typed": lambda: TYPED_MODEL(TYPED, TYPED_FAR),
    "typed, embed": lambda: TYPED_MODEL.embed(TYPED, TYPED_FAR),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_it_points_to_the_call(call):
    with pytest.warns(UnreachedColorWarning, match="1 of 1 queries") as caught:
        call()
    assert [(each.filename, each.lineno) for each in caught] == [(__file__, call.__code__.co_firstlineno)]
