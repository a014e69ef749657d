"""The aggregations as Triton kernels, few launches each, for GPUs; the functions `*_plain` are their references.

Messages are grouped by target, and one program computes a target, or a piece of one with very many messages
(:func:`idgnn.layers.aggregation.dispatch.pieces`): nothing is written twice, no atomic operation is needed, and the
same input gives the same bits. Gradients with respect to sources are computed from the same messages grouped by source
(:attr:`idgnn.identity.schedule.Messages.back`).

Each launch is on the device of its tensors, which need not be the current one. No argument is specialized on its
alignment: for a batch with another offset Triton would compile again, during the capture of a CUDA graph.
"""

from idgnn.layers.aggregation.kernels.attend import Lists, attend, attend_backward
from idgnn.layers.aggregation.kernels.cut import cut_positions
from idgnn.layers.aggregation.kernels.maxima import from_winners, maximum
from idgnn.layers.aggregation.kernels.norm import norm_relu, norm_relu_backward
from idgnn.layers.aggregation.kernels.sums import Second, Weights, products, weighted_sum
from idgnn.layers.aggregation.kernels.updates import add_rows, collect_rows

__all__ = [
    "Lists",
    "Second",
    "Weights",
    "add_rows",
    "attend",
    "attend_backward",
    "collect_rows",
    "cut_positions",
    "from_winners",
    "maximum",
    "norm_relu",
    "norm_relu_backward",
    "products",
    "weighted_sum",
]
