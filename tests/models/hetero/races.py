"""A small graph of four node types, as racing results are: results point to a driver and a race, races to a circuit."""

import torch
from torch_geometric.data import HeteroData

ROOTS = torch.tensor([1, 1, 3, 4])


def races(channels: int = 3) -> HeteroData:
    """5 drivers, 7 races, 3 circuits and 20 results; every edge type and its reverse."""
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, size in (("driver", 5), ("race", 7), ("circuit", 3), ("result", 20)):
        data[kind].x = torch.randn(size, channels, generator=generator, dtype=torch.double).to(
            torch.get_default_dtype()
        )
    for source, relation, target in (
        ("result", "of", "driver"),
        ("result", "in", "race"),
        ("race", "at", "circuit"),
    ):
        count = data[source].num_nodes
        one = torch.randint(data[target].num_nodes, (count,), generator=generator)
        edges = torch.stack([torch.arange(count), one])
        data[source, relation, target].edge_index = edges
        data[target, f"rev_{relation}", source].edge_index = edges.flip(0)
    return data
