r"""The aggregations that carry almost all of the time: sums, maxima and attention over incoming messages.

They read the messages where they stand instead of copying them to the edges first. On a CPU that is what
`embedding_bag` and PyTorch's reduction by sparse rows do: many times faster than gathering and scattering. On a GPU it
is what the kernels of :mod:`idgnn.layers.aggregation.kernels` do. The `*_plain` twins say what is computed, for the
tests. All that leads to a kernel, forward and backward, is a custom operator, so that `torch.compile` takes it as is.
"""

from idgnn.layers.aggregation.maxima import gather_max
from idgnn.layers.aggregation.softmax import attention
from idgnn.layers.aggregation.sums import gather_sum

__all__ = ["attention", "gather_max", "gather_sum"]
