"""Run by `make package` in an environment that has the built package and its dependencies, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path


def main(expected: str) -> None:
    """One small thing of everything: counts, a network, a wrapped model, a run, the command line, the packaged data."""
    import torch
    from torch_geometric.data import Data
    from torch_geometric.nn import GCN
    from torch_geometric.utils import erdos_renyi_graph

    import idgnn

    where = Path(idgnn.__file__)
    if "site-packages" not in where.parts:
        raise SystemExit(f"idgnn was imported from {where}, expected the installed package.")
    if not version("idgnn") == idgnn.__version__ == expected:
        raise SystemExit(f"idgnn is version {idgnn.__version__}, expected {expected}.")
    if not (files("idgnn") / "py.typed").is_file():
        raise SystemExit("py.typed is not in the package, so that type checkers will not read its annotations.")

    torch.manual_seed(0)
    graphs = [Data(edge_index=erdos_renyi_graph(12, 0.3), num_nodes=12, y=torch.randint(2, (12,))) for _ in range(8)]
    one, edges, x = graphs[0], erdos_renyi_graph(12, 0.3), torch.ones(12, 1)
    adjacency = torch.zeros(12, 12, dtype=torch.double)
    adjacency[edges[0], edges[1]] = 1
    counts = idgnn.cycle_counts(edges, 12, length=3)
    assert torch.equal(counts[:, 2], (adjacency @ adjacency @ adjacency).diagonal())

    model = idgnn.IDGNN(1, 8, 4, num_layers=3, conv="gin").double().eval()
    ours, literal = (model(x.double(), edges, engine=engine) for engine in (None, "ego"))
    assert torch.allclose(ours, literal, atol=1e-10)
    assert idgnn.identity_aware(GCN(1, 8, 2))(x, edges).shape == (12, 8)

    folder = Path(tempfile.mkdtemp())
    settings = idgnn.ModelSettings(width=8, layers=2)
    options = idgnn.TrainOptions(epochs=2, device="cpu")
    idgnn.train(graphs, "node-classification", model=settings, training=options, folder=folder / "run")
    assert len(idgnn.Run.load(folder / "run").predict(one, device="cpu")["class"]) == 12

    script = Path(sys.executable).with_name("idgnn")
    for command in (["--help"], ["data"], ["env"], ["reproduce", "list"]):
        done = subprocess.run([script, *command], capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode or not done.stdout:
            raise SystemExit(f"idgnn {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    print(f"idgnn {expected} works, installed in {where.parent}")


if __name__ == "__main__":
    main(sys.argv[1])
