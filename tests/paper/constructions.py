"""The networks of the paper's proofs, with the weights set by hand."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch_geometric.data import Data

from idgnn import IdentityConv, identity_graph
from idgnn.identity.ego import ego_networks

ENGINES = {"identity graph": identity_graph, "Algorithm 1": ego_networks}


@torch.no_grad()
def counting_network(num_layers: int) -> list[IdentityConv]:
    r"""The weights of Lemma 1. The appendix asks for affine messages and their sum:

    .. math::
        \textsc{Msg}_i^{(k)}(\mathbf{h}) = \mathbf{W}_i^k \mathbf{h} + \mathbf{b}_i^k, \qquad
        \mathbf{W}_0^1 = \mathbf{W}_1^1 = 0, \qquad
        \mathbf{W}_0^k = \mathbf{W}_1^k = [0, \mathbf{I}]^\top \in \mathbb{R}^{k \times (k - 1)}, \qquad
        \mathbf{b}_0^k = 0, \qquad \mathbf{b}_1^k = [1, 0, \dots, 0]^\top

    GraphSAGE has a ReLU in its messages, which leaves numbers that are not negative as they are.
    """
    layers = []
    for k in range(1, num_layers + 1):
        layer = _silent("sum", max(k - 1, 1), k)
        if k > 1:
            shift = torch.eye(k, dtype=torch.float64)[:, 1:]  # h[j] becomes h[j + 1]: walks grow by one step
            layer.operator.lin.weight.copy_(shift)
            layer.operator.lin_colored.weight.copy_(shift)
        layer.operator.lin_colored.bias[0] = 1
        layers.append(layer)
    return layers


@torch.no_grad()
def reaching_network(num_layers: int) -> list[IdentityConv]:
    r"""The weights of Eq. 6: a colored node says 1, any other repeats the largest number that it has heard."""
    layers = [_silent("max", 1, 1) for _ in range(num_layers)]
    for layer in layers:
        layer.operator.lin.weight.fill_(1)
        layer.operator.lin_colored.bias.fill_(1)
    return layers


def _silent(aggr: str, in_channels: int, out_channels: int) -> IdentityConv:
    """A GraphSAGE layer whose messages are 0, and whose output is what it aggregates: U Concat(a, h) = a."""
    layer = IdentityConv("sage", in_channels, out_channels, aggr=aggr).double()
    for parameter in layer.parameters():
        parameter.zero_()
    layer.operator.lin_out.weight[:, :out_channels] = torch.eye(out_channels)
    return layer


@torch.no_grad()
def run(layers: list[IdentityConv], x: Tensor, data: Data, rows_of: Callable, queries: Tensor | None = None) -> Tensor:
    """What the network says to the queries, on the rows of an identity graph or of ego networks."""
    rows = rows_of(data, len(layers), queries)
    h = x[rows.node]
    for layer in layers:
        h = layer(h, rows.edge_index, colored=rows.colored)
    return h[rows.query_row]
