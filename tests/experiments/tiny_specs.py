"""Runs that take a fraction of a second."""

from idgnn.experiments.spec import Spec, TrainJob
from idgnn.graphs.sources import Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions


def tiny(seed: int = 0, conv: str = "gcn", identity: str = "full", data: str = "SmallWorld", epochs: int = 2) -> Spec:
    settings = RunSettings(
        data,
        TaskSettings(name="node-clustering"),
        ModelSettings(conv=conv, identity=identity, width=4, layers=2),  # type: ignore[arg-type]
        TrainOptions(epochs=epochs, batch_size=4),
        Selection(smallest=8),
        seed,
    )
    return Spec("tiny", data, f"{identity}-{conv}", "text", seed, TrainJob(settings))


def broken(seed: int = 0) -> Spec:
    """A run that raises: there is no such dataset."""
    return tiny(seed, data="Atlantis")
