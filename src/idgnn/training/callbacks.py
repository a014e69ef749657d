"""Who wants to know how a run goes: progress bars and experiment trackers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from idgnn.training.epoch import Epoch

TrackerName = Literal["tensorboard", "wandb", "mlflow"]


class Callback:
    """Told about a run as it goes; what is not of interest is not overridden."""

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Before the first epoch: what `run.json` holds."""

    def epoch(self, epoch: Epoch) -> None:
        """After every epoch."""

    def end(self, result: dict[str, Any] | None) -> None:
        """After the last one, or with `None` if the run was interrupted."""


def flat(epoch: Epoch) -> dict[str, float]:
    """The numbers of an epoch under names such as `valid/accuracy`."""
    metrics = {f"{part}/{name}": value for part, found in epoch.metrics.items() for name, value in found.items()}
    return {"train/loss": epoch.loss, "lr": epoch.lr, "seconds": epoch.seconds} | metrics


class TensorBoard(Callback):
    """Writes event files into the folder of the run: `tensorboard --logdir runs`."""

    def __init__(self, folder: Path) -> None:
        try:
            module = import_module("torch.utils.tensorboard.writer")
        except ImportError:
            raise ValueError("tracking with TensorBoard needs it: pip install 'idgnn[tensorboard]'.") from None
        self.writer = module.SummaryWriter(str(folder))

    def epoch(self, epoch: Epoch) -> None:
        """A point of every curve."""
        for name, value in flat(epoch).items():
            self.writer.add_scalar(name, value, epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the files."""
        self.writer.close()


class WandB(Callback):
    """Logs to Weights & Biases, as its own environment variables say."""

    def __init__(self, folder: Path) -> None:
        try:
            self.wandb = import_module("wandb")
        except ImportError:
            raise ValueError("tracking with Weights & Biases needs it: pip install 'idgnn[wandb]'.") from None
        self.folder = folder

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Opens a run with all settings."""
        config = record | {"num_parameters": num_parameters}
        self.run = self.wandb.init(project="idgnn", name=self.folder.name, dir=str(self.folder), config=config)

    def epoch(self, epoch: Epoch) -> None:
        """A point of every curve."""
        self.run.log(flat(epoch), step=epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the run."""
        self.run.finish(exit_code=0 if result else 1)


class MLflow(Callback):
    """Logs to MLflow, as its own environment variables say."""

    def __init__(self, folder: Path) -> None:
        try:
            self.mlflow = import_module("mlflow")
        except ImportError:
            raise ValueError("tracking with MLflow needs it: pip install 'idgnn[mlflow]'.") from None
        self.folder = folder

    def begin(self, record: dict[str, Any], num_parameters: int) -> None:
        """Opens a run with all settings."""
        self.mlflow.set_experiment("idgnn")
        self.mlflow.start_run(run_name=self.folder.name)
        for group, values in record["settings"].items():
            named = values if isinstance(values, dict) else {"": values}
            self.mlflow.log_params({f"{group}.{name}".rstrip("."): value for name, value in named.items()})

    def epoch(self, epoch: Epoch) -> None:
        """A point of every curve."""
        # "@" is not allowed in its names.
        self.mlflow.log_metrics({k.replace("@", "_at_"): v for k, v in flat(epoch).items()}, step=epoch.epoch)

    def end(self, result: dict[str, Any] | None) -> None:
        """Closes the run."""
        self.mlflow.end_run("FINISHED" if result else "KILLED")


def tracker(name: TrackerName, folder: Path) -> Callback:
    """The tracker of that name."""
    return {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}[name](folder)
