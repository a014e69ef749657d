"""A trained network, with everything that is needed to use it on other graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.choices import Level
from idgnn.graphs.files.read import read_files
from idgnn.graphs.schema import Schema
from idgnn.graphs.sources import FileSource
from idgnn.identity.queries import as_tensor
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.embedding import EmbeddingBar
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.predictor import Predictor, both_directions
from idgnn.tasks.node_features import NodeFeatures, lack_features
from idgnn.tasks.objective import Objective
from idgnn.tasks.problem import TASKS, objective_from_dict
from idgnn.tasks.query_set import QuerySet, as_list, restore_integers, stack
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.evaluation import predict_all
from idgnn.training.partial import embed_partial
from idgnn.training.prediction_tables import PredictionTable, prediction_columns, query_columns
from idgnn.training.processes import SINGLE_PROCESS, Processes, choose_device
from idgnn.training.run_folder import Epoch, RunFolder
from idgnn.training.run_settings import RunSettings

Network = TypeVar("Network", bound=nn.Module)
_HEAD_ROWS = 2**16  # rows that a head computes at a time: the MLP for pairs is wider than its input


@dataclass(frozen=True)
class Run:
    """A finished run."""

    model: Predictor
    objective: Objective
    task: TaskSettings
    schema: Schema | None
    classes: Sequence[str] | None
    weighted: bool
    """Whether it was trained on edge weights."""
    epochs: list[Epoch]
    result: dict[str, Any]
    folder: Path | None = None
    features: NodeFeatures = field(default_factory=NodeFeatures)
    """What nodes without features were given, and are given in new graphs."""

    @property
    def pair_columns(self) -> tuple[str, str]:
        """Column names, in tables, of the node of a pair that is read and of the node that is colored."""
        return TASKS[self.task.name].pair_columns

    @staticmethod
    def load(folder: str | Path, model: IdentityAwareModel | None = None) -> Run:
        """Reads the folder of a finished run. Nothing in it is executed.

        Args:
            folder: The folder.
            model: If a model of your own was trained, the same model with any weights, which is given those of the run:
                `Run.load(folder, model=idgnn.identity_aware(MyNet(...)))`.
        """
        files = RunFolder(Path(folder))
        record = files.read()
        if record["result"] is None:
            raise ValueError(f"the run in {folder} is not finished. Continue it: idgnn train --resume {folder}")
        try:
            schema = record["dataset"]["schema"]
            return Run(
                Predictor.load(folder, model),
                objective_from_dict(record["task"]["objective"]),
                RunSettings.from_dict(record["settings"]).task,
                None if schema is None else Schema.from_dict(schema),
                record["task"]["classes"],
                record["task"]["weighted"],
                files.epochs(),
                record["result"],
                Path(folder),
                NodeFeatures(**record["task"]["features"]),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"run.json in {folder} is incomplete or has another format ({type(error).__name__}: {error}). Train "
                "again, or copy the folder from its source again."
            ) from None

    def predict(
        self,
        graphs: FileSource | Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        batch_size: int = 128,
        memory: int | str | None = None,
        device: str = "auto",
        progress: bool = False,
    ) -> PredictionTable:
        """Predictions for every node, every graph, or the given pairs of each graph: a row for each.

        The head is applied to embeddings, so a graph may have any size, as for :meth:`embed`. Both are computed in
        float32, whatever the precision of the training was: then `predictions.csv` of the run is a little different.

        Args:
            graphs: One or many, or files, whose columns become what they became in training, and whose edges have the
                directions that they had then.
            pairs: For each graph the pairs `[2, num_pairs]`, if the task is about pairs; those of files may be in their
                `labeled_pairs`, without labels.
            batch_size: Graphs at a time; fewer if memory runs out.
            memory: Limit of memory on the device: bytes, or a size such as `"4GiB"`. `None` is half of the free memory.
            device: `"cpu"`, `"cuda"`, `"cuda:1"`; `"auto"` takes a GPU if there is one.
            progress: Whether to show a progress bar.
        """
        graphs, pairs = self._read(graphs, pairs)
        given, queries, part = self._queries(graphs, pairs, self.model.level)
        single = len(given) == 1  # then the progress bar counts its nodes
        with _on(self.model, device) as model, EmbeddingBar(len(given), progress and not single, "predicting") as bar:

            def outputs(batches: Sequence[Tensor]) -> Iterator[Tensor]:
                for ids in batches:
                    some = part
                    if ids.numel() < len(given):
                        chosen = None if queries is None else [queries[i] for i in ids]
                        some = self._stacked(part.level, [given[i] for i in ids], chosen)
                    yield _apply_head(model, some, _both_embedded(model, some, memory, progress and single))
                    bar.advance(some.num_graphs)

            out = predict_all(model, outputs, len(given), batch_size)
        table = query_columns(part, given, range(len(given)), self.pair_columns)
        return {**table, **prediction_columns(self.objective.read(out), self.classes)}

    def embed(
        self,
        graphs: FileSource | Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        memory: int | str | None = None,
        device: str = "auto",
        progress: bool = False,
        partial: Path | None = None,
        processes: Processes = SINGLE_PROCESS,
    ) -> tuple[PredictionTable, Tensor]:
        """Embeddings of every node, or of the given pairs of each graph: their queries, and `[rows, width]`.

        Args:
            graphs: One or many, of any size, or files as for :meth:`predict`.
            pairs: For each graph the pairs `[2, num_pairs]`, if the task is about pairs, as for :meth:`predict`.
            memory: Limit of memory on the device: bytes, or a size such as `"4GiB"`. `None` is half of the free memory.
            device: As for :meth:`predict`.
            progress: Whether to show a progress bar.
            partial: A file for finished rows: the same call continues from it if it was stopped. Delete it with
                :func:`idgnn.training.partial.discard`.
            processes: With `partial`, the processes that share the work; the embeddings are those of one process, and
                all but the first get no rows.
        """
        graphs, pairs = self._read(graphs, pairs)
        given, _, part = self._queries(graphs, pairs, "pair" if self.model.level == "pair" else "node")
        with _on(self.model, device) as model:
            if partial is None:
                out = _embedded(model, part, memory, progress)
            else:
                out = _embedded_partial(model, part, memory, progress, partial, processes)
        return query_columns(part, given, range(len(given)), self.pair_columns), out

    def _read(
        self, graphs: FileSource | Data | Sequence[Data], pairs: Sequence[Tensor] | None
    ) -> tuple[Data | Sequence[Data], Sequence[Tensor] | None]:
        """The graphs of files, and their pairs as the node that is read and the node that is colored."""
        if not isinstance(graphs, FileSource):
            return graphs, pairs
        if graphs.directed and self.schema is not None and not self.schema.directed:
            raise ValueError(
                "the files are said to be directed, but the network was trained on edges in both directions. Leave "
                "directed out, or train it with directed=True."
            )
        read = read_files(graphs, self.schema).graphs
        if pairs is None and graphs.labeled_pairs is not None:
            rows = [("source", "target").index(end) for end in self.pair_columns]
            pairs = [graph.edge_label_index[rows] for graph in read]
        return read, pairs

    def _queries(
        self, given: Data | Sequence[Data], pairs: Sequence[Tensor] | None, level: Level
    ) -> tuple[list[Data], list[Tensor] | None, QuerySet]:
        """The graphs and pairs as lists and as a query set, checked against those that the network was trained with."""
        if pairs is None and self.model.level == "pair":
            raise ValueError(
                f"the network was trained for {self.task.name}, which predicts pairs of nodes. Name them with --pairs "
                "FILE on the command line, or pairs=[...] in Python."
            )
        if pairs is not None and self.model.level != "pair":
            raise ValueError(f"the network was trained for {self.task.name}, which is not about pairs of nodes.")
        graphs, queries = as_list(given), None if pairs is None else [_as_pairs(each) for each in pairs]
        part = self._stacked(level, graphs, queries)
        expected = self.model.in_channels
        if part.x.size(1) != expected:
            raise ValueError(
                f"the graphs have {part.x.size(1)} node features, but the network was trained with {expected}. Use "
                "graphs with the features that it was trained with."
            )
        has = part.edge_weight is not None
        if has != self.weighted and self.model.encoder.takes("edge_weight"):
            theirs, ours = ("with", "without") if has else ("without", "with")
            raise ValueError(
                f"the graphs are {theirs} edge weights, but the network was trained {ours} them. Use graphs like those "
                "that it was trained on."
            )
        return graphs, queries, part

    def _stacked(self, level: Level, graphs: Sequence[Data], queries: Sequence[Tensor] | None) -> QuerySet:
        """The graphs as a query set, with features as in training: a wrapped model is given integers as they are."""
        number = self.features.numbers(graphs)
        part = stack(level, graphs, queries)
        if self.features.kind != "constant" and lack_features(graphs):
            part = replace(part, x=self.features.of(part, number))
        if not isinstance(self.model.encoder, IdentityAwareModel):
            return part
        edge_attr = None if part.edge_attr is None else restore_integers(graphs, "edge_attr", part.edge_attr)
        return replace(part, x=restore_integers(graphs, "x", part.x), edge_attr=edge_attr)


def _as_pairs(given: Any) -> Tensor:
    """The pairs of one graph."""
    pairs = as_tensor(given, "pairs")
    if pairs is None or pairs.dim() != 2 or pairs.size(0) != 2:
        found = "None" if pairs is None else f"a tensor of shape {list(pairs.shape)}"
        raise ValueError(
            f"pairs holds {found}, expected for each graph a tensor of shape [2, num_pairs]; if there is one graph, a "
            "list of one tensor."
        )
    return pairs if pairs.numel() else pairs.long()


def _embedded(model: Predictor, part: QuerySet, memory: int | str | None, progress: bool = False) -> Tensor:
    """The embeddings of all queries, on the CPU."""
    if _no_pairs(part):
        return torch.empty(0, model.pair_channels)
    with warnings.catch_warnings():
        # As in training: many pairs are too far apart for the color to arrive, which is part of the task.
        warnings.simplefilter("ignore", UnreachedColorWarning)
        return model.encoder.embed(_data(part), part.queries, memory=memory, progress=progress)


def _embedded_partial(
    model: Predictor,
    part: QuerySet,
    memory: int | str | None,
    progress: bool,
    partial: Path,
    processes: Processes,
) -> Tensor:
    """The same, kept in a file while it is computed, by one or several processes."""
    if _no_pairs(part):
        return torch.empty(0, model.pair_channels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnreachedColorWarning)
        return embed_partial(model.encoder, _data(part), part.queries, memory, progress, partial, processes)


def _no_pairs(part: QuerySet) -> bool:
    return part.queries is not None and part.queries.numel() == 0


def _data(part: QuerySet) -> Data:
    return Data(part.x, part.edge_index, part.edge_attr, edge_weight=part.edge_weight)


def _both_embedded(model: Predictor, part: QuerySet, memory: int | str | None, progress: bool) -> Tensor:
    """What the head reads: the embeddings of all queries, of symmetric pairs in both directions where they differ."""
    if not model.reads_both or part.queries is None:
        return _embedded(model, part, memory, progress)
    h = _embedded(model, replace(part, queries=both_directions(part.queries)), memory, progress)
    number = part.queries.size(1)
    return torch.cat([h[:number], h[number:]], dim=1)


def _apply_head(model: Predictor, part: QuerySet, h: Tensor) -> Tensor:
    """The outputs of the head for embeddings, on the CPU."""
    device = next(model.parameters()).device
    if part.level == "graph":
        return model.head(h.to(device), part.owner.to(device), part.num_graphs).cpu()
    return torch.cat([model.answer(rows.to(device)).cpu() for rows in h.split(_HEAD_ROWS)])


@contextmanager
def _on(model: Network, device: str) -> Iterator[Network]:
    """The network on a device; after the block it is on the CPU again, also after an error."""
    try:
        yield model.to(choose_device(device))
    finally:
        model.cpu()
