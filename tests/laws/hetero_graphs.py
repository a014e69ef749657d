"""Hypothesis strategies: small heterogeneous graphs of any schema, and questions to ask of them."""

import hypothesis.strategies as st
import torch
from torch_geometric.data import HeteroData

CHANNELS = 2
NAMES = "abcde"


@st.composite
def schemas(draw) -> tuple[list[str], list[tuple[str, str, str]]]:
    """1 to 5 node types and 1 to 8 edge types; self-relations, parallel relations and isolated types among them."""
    kinds = list(NAMES[: draw(st.integers(1, 5))])
    kind = st.sampled_from(kinds)
    ends = draw(st.lists(st.tuples(kind, kind), min_size=1, max_size=8))
    return kinds, [(source, f"r{number}", target) for number, (source, target) in enumerate(ends)]


@st.composite
def hetero_graphs(draw, max_nodes: int = 4) -> HeteroData:
    """A graph with float64 features; some types may have no nodes, some edge types no edges."""
    kinds, edge_types = draw(schemas())
    data = HeteroData()
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    sizes = {kind: draw(st.integers(0, max_nodes)) for kind in kinds}
    sizes[kinds[0]] = max(sizes[kinds[0]], 1)
    for kind, size in sizes.items():
        data[kind].x = torch.randn(size, CHANNELS, dtype=torch.double, generator=generator)
    for edge_type in edge_types:
        source, target = sizes[edge_type[0]], sizes[edge_type[2]]
        count = draw(st.integers(0, 6)) if source and target else 0
        ends = [torch.randint(max(size, 1), (count,), generator=generator) for size in (source, target)]
        data[edge_type].edge_index = torch.stack(ends)
        data[edge_type].edge_attr = torch.randn(count, 1, dtype=torch.double, generator=generator)
    return data


def steps(data: HeteroData, color: str) -> dict[str, int]:
    """The message steps from a type to each type that it reaches in the schema."""
    found, frontier = {color: 0}, [color]
    while frontier:
        kind = frontier.pop(0)
        for source, _, target in data.edge_types:
            if source == kind and target not in found:
                found[target] = found[kind] + 1
                frontier.append(target)
    return found


@st.composite
def typed_queries(draw, data: HeteroData, num_layers: int):
    """Nodes under their own colors, or pairs, of types that are near enough; `None` if there are none such."""
    used = {kind for edge_type in data.edge_types for kind in (edge_type[0], edge_type[2])}
    there = [kind for kind in data.node_types if data[kind].num_nodes and kind in used]
    if not there:
        return None
    root = draw(st.sampled_from(there))
    near = [kind for kind, count in steps(data, root).items() if count <= num_layers and data[kind].num_nodes]
    read = draw(st.sampled_from(near))
    count = draw(st.integers(1, 4))
    nodes = [
        draw(st.lists(st.integers(0, data[kind].num_nodes - 1), min_size=count, max_size=count))
        for kind in (read, root)
    ]
    form = draw(st.sampled_from(["type", "nodes", "pairs"]))
    if form == "type":
        return root
    return (root, nodes[1]) if form == "nodes" else ((read, nodes[0]), (root, nodes[1]))


def as_typed_pairs(data: HeteroData, queries) -> tuple[str, str, list[tuple[int, int]]]:
    """The read type, the colored type, and (read, colored) of each query."""
    if isinstance(queries, str):
        return queries, queries, [(node, node) for node in range(data[queries].num_nodes)]
    if isinstance(queries[0], str):
        return queries[0], queries[0], [(node, node) for node in queries[1]]
    (read, nodes), (root, colors) = queries
    return read, root, list(zip(nodes, colors, strict=True))
