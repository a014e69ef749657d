"""The networks that are compared with PyG's are the same networks."""

import pytest
import torch
from torch import nn

from benchmarks.against_pyg import PYG_LAYERS, PyGNetwork
from idgnn import IDGNN
from idgnn.models.budget import num_parameters

# Of each architecture: the parameters of our layer, and those of PyG's that hold the same.
WEIGHTS = {
    "gcn": {"lin.weight": "lin.weight"},
    "gat": {"lin.weight": "lin.weight", "att_source": "att_src", "att_target": "att_dst"},
    "gin": {"lin.weight": "nn.0.weight", "lin.bias": "nn.0.bias", "lin_out.weight": "nn.2.weight"},
    "sage": {"lin.weight": "lin.weight", "lin.bias": "lin.bias"},
}


@pytest.mark.parametrize("conv", PYG_LAYERS)
def test_with_equal_weights_they_compute_the_same(conv):
    torch.manual_seed(0)
    theirs, ours = PyGNetwork(PYG_LAYERS[conv], 3, 8, 2).double(), IDGNN(3, 8, 2, 3, conv, "none").double()
    assert num_parameters(theirs) == num_parameters(ours)
    with torch.no_grad():
        for layer, mine in zip(theirs.convs, ours.convs, strict=True):
            given = dict(layer.named_parameters())
            for name, other in WEIGHTS[conv].items():
                target = mine.operator.get_parameter(name)
                target.copy_(given[other].view_as(target))
            if conv == "sage":
                mine.operator.lin_out.weight.copy_(torch.cat([layer.lin_l.weight, layer.lin_r.weight], dim=1))
    for part in ("lin_in", "lin_out"):
        getattr(ours, part).load_state_dict(getattr(theirs, part).state_dict())
    assert not any(isinstance(module, nn.Dropout) for module in theirs.modules())
    edge_index = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2]])
    x = torch.rand(5, 3, dtype=torch.double)  # node 4 has no edges
    torch.testing.assert_close(ours(x, edge_index), theirs(x, edge_index))
