"""BatchNorm's statistics worked out anew, for a network whose weights have moved since they were averaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm


@contextmanager
def anew(model: nn.Module) -> Iterator[None]:
    """What the network is run on in the block, and nothing else, makes its statistics: the mean over the batches.

    In training, nine tenths of a running average are what it was a step ago; where weights move fast, that is out of
    date. Weights are not touched.
    """
    norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
    momentum = [norm.momentum for norm in norms]
    training = model.training
    model.train()
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # the mean over all batches
    try:
        with torch.no_grad():
            yield
    finally:
        for norm, before in zip(norms, momentum, strict=True):
            norm.momentum = before
        model.train(training)
