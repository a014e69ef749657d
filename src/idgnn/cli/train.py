"""`idgnn train`."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from idgnn.choices import TaskName, Tracker
from idgnn.cli.arguments import Name, OwnFiles
from idgnn.graphs.settings import FileSource, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskOptions, TaskSettings
from idgnn.training.run_settings import RunSettings, TrainOptions

if TYPE_CHECKING:
    from idgnn.training.trained import Run

Flat = tyro.conf.OmitArgPrefixes


@dataclass(frozen=True)
class Train:
    """Train a network on a dataset by name, or on your own files.

    idgnn train ScaleFree --task node-clustering --identity full

    idgnn train --edges edges.csv --nodes nodes.csv --label club --task node-classification
    """

    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name; idgnn data lists them."""
    task: TaskName | None = None
    """What is predicted; pair-classification is available in Python only."""
    seeds: tuple[int, ...] = (0,)
    """One run for each seed."""
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """The folder for the folders of runs."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Continue the run in this folder, with its own settings."""
    track: Tracker | None = None
    """Report to an experiment tracker."""
    files: Flat[OwnFiles] = field(default_factory=OwnFiles)
    model: Flat[ModelSettings] = field(default_factory=ModelSettings)
    training: Flat[TrainOptions] = field(default_factory=TrainOptions)
    task_details: Flat[TaskOptions] = field(default_factory=TaskOptions)
    selection: Flat[Selection] = field(default_factory=Selection)

    def __call__(self) -> None:
        """Trains, shows the progress, and prints the results."""
        from idgnn.cli.summary import show_runs
        from idgnn.training.processes import joined

        jobs = self._jobs()
        with joined(jobs[0][0].training.device) as processes:
            if not processes.first:
                warnings.simplefilter("ignore")  # the first one shows them
            runs = [self._train(settings, folder, processes.first) for settings, folder in jobs]
            if processes.first:
                show_runs(runs)

    def _jobs(self) -> list[tuple[RunSettings, Path]]:
        """The settings and the folder of each run."""
        from idgnn.training.run_folder import RunFolder

        if self.resume is not None:
            if replace(self, resume=None, track=None) != Train():
                raise ValueError("a resumed run has its own settings. Leave out all other options with --resume.")
            return [(RunFolder(self.resume).settings(), self.resume)]
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds are {list(self.seeds)}, expected at least one, all different.")
        if min(self.seeds) < 0:
            raise ValueError(f"seeds are {list(self.seeds)}, expected whole numbers of at least 0.")
        if self.task is None:
            raise ValueError("no task was given. Add --task, for example --task node-classification.")
        task = TaskSettings(**asdict(self.task_details), name=self.task)
        data = self.files.source(self.dataset)
        jobs = [RunSettings(data, task, self.model, self.training, self.selection, seed) for seed in self.seeds]
        return [(settings, _new_folder(self.runs, settings)) for settings in jobs]

    def _train(self, settings: RunSettings, folder: Path, first: bool) -> Run:
        from idgnn.cli.progress import Progress
        from idgnn.training.callbacks import make_tracker
        from idgnn.training.train import train

        callbacks = []
        if first:  # of several processes only the first shows the progress
            callbacks = [Progress(folder), *([] if self.track is None else [make_tracker(self.track, folder)])]
        return train(
            settings.data,
            settings.task,
            model=settings.model,
            training=settings.training,
            selection=settings.selection,
            seed=settings.seed,
            folder=folder,
            resume=self.resume is not None,
            callbacks=callbacks,
        )


def _new_folder(runs: Path, settings: RunSettings) -> Path:
    """A folder that does not exist yet, named after the data, the task, the network and the seed."""
    data = settings.data.edges.stem if isinstance(settings.data, FileSource) else settings.data
    model = f"{settings.model.conv}-{settings.model.identity}"
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    name = f"{data}_{settings.task.name}_{model}_seed{settings.seed}_{now}"
    folder, number = runs / name, 2
    while folder.exists():
        folder, number = runs / f"{name}-{number}", number + 1
    return folder
