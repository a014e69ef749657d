"""The aggregations as Triton kernels, few launches each, for GPUs. Their twins in plain PyTorch say what is computed.

Messages are grouped by target, so a program that owns a target, or a piece of one with very many messages
(:mod:`idgnn.layers.aggregation.pieces`), owns all that it receives: nothing is written twice, no atomic operation is
needed, and the same input gives the same bits. Gradients with respect to sources go the other way
over the same messages grouped by source (:attr:`idgnn.identity.rounds.Messages.back`).

Each launch is on the device of its tensors, which need not be the current one. No argument is specialized on its
alignment: a batch with another offset would make Triton compile again, in the middle of a step that is being recorded
as a CUDA graph.
"""

from idgnn.layers.aggregation.kernels.attention import Given, attention, attention_backward
from idgnn.layers.aggregation.kernels.maxima import from_winners, maximum
from idgnn.layers.aggregation.kernels.sums import Weights, products, weighted_sum

__all__ = ["Given", "Weights", "attention", "attention_backward", "from_winners", "maximum", "products", "weighted_sum"]
