"""A trained network and all that is needed to use it on other graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from idgnn.graphs.schema import Schema
from idgnn.models.predictor import Predictor
from idgnn.models.settings import Level
from idgnn.tasks.objective import Objective, from_dict
from idgnn.tasks.part import as_list, stack
from idgnn.tasks.settings import TaskSettings
from idgnn.training.answers import answer, predictions
from idgnn.training.batches import Batches, GraphBatch
from idgnn.training.devices import choose_device
from idgnn.training.epoch import Epoch
from idgnn.training.record import RunFolder
from idgnn.training.settings import RunSettings
from idgnn.training.tables import Table, answer_columns, query_columns


@dataclass(frozen=True)
class Run:
    """A finished run."""

    model: Predictor
    objective: Objective
    task: TaskSettings
    schema: Schema | None
    classes: Sequence[str] | None
    epochs: list[Epoch]
    result: dict[str, Any]
    folder: Path | None = None

    @staticmethod
    def load(folder: str | Path) -> Run:
        """Reads the folder of a finished run. Nothing in it is executed."""
        files = RunFolder(Path(folder))
        record = files.read()
        if record["result"] is None:
            raise ValueError(f"the run in {folder} is not finished. Go on with it: idgnn train --resume {folder}")
        schema = record["dataset"]["schema"]
        return Run(
            Predictor.load(folder).eval(),
            from_dict(record["task"]["objective"]),
            RunSettings.from_dict(record["settings"]).task,
            None if schema is None else Schema.from_dict(schema),
            record["task"].get("classes"),
            files.epochs(),
            record["result"],
            Path(folder),
        )

    def predict(
        self,
        graphs: Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        batch_size: int = 128,
        device: str = "auto",
    ) -> Table:
        """What the network says about every node, every graph, or the given pairs of each graph: a row for each."""
        table, out = self._run(graphs, pairs, self.model.level, predictions(self.model), batch_size, device)
        return {**table, **answer_columns(self.objective.read(out), self.classes)}

    def embed(
        self,
        graphs: Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        batch_size: int = 128,
        device: str = "auto",
    ) -> tuple[Table, Tensor]:
        """Embeddings of every node, or of the given pairs of each graph: what they are of, and `[rows, width]`."""
        level: Level = "pair" if self.model.level == "pair" else "node"
        encoder = self.model.encoder
        return self._run(graphs, pairs, level, lambda batch: encoder.run(batch.ready), batch_size, device)

    def _run(
        self,
        given: Data | Sequence[Data],
        pairs: Sequence[Tensor] | None,
        level: Level,
        run: Callable[[GraphBatch], Tensor],
        batch_size: int,
        device: str,
    ) -> tuple[Table, Tensor]:
        if pairs is None and self.model.level == "pair":
            raise ValueError(
                f"the network was trained for {self.task.name}: say which pairs of nodes it is to look at."
            )
        if pairs is not None and self.model.level != "pair":
            raise ValueError(f"the network was trained for {self.task.name}, which is not about pairs of nodes.")
        graphs = as_list(given)
        where = choose_device(device)
        part = stack(level, graphs, pairs).to(where)
        expected = self.model.encoder.in_channels
        if part.x.size(1) != expected:
            raise ValueError(
                f"the graphs have {part.x.size(1)} node features, but the network was trained with {expected}. Use "
                "graphs with the features that it was trained with."
            )
        model = self.model.to(where)
        answers = answer(model, run, Batches(part, model.encoder), batch_size)
        model.cpu()
        return query_columns(part, graphs, range(len(graphs))), answers.out.cpu()
