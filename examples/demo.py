"""What the library is for: a task that message-passing GNNs cannot do, and three versions of one network on it.

Every node of some random scale-free graphs is to be classified by its clustering coefficient: how many of its
neighbors know each other. All nodes have the same feature, so everything has to come from the structure. A plain GNN
cannot see triangles; ID-GNN-Fast is told of them by closed-walk counts, ID-GNN-Full finds them by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch.nn.functional import cross_entropy
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_networkx

from idgnn import IDGNN, match_budget

GRAPHS, NODES, BATCH, EPOCHS, WIDTH, LAYERS = 80, 64, 16, 60, 64, 3
VERSIONS = {"none": "plain GCN", "fast": "ID-GNN-Fast", "full": "ID-GNN-Full"}
PICTURE = Path("demo") / "clustering.png"


def main() -> None:
    """Trains the three versions, prints a table and draws a picture."""
    graphs, classes = make_graphs()
    *train, valid = (Batch.from_data_list(graphs[start : start + BATCH]) for start in range(0, GRAPHS, BATCH))
    score = TextColumn("{task.fields[score]}")
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), score)
    curves: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    with Progress(*columns) as progress:
        for identity, name in VERSIONS.items():
            bar = progress.add_task(name, total=EPOCHS, score="")
            model = make_model(identity, classes)
            sizes[name] = sum(parameter.numel() for parameter in model.parameters())
            curves[name] = []
            for accuracy in training(model, train, valid):
                curves[name].append(accuracy)
                progress.update(bar, advance=1, score=f"{accuracy:.3f}")
    majority = torch.bincount(valid.y).max().item() / valid.y.numel()
    show(curves, sizes, majority)
    draw(curves, majority)


def make_graphs() -> tuple[list[Data], int]:
    """Scale-free graphs whose nodes carry the quantile bin of their clustering coefficient."""
    chance = torch.linspace(0, 1, GRAPHS)[torch.randperm(GRAPHS, generator=torch.Generator().manual_seed(0))]
    drawn = [nx.powerlaw_cluster_graph(NODES, 2, p, seed=i) for i, p in enumerate(chance.tolist())]
    coefficient = torch.tensor([list(nx.clustering(graph).values()) for graph in drawn])
    edges = torch.quantile(coefficient.flatten(), torch.linspace(0, 1, 11)[1:-1]).unique()
    label = torch.bucketize(coefficient, edges, right=True)
    graphs = [
        Data(x=torch.ones(NODES, 1), edge_index=from_networkx(graph).edge_index, y=y)
        for graph, y in zip(drawn, label, strict=True)
    ]
    return graphs, int(label.max()) + 1


def make_model(identity: str, classes: int) -> IDGNN:
    """All versions have the same number of parameters, as far as whole widths allow."""
    torch.manual_seed(0)
    plain = IDGNN(1, WIDTH, classes, LAYERS, "gcn", "none")
    width = match_budget(lambda w: IDGNN(1, w, classes, LAYERS, "gcn", identity), plain, tolerance=0.05)
    return IDGNN(1, width, classes, LAYERS, "gcn", identity)


def training(model: IDGNN, train: list[Data], valid: Data) -> Iterator[float]:
    """The accuracy on unseen graphs after every epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        model.train()
        for batch in train:
            optimizer.zero_grad()
            cross_entropy(model(batch.x, batch.edge_index), batch.y).backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            yield (model(valid.x, valid.edge_index).argmax(-1) == valid.y).float().mean().item()


def show(curves: dict[str, list[float]], sizes: dict[str, int], majority: float) -> None:
    """The result as a table."""
    table = Table("network", "parameters", "accuracy on unseen graphs", title="Clustering coefficient of a node")
    table.add_row("most frequent class", "", f"{majority:.3f}")
    for name, curve in curves.items():
        table.add_row(name, f"{sizes[name]:,}", f"{curve[-1]:.3f}")
    Console().print(table)


def draw(curves: dict[str, list[float]], majority: float) -> None:
    """The result as a picture."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for name, curve in curves.items():
        axes.plot(range(1, len(curve) + 1), curve, label=name)
    axes.axhline(majority, color="gray", linestyle=":", label="most frequent class")
    axes.set(
        xlabel="epoch", ylabel="accuracy on unseen graphs", ylim=(0, 1.02), title="Clustering coefficient of a node"
    )
    axes.legend(loc="lower right")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=120)
    Console().print(f"learning curves: {PICTURE}")


if __name__ == "__main__":
    main()
