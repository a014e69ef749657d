"""Callbacks of a run: experiment trackers here, progress bars in :mod:`idgnn.cli`. Imports no PyTorch."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from idgnn.choices import Tracker
from idgnn.training.run_folder import Epoch


class Callback:
    """Called during a run; the methods do nothing unless overridden."""

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Before the first epoch, with the content of `run.json`."""

    def step(self, epoch: int, done: int, steps: int) -> None:
        """After every step: how many of the steps of an epoch are done. A GPU may still be at work on them."""

    def epoch(self, epoch: Epoch) -> None:
        """After every epoch."""

    def end(self, result: dict[str, Any] | None) -> None:
        """After the last epoch, or with `None` if the run was interrupted."""


def flat(epoch: Epoch) -> dict[str, float]:
    """The numbers of an epoch under names such as `valid/accuracy`."""
    metrics = {f"{part}/{name}": value for part, found in epoch.metrics.items() for name, value in found.items()}
    return {"train/loss": epoch.loss, "lr": epoch.lr, "seconds": epoch.seconds} | metrics


class TensorBoard(Callback):
    """Writes event files into the folder of the run: `tensorboard --logdir runs`."""

    def __init__(self, folder: Path) -> None:
        self.writer = _imported("torch.utils.tensorboard.writer", "tensorboard").SummaryWriter(str(folder))

    def epoch(self, epoch: Epoch) -> None:
        """Adds a point to every curve."""
        for name, value in flat(epoch).items():
            self.writer.add_scalar(name, value, epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the files."""
        self.writer.close()


class WandB(Callback):
    """Logs to Weights & Biases, configured by its environment variables."""

    def __init__(self, folder: Path) -> None:
        self.wandb, self.folder = _imported("wandb", "wandb"), folder

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Opens a run with all settings."""
        config = record | {"num_parameters": num_parameters}
        self.run = self.wandb.init(project="idgnn", name=self.folder.name, dir=str(self.folder), config=config)

    def epoch(self, epoch: Epoch) -> None:
        """Adds a point to every curve."""
        self.run.log(flat(epoch), step=epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the run."""
        self.run.finish(exit_code=0 if result else 1)


class MLflow(Callback):
    """Logs to MLflow, configured by its environment variables."""

    def __init__(self, folder: Path) -> None:
        self.mlflow, self.folder = _imported("mlflow", "mlflow"), folder

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Opens a run with all settings."""
        self.mlflow.set_experiment("idgnn")
        self.mlflow.start_run(run_name=self.folder.name)
        for group, values in record["settings"].items():
            named = values if isinstance(values, dict) else {"": values}
            self.mlflow.log_params({f"{group}.{name}".rstrip("."): value for name, value in named.items()})

    def epoch(self, epoch: Epoch) -> None:
        """Adds a point to every curve."""
        # MLflow does not allow "@" in names.
        self.mlflow.log_metrics({k.replace("@", "_at_"): v for k, v in flat(epoch).items()}, step=epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the run."""
        self.mlflow.end_run("FINISHED" if result else "KILLED")


def make_tracker(name: Tracker, folder: Path) -> Callback:
    """The tracker of that name, for the run in a folder."""
    return {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}[name](folder)


def _imported(module: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ValueError(f"tracking with {extra} needs a package: pip install 'idgnn[{extra}]'.") from None
