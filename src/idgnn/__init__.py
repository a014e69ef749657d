"""Identity-aware graph neural networks (You, Gomes-Selman, Ying, Leskovec; AAAI 2021) for PyTorch Geometric.

The public names are imported from their modules when they are first used, so that `import idgnn` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idgnn.identity.add_cycle_counts import AddCycleCounts
    from idgnn.identity.cost import identity_cost
    from idgnn.identity.cycle_counts import cycle_counts
    from idgnn.identity.identity_graph import IdentityGraph, ToIdentityGraph, identity_graph
    from idgnn.identity.walk_counts import walk_counts
    from idgnn.layers.identity_aware import identity_aware
    from idgnn.layers.identity_conv import IdentityConv
    from idgnn.models.budget import match_budget
    from idgnn.models.heads import GraphHead, NodeHead, PairHead
    from idgnn.models.idgnn import IDGNN

    __version__: str

_MODULE_OF = {
    "AddCycleCounts": "idgnn.identity.add_cycle_counts",
    "GraphHead": "idgnn.models.heads",
    "IDGNN": "idgnn.models.idgnn",
    "IdentityConv": "idgnn.layers.identity_conv",
    "IdentityGraph": "idgnn.identity.identity_graph",
    "NodeHead": "idgnn.models.heads",
    "PairHead": "idgnn.models.heads",
    "ToIdentityGraph": "idgnn.identity.identity_graph",
    "cycle_counts": "idgnn.identity.cycle_counts",
    "identity_aware": "idgnn.layers.identity_aware",
    "identity_cost": "idgnn.identity.cost",
    "identity_graph": "idgnn.identity.identity_graph",
    "match_budget": "idgnn.models.budget",
    "walk_counts": "idgnn.identity.walk_counts",
}

__all__ = [
    "IDGNN",
    "AddCycleCounts",
    "GraphHead",
    "IdentityConv",
    "IdentityGraph",
    "NodeHead",
    "PairHead",
    "ToIdentityGraph",
    "__version__",
    "cycle_counts",
    "identity_aware",
    "identity_cost",
    "identity_graph",
    "match_budget",
    "walk_counts",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = import_module("importlib.metadata").version("idgnn")
    elif name in _MODULE_OF:
        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'idgnn' has no attribute {name!r}; its public names are: {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
