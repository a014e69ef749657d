r"""Sums, maxima and attention over incoming messages, which take almost all of the time of a layer.

They read the states of the sources in place instead of copying them to the edges first: on a CPU by `embedding_bag` and
PyTorch's sparse reduction, many times faster than gathering and scattering, on a GPU by the kernels of
:mod:`idgnn.layers.aggregation.kernels`. The functions `*_plain` are the references of the tests. Whatever
calls a kernel, forward or backward, is an operator that `torch.compile` does not trace into
(:mod:`idgnn.layers.aggregation.operators`).
"""

from idgnn.layers.aggregation.attend import attend
from idgnn.layers.aggregation.lists import together
from idgnn.layers.aggregation.maxima import gather_max
from idgnn.layers.aggregation.softmax import attention, attention_and_score
from idgnn.layers.aggregation.sums import gather_sum
from idgnn.layers.aggregation.updates import add_update

__all__ = ["add_update", "attend", "attention", "attention_and_score", "gather_max", "gather_sum", "together"]
