"""What cannot be made identity-aware exactly, and the sentence that says why and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn
from torch_geometric.nn import MessagePassing

from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.wrapping.trace import Trace

# How many hops a layer sees at once. One hop is one round of Eq. 3; with more the color would have to act in between.
_HOPS: dict[str, Callable[[Any], int]] = {
    "APPNP": lambda layer: layer.K,
    "ARMAConv": lambda layer: layer.num_layers,
    "GatedGraphConv": lambda layer: layer.num_layers,
    "LabelPropagation": lambda layer: layer.num_layers,
    "MixHopConv": lambda layer: max(layer.powers),
    "SGConv": lambda layer: layer.K,
    "SSGConv": lambda layer: layer.K,
    "TAGConv": lambda layer: layer.K,
}

_DYNAMIC = (
    "looks for its neighbors in feature space while it runs, so the graph is not known beforehand",
    "Compute the edges once and use EdgeConv or PointNetConv on them",
)
_UNCHECKED = (
    "needs a compiled extension of PyG, so that it could not be checked to come out exactly",
    "Use the layer of the same name without it",
)
_GLOBAL = (
    "lets every node attend to every other one, so that a row depends on more than its K-hop neighborhood",
    "Use its local message passing alone",
)
_POOLING = (
    "removes or merges nodes inside, so that its output is not one row per node",
    "Make the encoder in front of it identity-aware, and pool after",
)
_STATISTICS = (
    "takes statistics over all nodes also in evaluation mode, so that a row depends on all the others",
    'Use BatchNorm, or LayerNorm(mode="node")',
)

_WHY: dict[str, tuple[str, str]] = {
    "ChebConv": (
        "divides by the number of edges that leave a node, where message passing sees those that arrive",
        "Use GCNConv, once for every hop",
    ),
    "DirGNNConv": (
        "sends messages against the direction of the edges as well, and an identity graph has one direction",
        "Add the reversed edges to edge_index, tell them apart by an edge_type, and use RGCNConv",
    ),
    "DynamicEdgeConv": _DYNAMIC,
    "GravNetConv": _DYNAMIC,
    "XConv": _DYNAMIC,
    "HypergraphConv": (
        "sends messages to hyperedges and back, and an identity graph has edges between pairs of nodes",
        "Make the hyperedges nodes, and use two SAGEConv in a row",
    ),
    "CuGraphGATConv": _UNCHECKED,
    "CuGraphRGCNConv": _UNCHECKED,
    "CuGraphSAGEConv": _UNCHECKED,
    "FusedGATConv": _UNCHECKED,
    "SplineConv": (_UNCHECKED[0], "Use GMMConv or NNConv, which take the same edge_attr"),
    "PANConv": (
        "sees several hops at once, by powers of a sparse matrix",
        "Use GCNConv, once for every hop",
    ),
    "GPSConv": _GLOBAL,
    "Polynormer": _GLOBAL,
    "SGFormer": _GLOBAL,
    "MeshCNNConv": (
        "takes exactly four neighbors of each node and mixes their messages by their place in edge_index",
        "Use a layer that treats its neighbors as a set, for example EdgeConv",
    ),
    "WLConv": (
        "has no weights and hashes labels, so that there is no message to give second weights to",
        "Use GINConv, which learns the same test",
    ),
    "ASAPooling": _POOLING,
    "ClusterPooling": _POOLING,
    "EdgePooling": _POOLING,
    "GraphUNet": _POOLING,
    "MemPooling": _POOLING,
    "PANPooling": _POOLING,
    "SAGPooling": _POOLING,
    "TopKPooling": _POOLING,
    "GraphNorm": _STATISTICS,
    "GraphSizeNorm": _STATISTICS,
    "MeanSubtractionNorm": _STATISTICS,
    "PairNorm": _STATISTICS,
}


def check_takeable(module: nn.Module) -> None:
    """Refuses a layer or model that holds a part known not to come out exactly.

    Example:
        >>> from torch_geometric.nn import SGConv
        >>> check_takeable(SGConv(4, 4, K=1))
        >>> check_takeable(SGConv(4, 4, K=3))
        Traceback (most recent call last):
        ValueError: SGConv sees 3 hops at once, and the color acts once in a layer, on one hop. Use layers...
    """
    for name, child in module.named_modules():
        found = _reason(child)
        if found is not None:
            why, advice = found
            place = f", which the model holds as {name!r}," if name else ""
            raise ValueError(f"{type(child).__name__}{place} {why}. {advice}.")
    if any(isinstance(child, IdentityConv) for child in module.modules()):
        raise ValueError(
            f"{type(module).__name__} has layers of idgnn's own, which need no wrapping: an IDGNN is identity-aware "
            "with identity='full', an IdentityConv with identity=True."
        )
    if not any(isinstance(child, MessagePassing) for child in module.modules()):
        raise ValueError(
            f"{type(module).__name__} holds no PyG MessagePassing layer, so there are no messages to color. Give a "
            "PyG layer, or a model that calls PyG layers in its forward."
        )


def check_trace(traced: Trace, name: str) -> None:
    """Refuses a model for what one run of it showed."""
    for layer, hops in traced.inside.items():
        if hops > 1:
            why, advice = several_hops(hops)
            raise ValueError(f"the layer {layer!r} of {name} {why}. {advice}.")
    if traced.propagate_outside_forward:
        raise ValueError(
            f"{name} calls propagate of its layer {traced.propagate_outside_forward[0]!r} from outside of that layer, "
            "where it cannot be colored. Call the layer itself: layer(...), not its forward or propagate."
        )
    if traced.own:
        raise ValueError(
            f"{name} sends messages of its own ({traced.own[0]}) outside of its MessagePassing layers, where they are "
            "neither counted nor colored. Put them into a MessagePassing layer."
        )
    if traced.num_layers == 0:
        raise ValueError(f"no message reaches the output of {name}, so there is nothing to color.")


def check_no_rows_of_nodes(module: nn.Module, num_nodes: int, error: Exception) -> None:
    """Blames an error on a tensor of the model that seems to have a row for each node, if there is one."""
    for place, part in module.named_modules():
        if type(part).__module__.startswith(("torch.", "torch_geometric.")) and not isinstance(part, nn.Embedding):
            continue  # whose weights have other meanings, whatever their number of rows
        for name, values in (*part.named_parameters(place, recurse=False), *part.named_buffers(place, recurse=False)):
            if values.dim() > 1 and values.size(0) == num_nodes:
                raise ValueError(
                    f"{type(module).__name__} keeps {name!r} {list(values.shape)}, it seems a row for each node, but "
                    "it is run on the rows of an identity graph, which are more. Give it as an argument, as x or "
                    f"beside it: what has a row for each node is carried over. ({error})"
                ) from error


def _reason(module: nn.Module) -> tuple[str, str] | None:
    # By name and along the bases, so that nothing is imported and derived classes are found too.
    names = [c.__name__ for c in type(module).__mro__ if c.__module__.startswith(("torch_geometric.", "torch.nn."))]
    for name in names:
        if name in _WHY:
            return _WHY[name]
        if name in _HOPS and _HOPS[name](module) > 1:
            return several_hops(_HOPS[name](module))
    if getattr(module, "mode", None) == "graph" and "LayerNorm" in names:
        return _STATISTICS
    if names and "Norm" in names[0] and getattr(module, "track_running_stats", True) is False:
        return _STATISTICS
    return _layer_reason(module) if isinstance(module, MessagePassing) else None


def _layer_reason(layer: MessagePassing) -> tuple[str, str] | None:
    if type(layer).forward is MessagePassing.forward:
        return "has no forward of its own, so there is nothing to compute", "Give a layer that is derived from it"
    if layer.flow != "source_to_target":
        return (
            f"has flow={layer.flow!r}, and an identity graph is built for messages from source to target",
            'Use flow="source_to_target" and turn the edges round: edge_index.flip(0)',
        )
    if getattr(layer, "cached", False):
        return (
            "has cached=True and would keep the normalization of the first graph it sees for all others",
            "Use cached=False",
        )
    if layer.decomposed_layers > 1:
        return (
            "has decomposed_layers > 1, which cuts the states apart before they are sent",
            "Set decomposed_layers=1; the result is the same",
        )
    inner = next((child for child in layer.modules() if isinstance(child, MessagePassing) and child is not layer), None)
    if inner is not None:
        return (
            f"is a MessagePassing layer that holds another one, {type(inner).__name__}, so that its rounds cannot be "
            "told apart",
            "Derive it from torch.nn.Module instead and let each layer inside be a round of its own",
        )
    return None


def several_hops(hops: int) -> tuple[str, str]:
    """Why a layer that sees `hops` hops at once is refused, and what to do."""
    return (
        f"sees {hops} hops at once, and the color acts once in a layer, on one hop",
        "Use layers of one hop, as many as there are hops",
    )
