"""`idgnn train`."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import tyro

from idgnn.choices import RelationalKind, TaskName
from idgnn.cli.arguments import Name, OwnFiles, changed, check_no_graphs, check_unused
from idgnn.cli.run_names import new_folder, table_changes, unique_folder
from idgnn.cli.tables import TableOptions
from idgnn.cli.train_options import LoopOptions, NetworkOptions
from idgnn.cli.unused_options import unused_options
from idgnn.graphs.sources import FileSource, Selection
from idgnn.models.settings import ModelSettings
from idgnn.tasks.task_settings import TaskOptions, TaskSettings
from idgnn.training.run_settings import RunSettings

if TYPE_CHECKING:
    from idgnn.graphs.dataset import Dataset
    from idgnn.training.processes import Processes
    from idgnn.training.trained import Run

Flat = tyro.conf.OmitArgPrefixes
AnyTask = Literal[TaskName, RelationalKind]
_USED_WITH_TABLES = (
    "identity",
    "color",
    "layers",
    "width",
    "dropout",
    "epochs",
    "lr",
    "weight_decay",
    "keep",
    "device",
)


@dataclass(frozen=True)
class Train:
    """Train a network on a dataset by name, on your own files, or on a folder of tables.

    idgnn train ScaleFree --task node-clustering --identity full

    idgnn train --edges edges.csv --nodes nodes.csv --label club --task node-classification

    idgnn train --tables folder --task recommendation --layers 4
    """

    dataset: tyro.conf.Positional[Name] = None
    """A dataset by name; idgnn data lists them."""
    task: AnyTask | None = None
    """What is predicted; the last three are for --tables."""
    seeds: tuple[int, ...] = (0,)
    """A run for each of them."""
    runs: Annotated[Path, tyro.conf.arg(metavar="FOLDER")] = Path("runs")
    """Where the folders of runs are made."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Go on with the run in this folder, with its own settings."""
    track: Literal["tensorboard", "wandb", "mlflow"] | None = None
    """Report to an experiment tracker besides."""
    files: Flat[OwnFiles] = field(default_factory=OwnFiles)
    table_files: Flat[TableOptions] = field(default_factory=TableOptions)
    model: Flat[NetworkOptions] = field(default_factory=NetworkOptions)
    training: Flat[LoopOptions] = field(default_factory=LoopOptions)
    task_details: Flat[TaskOptions] = field(default_factory=lambda: TaskOptions(features="auto"))
    selection: Flat[Selection] = field(default_factory=Selection)
    written: Annotated[frozenset[str], tyro.conf.Fixed, tyro.conf.Suppress] = frozenset()
    """The options on the command line, of which some may be at their defaults."""

    def __call__(self) -> None:
        """Trains, with progress, and prints the results."""
        from idgnn.cli.training_display import show_runs
        from idgnn.training.processes import joined
        from idgnn.training.train import read_data

        if self.table_files.tables is not None or self.task in get_args(RelationalKind):
            self._train_tables()
            return
        if self.resume is not None and self._resume_tables():
            return
        if self.resume is None:
            self.table_files.check_unused()
        settings, folder = (self._new(), None) if self.resume is None else (self._resumed(), self.resume)
        with joined(settings.training.device) as processes:
            if not processes.first:
                warnings.simplefilter("ignore")  # the first process shows them
            with processes.one_before_others():  # one process downloads and caches for all
                dataset = read_data(settings)
            if folder is None:
                settings = processes.from_first(lambda: self._chosen(dataset, settings))
            seeds = self.seeds if folder is None else (settings.seed,)
            runs = [self._train(dataset, replace(settings, seed=seed), processes) for seed in seeds]
            if processes.first:
                show_runs(runs)

    def _resumed(self) -> RunSettings:
        """The settings of the run that is continued."""
        from idgnn.training.run_folder import RunFolder

        assert self.resume is not None
        self._check_resumed()
        settings = RunFolder(self.resume).settings()
        if settings.own_network is not None:
            raise ValueError(
                f"the run trains {settings.own_network}, a model of your own. Resume it in Python: idgnn.train("
                f"..., model=idgnn.identity_aware({settings.own_network}(...)), folder=..., resume=True)."
            )
        return settings

    def _new(self) -> RunSettings:
        """The settings of the first run, as far as they were given."""
        self._check_seeds()
        if self.task is None:
            raise ValueError("no task was given. Add --task, for example --task node-classification.")
        task = TaskSettings(**asdict(self.task_details), name=self.task)  # type: ignore[arg-type]
        data = self.files.source(self.dataset)
        data = data.absolute() if isinstance(data, FileSource) else data
        settings = RunSettings(
            data, task, self.model.settings(), self.training.settings(), self.selection, self.seeds[0]
        )
        if unused := unused_options(settings, self.written, self.model.identity is not None):
            raise ValueError(unused[0])
        return settings

    def _chosen(self, dataset: Dataset, settings: RunSettings) -> RunSettings:
        """The settings with what was not given chosen from the cost of a step, which is printed."""
        from idgnn.training.automatic import choose_for

        given = (self.model.identity, self.model.layers, self.training.query_batch_size)
        names = ("identity", "layers", "query_batch_size")
        fixed = [name for name, value in zip(names, given, strict=True) if value is not None]
        if len(fixed) == len(names):
            return settings
        chosen = choose_for(dataset, settings, fixed)
        for reason in chosen.reasons:
            print(f"Chosen: {reason}", flush=True)
        if chosen.reasons:
            free = (f"--{name.replace('_', '-')}" for name in names if name not in fixed)
            print(f"To choose yourself: {', '.join(free)}.", flush=True)
        settings = replace(settings, model=chosen.model, training=chosen.training)
        for sentence in unused_options(settings, self.written):
            warnings.warn(sentence, stacklevel=2)
        return settings

    def _check_resumed(self) -> None:
        others = self.written - {"--resume", "--track"}
        if others or replace(self, resume=None, track=None, written=frozenset()) != Train():
            raise ValueError("a run that is resumed has its own settings. Leave all others out beside --resume.")

    def _resume_tables(self) -> bool:
        """Goes on with a run on tables, if it is one."""
        from idgnn.cli.tables import resume_tables
        from idgnn.training.relational_runs import is_begun

        assert self.resume is not None
        if not is_begun(self.resume):
            return False
        self._check_resumed()
        if self.track is not None:
            raise ValueError("--track is for runs on graphs, and the run is on tables. Leave it out.")
        resume_tables(self.resume)
        return True

    def _check_seeds(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds are {list(self.seeds)}, expected at least one, and none of them twice.")
        if min(self.seeds) < 0:
            raise ValueError(f"seeds are {list(self.seeds)}, expected whole numbers of at least 0.")

    def _train_tables(self) -> None:
        """Trains on a folder of tables."""
        from idgnn.cli.tables import train_tables
        from idgnn.training.relational import RelationalSettings

        self._check_seeds()
        kinds = get_args(RelationalKind)
        if self.table_files.tables is None:
            raise ValueError(f"--task {self.task} is for a folder of tables. Add --tables FOLDER.")
        if self.task not in kinds:
            raise ValueError(f"--tables is for the tasks {', '.join(kinds)}, but --task is {self.task}.")
        check_no_graphs(self.dataset, self.files)
        if self.resume is not None:
            raise ValueError("a run that is resumed has its own settings. Leave all others out beside --resume.")
        if self.track is not None:
            raise ValueError("--track is for runs on graphs, not on --tables. Leave it out.")
        self._check_unused()
        model, training = self.model, self.training
        settings = [
            RelationalSettings(
                identity=model.identity or ModelSettings.identity,
                color=model.color,
                num_layers=model.layers or RelationalSettings.num_layers,
                hidden_channels=model.width or RelationalSettings.hidden_channels,
                dropout=model.dropout,
                window_years=self.table_files.window_years,
                seed=seed,
                **training.of_tables(),
            )
            for seed in self.seeds
        ]
        parts = [
            self.table_files.tables.resolve().name,
            self.table_files.target or self.task,
            settings[0].identity,
            *table_changes(settings[0], self.table_files),
        ]
        folders = [unique_folder(self.runs, parts, seed) for seed in self.seeds]
        train_tables(self.table_files, self.task, training.device, settings, folders)  # type: ignore[arg-type]

    def _check_unused(self) -> None:
        """Refuses options that a network over tables has no use for: a result would look as if they mattered."""
        task = replace(self.task_details, features=TaskOptions.features)  # the default of this verb is another
        groups = (self.model, self.training, task, self.selection)
        unused = [
            name
            for group in groups
            for name in changed(group, without=_USED_WITH_TABLES, written=self.written - {"--features"})
        ]
        if "--features" in self.written or self.task_details.features != "auto":
            unused.append("--features")
        used = (*_USED_WITH_TABLES, *(each.name for each in fields(TableOptions) if each.name != "tables"))
        names = ", ".join(f"--{name.replace('_', '-')}" for name in used)
        check_unused(unused, f"with --tables, which takes {names}")
        if self.model.identity not in (None, "full") and self.model.color != ModelSettings.color:
            check_unused(["--color"], "without --identity full")

    def _train(self, dataset: Dataset, settings: RunSettings, processes: Processes) -> Run:
        from idgnn.cli.training_display import TrainingProgress
        from idgnn.training.callbacks import make_tracker
        from idgnn.training.train import train_dataset

        folder = self.resume or processes.from_first(lambda: new_folder(self.runs, settings))
        callbacks = []
        if processes.first:  # of several processes one shows the progress
            callbacks = [TrainingProgress(folder), *([] if self.track is None else [make_tracker(self.track, folder)])]
        resume = self.resume is not None
        return train_dataset(dataset, settings, processes, folder=folder, resume=resume, callbacks=callbacks)
