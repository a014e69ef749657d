"""Everything that only the protocol `released` needs: the networks of the code that the authors released (GraphGym).

They differ from the paper's text in ways that change the numbers, so that the published numbers can be checked on their
own ground only with them. No layer knows about it: :mod:`idgnn.experiments.execute` alone reads from here.
"""

from idgnn.experiments.released.features import with_returns
from idgnn.experiments.released.network import build

__all__ = ["build", "with_returns"]
