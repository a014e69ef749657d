"""A trained network and all that is needed to use it on other graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.choices import Level
from idgnn.graphs.schema import Schema
from idgnn.identity.identity_graph import UnreachedColorWarning
from idgnn.identity.queries import as_tensor
from idgnn.models.embedding import EmbeddingBar
from idgnn.models.idgnn import IDGNN
from idgnn.models.predictor import Predictor
from idgnn.tasks.objective import Objective, from_dict
from idgnn.tasks.part import Part, as_list, stack
from idgnn.tasks.settings import TaskSettings
from idgnn.training.answers import answer
from idgnn.training.devices import choose_device
from idgnn.training.epoch import Epoch
from idgnn.training.partial import embed_partial
from idgnn.training.record import RunFolder
from idgnn.training.settings import RunSettings
from idgnn.training.tables import Table, answer_columns, query_columns

Network = TypeVar("Network", bound=nn.Module)
_ROWS = 2**16  # that a head reads at a time: the MLP for pairs is wider than what it reads


@dataclass(frozen=True)
class Run:
    """A finished run."""

    model: Predictor
    objective: Objective
    task: TaskSettings
    schema: Schema | None
    classes: Sequence[str] | None
    weighted: bool | None
    """Whether it was trained on edge weights; `None` if that was not recorded."""
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
        try:
            schema = record["dataset"]["schema"]
            return Run(
                Predictor.load(folder).eval(),
                from_dict(record["task"]["objective"]),
                RunSettings.from_dict(record["settings"]).task,
                None if schema is None else Schema.from_dict(schema),
                record["task"].get("classes"),
                record["task"].get("weighted"),
                files.epochs(),
                record["result"],
                Path(folder),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{folder} is not as idgnn writes it: its run.json lacks something, or has it in another form "
                f"({type(error).__name__}: {error}). Train again, or take the folder from where it came."
            ) from None

    def predict(
        self,
        graphs: Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        batch_size: int = 128,
        memory: int | str | None = None,
        device: str = "auto",
        progress: bool = False,
    ) -> Table:
        """What the network says about every node, every graph, or the given pairs of each graph: a row for each.

        It is what the head makes of the embeddings, so a graph may have any size, as for :meth:`embed`.

        Args:
            graphs: One or many.
            pairs: For each graph the pairs `[2, num_pairs]`, if the network looks at pairs.
            batch_size: Graphs at a time; fewer if memory runs out.
            memory: What this may take on the device: bytes, or a size such as `"4GiB"`. `None` is half of what is free.
            device: `"cpu"`, `"cuda"`, `"cuda:1"`; `"auto"` takes a GPU if there is one.
            progress: Whether a bar is shown.
        """
        given, pairs, part = self._asked(graphs, pairs, self.model.level)
        alone = len(given) == 1  # then the bar is that of its nodes
        with _on(self.model, device) as model, EmbeddingBar(len(given), progress and not alone, "predicting") as bar:

            def run(some: Part) -> Tensor:
                out = _read(model, some, _embedded(model.encoder, some, memory, progress and alone))
                bar.advance(some.num_graphs)
                return out

            out = answer(model, run, _Given(part, given, pairs), batch_size).out
        table = query_columns(part, given, range(len(given)), self.task.ends)
        return {**table, **answer_columns(self.objective.read(out), self.classes)}

    def embed(
        self,
        graphs: Data | Sequence[Data],
        pairs: Sequence[Tensor] | None = None,
        *,
        memory: int | str | None = None,
        device: str = "auto",
        progress: bool = False,
        partial: Path | None = None,
    ) -> tuple[Table, Tensor]:
        """Embeddings of every node, or of the given pairs of each graph: what they are of, and `[rows, width]`.

        Args:
            graphs: One or many, of any size.
            pairs: For each graph the pairs `[2, num_pairs]`, if the network looks at pairs.
            memory: What this may take on the device: bytes, or a size such as `"4GiB"`. `None` is half of what is free.
            device: As for :meth:`predict`.
            progress: Whether a bar is shown.
            partial: A file to keep what is done in: the same call goes on with it if it was stopped. Delete it with
                :func:`idgnn.training.partial.discard`.
        """
        given, _, part = self._asked(graphs, pairs, "pair" if self.model.level == "pair" else "node")
        with _on(self.model.encoder, device) as encoder:
            out = _embedded(encoder, part, memory, progress, partial)
        return query_columns(part, given, range(len(given)), self.task.ends), out

    def _asked(
        self, given: Data | Sequence[Data], pairs: Sequence[Tensor] | None, level: Level
    ) -> tuple[list[Data], list[Tensor] | None, Part]:
        """The graphs and pairs one by one and in one piece, checked against what the network was trained with."""
        if pairs is None and self.model.level == "pair":
            raise ValueError(
                f"the network was trained for {self.task.name}: say which pairs of nodes it is to look at. Name them "
                "with --pairs FILE on the command line, or pairs=[...] in Python."
            )
        if pairs is not None and self.model.level != "pair":
            raise ValueError(f"the network was trained for {self.task.name}, which is not about pairs of nodes.")
        graphs, asked = as_list(given), None if pairs is None else [_as_pairs(each) for each in pairs]
        part = stack(level, graphs, asked)
        expected = self.model.encoder.in_channels
        if part.x.size(1) != expected:
            raise ValueError(
                f"the graphs have {part.x.size(1)} node features, but the network was trained with {expected}. Use "
                "graphs with the features that it was trained with."
            )
        has = part.edge_weight is not None
        if self.weighted is not None and has != self.weighted and self.model.encoder.takes("edge_weight"):
            theirs, ours = ("with", "without") if has else ("without", "with")
            raise ValueError(
                f"the graphs come {theirs} edge weights, but the network was trained {ours} them. Use graphs like "
                "those that it was trained on."
            )
        return graphs, asked, part


@dataclass(frozen=True)
class _Given:
    """Graphs and pairs as they were given, put into one piece batch by batch."""

    part: Part  # all of them
    graphs: list[Data]
    pairs: list[Tensor] | None

    @property
    def num_items(self) -> int:
        return len(self.graphs)

    def each(self, deals: Sequence[Tensor]) -> Iterator[Part]:
        for some in deals:
            if some.numel() == len(self.graphs):
                yield self.part
            else:
                pairs = None if self.pairs is None else [self.pairs[i] for i in some]
                yield stack(self.part.level, [self.graphs[i] for i in some], pairs)


def _as_pairs(given: Any) -> Tensor:
    """The pairs of one graph."""
    pairs = as_tensor(given, "pairs")
    if pairs is None or pairs.dim() != 2 or pairs.size(0) != 2:
        said = "None" if pairs is None else f"a tensor of shape {list(pairs.shape)}"
        raise ValueError(
            f"pairs holds {said}, expected for each graph a tensor of shape [2, num_pairs]; if there is one graph, a "
            "list that holds one tensor."
        )
    return pairs if pairs.numel() else pairs.long()


def _embedded(
    encoder: IDGNN,
    part: Part,
    memory: int | str | None,
    progress: bool = False,
    partial: Path | None = None,
) -> Tensor:
    """The embeddings of all that is asked, on the CPU."""
    if part.queries is not None and part.queries.numel() == 0:  # graphs of which no pairs are named
        return torch.empty(0, encoder.pair_channels)
    data = Data(part.x, part.edge_index, part.edge_attr, edge_weight=part.edge_weight)
    with warnings.catch_warnings():
        # As in training: most pairs lie far apart, and that they do is part of the task.
        warnings.simplefilter("ignore", UnreachedColorWarning)
        if partial is None:
            return encoder.embed(data, part.queries, memory=memory, progress=progress)
        return embed_partial(encoder, data, part.queries, memory, progress, partial)


def _read(model: Predictor, part: Part, h: Tensor) -> Tensor:
    """What the head makes of embeddings, on the CPU."""
    device = next(model.parameters()).device
    if part.level == "graph":
        return model.head(h.to(device), part.owner.to(device), part.num_graphs).cpu()
    return torch.cat([model.head(rows.to(device)).cpu() for rows in h.split(_ROWS)])


@contextmanager
def _on(model: Network, device: str) -> Iterator[Network]:
    """The network on a device; after the block it is back on the CPU, whatever happened in it."""
    try:
        yield model.to(choose_device(device))
    finally:
        model.cpu()
