"""Identity-aware graph neural networks (You, Gomes-Selman, Ying, Leskovec; AAAI 2021) for PyTorch Geometric.

The public names are imported from their modules when they are first used, so that `import idgnn` itself costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from idgnn.graphs.load import load as load_dataset
    from idgnn.graphs.sources import FileSource
    from idgnn.identity.cost import identity_cost
    from idgnn.identity.cycle_counts import cycle_counts
    from idgnn.identity.cycle_features import AddCycleCounts
    from idgnn.identity.hetero.graph import HeteroIdentityGraph
    from idgnn.identity.hetero.reach import reachable
    from idgnn.identity.hetero.time import snapshot
    from idgnn.identity.identity_graph import IdentityGraph, identity_graph
    from idgnn.identity.to_identity_graph import ToIdentityGraph
    from idgnn.identity.walk_counts import walk_counts
    from idgnn.layers.identity_conv import IdentityConv
    from idgnn.models.budget import match_budget
    from idgnn.models.heads import GraphHead, NodeHead, PairHead
    from idgnn.models.hetero.config import HeteroConfig
    from idgnn.models.hetero.idgnn import HeteroIDGNN
    from idgnn.models.identity_aware import identity_aware
    from idgnn.models.idgnn import IDGNN
    from idgnn.models.settings import ModelSettings
    from idgnn.tasks.task_settings import TaskSettings
    from idgnn.training.automatic import choose_settings
    from idgnn.training.root_loader import RootLoader
    from idgnn.training.run_settings import TrainOptions
    from idgnn.training.train import train
    from idgnn.training.trained import Run

    __version__: str

_MODULE_OF = {
    "AddCycleCounts": "idgnn.identity.cycle_features",
    "FileSource": "idgnn.graphs.sources",
    "GraphHead": "idgnn.models.heads",
    "HeteroConfig": "idgnn.models.hetero.config",
    "HeteroIDGNN": "idgnn.models.hetero.idgnn",
    "HeteroIdentityGraph": "idgnn.identity.hetero.graph",
    "IDGNN": "idgnn.models.idgnn",
    "IdentityConv": "idgnn.layers.identity_conv",
    "IdentityGraph": "idgnn.identity.identity_graph",
    "ModelSettings": "idgnn.models.settings",
    "NodeHead": "idgnn.models.heads",
    "PairHead": "idgnn.models.heads",
    "RootLoader": "idgnn.training.root_loader",
    "Run": "idgnn.training.trained",
    "TaskSettings": "idgnn.tasks.task_settings",
    "ToIdentityGraph": "idgnn.identity.to_identity_graph",
    "TrainOptions": "idgnn.training.run_settings",
    "choose_settings": "idgnn.training.automatic",
    "cycle_counts": "idgnn.identity.cycle_counts",
    "identity_aware": "idgnn.models.identity_aware",
    "identity_cost": "idgnn.identity.cost",
    "identity_graph": "idgnn.identity.identity_graph",
    "load_dataset": "idgnn.graphs.load:load",
    "match_budget": "idgnn.models.budget",
    "reachable": "idgnn.identity.hetero.reach",
    "snapshot": "idgnn.identity.hetero.time",
    "train": "idgnn.training.train",
    "walk_counts": "idgnn.identity.walk_counts",
}

__all__ = [
    "IDGNN",
    "AddCycleCounts",
    "FileSource",
    "GraphHead",
    "HeteroConfig",
    "HeteroIDGNN",
    "HeteroIdentityGraph",
    "IdentityConv",
    "IdentityGraph",
    "ModelSettings",
    "NodeHead",
    "PairHead",
    "RootLoader",
    "Run",
    "TaskSettings",
    "ToIdentityGraph",
    "TrainOptions",
    "__version__",
    "choose_settings",
    "cycle_counts",
    "identity_aware",
    "identity_cost",
    "identity_graph",
    "load_dataset",
    "match_budget",
    "reachable",
    "snapshot",
    "train",
    "walk_counts",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        value = import_module("importlib.metadata").version("idgnn")
    elif name in _MODULE_OF:
        module, _, its_name = _MODULE_OF[name].partition(":")
        try:
            value = getattr(import_module(module), its_name or name)
        except AttributeError as error:  # Python would say that there is no such name, and hide what is wrong
            raise ImportError(f"idgnn.{name} is in {module}, which cannot be imported: {error}.") from error
    else:
        raise AttributeError(f"module 'idgnn' has no attribute {name!r}; its public names are: {', '.join(__all__)}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
