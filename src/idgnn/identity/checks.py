"""What the functions of this package accept, and the sentence a caller reads when they are given something else."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor
from torch_geometric.data import Data

_AUTOCAST = (torch.float32, torch.bfloat16, torch.float16)  # what autocast converts into one another


def check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    """Refuses anything but an integer `[2, num_edges]` tensor of node ids in `[0, num_nodes)`."""
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            f"edge_index is a {type(edge_index).__name__}, expected an integer tensor of shape [2, num_edges]. "
            "Convert it with torch.as_tensor(edge_index)."
        )
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(
            f"edge_index has shape {list(edge_index.shape)}, expected [2, num_edges]: the sources of the edges in the "
            "first row, their targets in the second. A list of pairs needs a transpose: edge_index.t()."
        )
    _check_ids(edge_index, num_nodes, "edge_index")


def check_graph(data: Data) -> int:
    """Refuses a graph whose parts do not fit together; returns its number of nodes."""
    if not isinstance(data, Data):
        raise ValueError(
            f"the graph is a {type(data).__name__}, expected a torch_geometric.data.Data. "
            "Make one with Data(x=x, edge_index=edge_index)."
        )
    if "query_row" in data and "plain_row" in data:
        raise ValueError("the graph is an identity graph already. Pass the graph that it was built from.")
    if not isinstance(data.edge_index, Tensor):
        raise ValueError("the graph has no edge_index, expected an integer tensor of shape [2, num_edges].")
    if not any(key in ("num_nodes", "x", "pos", "batch") or "node" in key for key in data.to_dict()):
        raise ValueError(
            "the graph has neither x nor num_nodes, so isolated nodes cannot be counted. "
            "Set data.num_nodes to the number of nodes."
        )
    if data.x is not None:
        check_rows(data.x, "x", "[num_nodes, num_features]")
    num_nodes = data.num_nodes or 0
    check_edge_index(data.edge_index, num_nodes)
    if data.x is not None:
        check_features(data.x, num_nodes)
    for name in ("edge_attr", "edge_weight"):
        if data.get(name) is not None:
            check_edge_rows(data[name], data.edge_index.size(1), name)
    return num_nodes


def edges_of(data: Data) -> Tensor:
    """The `edge_index` of a graph that was checked, as 64-bit integers."""
    assert data.edge_index is not None
    return data.edge_index.long()


def check_pairs(pairs: Tensor, num_nodes: int) -> None:
    """Refuses anything but an integer `[2, num_pairs]` tensor of node ids with at least one pair."""
    if not isinstance(pairs, Tensor) or pairs.dim() != 2 or pairs.size(0) != 2:
        given = f"have shape {list(pairs.shape)}" if isinstance(pairs, Tensor) else f"are a {type(pairs).__name__}"
        raise ValueError(
            f"the query pairs {given}, expected an integer tensor of shape [2, num_pairs]: pairs[0] holds the nodes "
            "that are read, pairs[1] the nodes that are colored; or [3, num_queries], with a second color in the last "
            "row."
        )
    if pairs.size(1) == 0:
        raise ValueError("no query pairs were given, expected at least one. Pass pairs of shape [2, num_pairs].")
    _check_ids(pairs, num_nodes, "the query pairs")


def check_triples(triples: Tensor, num_nodes: int) -> None:
    """Refuses anything but an integer `[3, num_queries]` tensor of node ids with at least one query."""
    if triples.size(1) == 0:
        raise ValueError("no queries were given, expected at least one: a tensor of shape [3, num_queries].")
    _check_ids(triples, num_nodes, "the queries")


def check_roots(roots: Tensor, num_nodes: int) -> None:
    """Refuses anything but an integer `[num_roots]` tensor of node ids with at least one root."""
    if not isinstance(roots, Tensor) or roots.dim() != 1:
        given = f"have shape {list(roots.shape)}" if isinstance(roots, Tensor) else f"are a {type(roots).__name__}"
        raise ValueError(
            f"the queried nodes {given}, expected an integer tensor of shape [num_queries]. "
            "Make one with torch.tensor([...])."
        )
    if roots.numel() == 0:
        raise ValueError("no nodes were queried, expected at least one. Pass None to query every node.")
    _check_ids(roots, num_nodes, "the queried nodes")


def check_whole(value: int, name: str, what: str, least: int = 1) -> None:
    """Refuses anything but a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {value!r}, expected a whole number of at least {least}: {what}.")


def check_num_layers(num_layers: int) -> None:
    """Refuses a number of message-passing rounds below one."""
    check_whole(num_layers, "num_layers", "the rounds of messages")


def check_colored(colored: Tensor, num_rows: int, colors: int) -> None:
    """Refuses anything but a bool, or a color that the weights know, for each row."""
    if not isinstance(colored, Tensor):
        raise ValueError(f"colored is a {type(colored).__name__}, expected a bool tensor of shape [num_nodes].")
    if colored.shape != (num_rows,) or colored.is_floating_point() or colored.is_complex():
        raise ValueError(
            f"colored has shape {list(colored.shape)} and dtype {colored.dtype}, expected [{num_rows}] and torch.bool, "
            "one truth value per row of x, or whole numbers, the color of each row: 0, 1 or 2."
        )
    if colored.dtype != torch.bool and colored.numel():
        low, high = int(colored.min()), int(colored.max())
        if low < 0 or high > max(colors, 1):
            raise ValueError(
                f"colored names color {low if low < 0 else high}, expected 0 for none up to {max(colors, 1)}. Layers "
                "with two colors are made with colors=2."
            )


def check_count_options(num_nodes: int, length: int, memory: int) -> None:
    """Refuses a negative number of nodes, walks without a step, and no memory to count them in."""
    check_whole(num_nodes, "num_nodes", "the nodes of the graph", least=0)
    check_whole(length, "length", "the steps of the longest walk")
    check_whole(memory, "memory", "the bytes that counting may take, for example 2**30")


def check_features(x: Tensor, num_nodes: int, name: str = "x") -> None:
    """Refuses feature rows that do not match the nodes, and features that are not finite."""
    check_rows(x, name, "[num_nodes, num_features]")
    if x.size(0) != num_nodes:
        raise ValueError(
            f"{name} has {x.size(0)} rows but the graph has {num_nodes} nodes, expected one row of features per node."
        )
    check_finite(x, name)


def check_states(x: Tensor, in_channels: int, dtype: torch.dtype, maker: str) -> None:
    """Refuses features that the weights of a `maker`, a layer or a model, cannot be applied to."""
    check_rows(x, "x", f"[num_nodes, {in_channels}]")
    if x.dim() != 2 or x.size(1) != in_channels:
        raise ValueError(
            f"x has shape {list(x.shape)}, expected [num_nodes, {in_channels}]: the {maker} was made with "
            f"in_channels={in_channels}. A graph without features may use x = torch.ones(num_nodes, 1)."
        )
    check_dtype(x, "x", dtype, maker)
    check_finite(x, "x")


def check_node_numbers(x: Tensor, num_embeddings: int) -> None:
    """Refuses numbers of nodes, the first column of `x`, that no learned vector belongs to."""
    number = x[:, 0]
    wrong = (number < 0) | (number >= num_embeddings) | (number != number.floor())
    if wrong.any():
        raise ValueError(
            f"x holds {number[wrong][0].item():g} as the number of a node, expected whole numbers from 0 to "
            f"{num_embeddings - 1}: the model was made with num_embeddings={num_embeddings}, a vector for each node of "
            "one graph. Number the nodes as in training."
        )


def check_dtype(values: Tensor, name: str, dtype: torch.dtype, maker: str) -> None:
    """Refuses another precision than that of the weights of a `maker`, unless autocast takes care of it."""
    cast = values.dtype in _AUTOCAST and torch.is_autocast_enabled(values.device.type)
    if values.dtype != dtype and not cast:
        other_way = f", or the {maker} with {maker}.to({values.dtype})" if values.is_floating_point() else ""
        raise ValueError(
            f"{name} has dtype {values.dtype}, expected a float tensor of the {maker}'s dtype {dtype}. Convert it with "
            f".to({dtype}){other_way}."
        )


def check_edge_rows(values: Tensor, num_edges: int, name: str) -> None:
    """Refuses edge attributes or weights that are not one row, or one number, per edge, or not finite."""
    check_rows(values, name, "[num_edges]" if name == "edge_weight" else "[num_edges, num_features]")
    if name == "edge_weight" and values.dim() != 1:
        raise ValueError(f"edge_weight has shape {list(values.shape)}, expected [num_edges] = [{num_edges}].")
    check_one_per_edge(values, num_edges, name)
    check_finite(values, name)


def check_one_per_edge(values: Tensor, num_edges: int, name: str) -> None:
    """Refuses fewer rows than edges, or more."""
    if values.dim() == 0 or values.size(0) != num_edges:
        rows = values.size(0) if values.dim() else "no"
        raise ValueError(f"{name} has {rows} rows but edge_index has {num_edges} edges, expected one per edge.")


def check_rows(values: Tensor, name: str, shape: str) -> None:
    """Refuses what is not a tensor of rows."""
    if not isinstance(values, Tensor):
        advice = " A graph without features may use x = torch.ones(num_nodes, 1)." if name == "x" else ""
        raise ValueError(f"{name} is a {type(values).__name__}, expected a tensor of shape {shape}.{advice}")
    if values.dim() == 0:
        raise ValueError(f"{name} has shape [], expected {shape}.")


def check_finite(values: Tensor, name: str) -> None:
    """Refuses NaN and infinite numbers, which would spread over the whole graph without a word."""
    if not values.is_floating_point() or bool(torch.isfinite(values).all()):
        return
    bad = (~torch.isfinite(values)).reshape(values.size(0), -1).any(1).nonzero().flatten()
    raise ValueError(
        f"{name} holds NaN or infinite features in {bad.numel()} rows, the first is row {int(bad[0])}; expected finite "
        f"numbers. Clean them before, for example with torch.nan_to_num({name})."
    )


def _check_ids(ids: Tensor, num_nodes: int, name: str) -> None:
    has, names = ("have", "name") if name.startswith("the ") else ("has", "names")
    if ids.dtype == torch.bool and ids.dim() == 1:
        raise ValueError(
            f"{name} {has} dtype torch.bool, expected whole numbers. Ids of a mask are mask.nonzero()[:, 0]."
        )
    if ids.dtype not in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8):
        raise ValueError(
            f"{name} {has} dtype {ids.dtype}, expected whole numbers. Convert with {name.split()[-1]}.long()."
        )
    if ids.numel() == 0:
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= num_nodes:
        wrong = low if low < 0 else high
        expected = f"ids from 0 to {num_nodes - 1}" if num_nodes else "no ids at all"
        raise ValueError(
            f"{name} {names} node {wrong}, but the graph has {num_nodes} nodes: expected {expected}. "
            "Check num_nodes, and that ids start at 0."
        )
