"""P-GNN (You, Ying, Leskovec, 2019), position-aware graph neural networks: what Table 5 compares with.

It is no message passing between neighbors: a node learns from the nodes of random *anchor sets* that are closest to
it, by how far they are, and its embedding has one number for each set.
"""

from idgnn.experiments.pgnn.network import build

__all__ = ["build"]
