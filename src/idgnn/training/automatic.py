"""Batches, depth and identity for a task, chosen from what a step costs on its graphs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch_geometric.data import Data

from idgnn.choices import Identity, TaskName
from idgnn.graphs.dataset import Dataset
from idgnn.graphs.sources import FileSource, Selection
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cost import EDGE_BYTES, ROW_BYTES, WORKING, cost_on, free_memory
from idgnn.identity.queries import as_queries
from idgnn.identity.second_nodes import SecondNodes
from idgnn.identity.unreached import UnreachedColorWarning
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.problem import Problem, make_problem
from idgnn.tasks.query_set import QuerySet
from idgnn.tasks.task_settings import TaskSettings
from idgnn.training.batches import Batches, GraphBatch
from idgnn.training.processes import choose_device, is_out_of_memory
from idgnn.training.root_batches import RootSource
from idgnn.training.run_settings import RunSettings, TrainOptions
from idgnn.training.seeds import generator_of

EPOCH_SECONDS = 6.0  # that an epoch may take before something cheaper is chosen: 100 of them take 10 minutes
_STEPS = 16  # in an epoch on a single graph, about
_SMALLEST, _LARGEST = 64, 512  # queries in a batch: fewer are few for BatchNorm, more leave few steps
_COUNTED = 64  # queries whose messages are counted; a step is timed on a whole batch of up to 512
_TIMED_GRAPHS = 32  # in the batch of graphs that a step is timed on
_FORWARD = 0.5  # what a batch costs without gradients, as a share of a step
_STATISTICS = 32  # batches that BatchNorm's statistics are averaged over before each evaluation
# A network for pairs needs two rounds to see common neighbors, one for nodes three to see triangles.
_DEPTHS = {"pair": (5, 4, 3, 2), "node": (3,), "graph": (3,)}


@dataclass(frozen=True)
class ChosenSettings:
    """A network and its training, with the reasons for what was chosen."""

    model: ModelSettings
    training: TrainOptions
    reasons: tuple[str, ...]
    """A sentence or two each."""
    seconds: float
    """That all epochs will take, an estimate from a timed step."""


def choose_settings(
    data: str | FileSource | Data | Sequence[Data],
    task: TaskName | TaskSettings,
    *,
    model: ModelSettings | None = None,
    training: TrainOptions | None = None,
    selection: Selection | None = None,
    seed: int = 0,
    fixed: Collection[str] = (),
    epoch_seconds: float = EPOCH_SECONDS,
) -> ChosenSettings:
    """Chooses `identity`, `layers` and `query_batch_size` for a task from the cost of a step on its graphs.

    A single graph is trained in batches of nodes or pairs, several in an epoch. The network is ID-GNN-Full, as deep as
    the time allows; if it takes too long on nodes or graphs, or if nodes have codes or vectors of their own,
    ID-GNN-Fast. What a depth costs is known from :func:`idgnn.identity_cost` and a step that is timed, so another
    machine may choose otherwise.

    Args:
        data: As for :func:`idgnn.train`.
        task: The task, by name or with all its settings.
        model: What differs from the defaults in it is kept.
        training: The same for the training.
        selection: Which graphs are used.
        seed: Determines the split and the queries that are timed.
        fixed: Names of options that are kept although they are at their defaults, such as `"identity"`.
        epoch_seconds: What an epoch may take.

    Example:
        >>> from idgnn.graphs.synthetic import scale_free
        >>> chosen = choose_settings(scale_free(1, num_nodes=300), "link-prediction")
        >>> chosen.training.query_batch_size
        64
        >>> run = idgnn.train(..., model=chosen.model, training=chosen.training)  # doctest: +SKIP
    """
    from idgnn.training.train import dataset_of

    task = task if isinstance(task, TaskSettings) else TaskSettings(name=task)
    model, training = model or ModelSettings(), training or TrainOptions()
    settings = RunSettings("python", task, model, training, selection or Selection(), seed)
    changed = {
        each.name
        for values, default in ((model, ModelSettings()), (training, TrainOptions()))
        for each in fields(values)
        if getattr(values, each.name) != getattr(default, each.name)
    }
    return choose_for(dataset_of(data, settings), settings, {*fixed, *changed}, epoch_seconds)


def choose_for(
    dataset: Dataset, settings: RunSettings, fixed: Collection[str] = (), epoch_seconds: float = EPOCH_SECONDS
) -> ChosenSettings:
    """:func:`choose_settings` for graphs that were read; what is not in `fixed` is chosen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # training warns of the same
        problem = make_problem(dataset, settings.task, settings.seed)
    size, why_size = settings.training.query_batch_size, None
    if size is None and "query_batch_size" not in fixed:
        size, why_size = _batch(problem.train.epoch(generator_of(settings.seed, "queries", 0)))
    cost = _Costs(problem, replace(settings, training=replace(settings.training, query_batch_size=size)))
    model, why_model = _network(cost, fixed, epoch_seconds * settings.training.epochs)
    if size is not None and why_size is not None:
        size, why_size = _fitting(cost, model, size, why_size)
    reasons = tuple(each for each in (why_model, why_size) if each)
    training = replace(settings.training, query_batch_size=size)
    return ChosenSettings(model, training, reasons, cost.seconds(model))


def _batch(part: QuerySet) -> tuple[int | None, str | None]:
    """The queries in a batch, if there is a single graph; a power of two."""
    number, what = _num_queries(part), "pairs" if part.level == "pair" else "nodes"
    if part.num_graphs > 1 or part.level == "graph" or number <= _SMALLEST:
        return None, None
    size = min(max(2 ** round(torch.tensor(number / _STEPS).log2().item()), _SMALLEST), _LARGEST)
    steps = -(-number // size)
    return size, f"{size} {what} in a batch, {steps} steps an epoch: all {number:,} in one batch would be one step."


def _fitting(cost: _Costs, model: ModelSettings, size: int, why: str) -> tuple[int, str]:
    """Smaller batches if their rows would take more than half of the memory that is free."""
    each = cost.bytes_per_query(model)
    room = free_memory(cost.device) / 2
    fits = size
    while fits > 1 and each * fits > room:
        fits //= 2
    return (size, why) if fits == size else (fits, f"{fits} queries in a batch: more would not fit into memory.")


def _network(cost: _Costs, fixed: Collection[str], seconds: float) -> tuple[ModelSettings, str | None]:
    """The deepest network that is expected to train in time."""
    given, level = cost.settings.model, cost.part.level
    fixed = {*fixed, "identity"} if given.colors == 2 else fixed  # the other versions have no colors
    depths = (given.num_layers(level),) if "layers" in fixed else _DEPTHS[level]
    if "identity" in fixed:
        depths = depths if given.identity == "full" else depths[:1]
    identity: Identity = given.identity if "identity" in fixed else "full"
    networks = [replace(given, identity=identity, layers=depth) for depth in depths]
    if "identity" not in fixed and level != "pair":
        networks.append(replace(given, identity="fast", layers=depths[0]))
    if {"identity", "layers"} <= set(fixed):
        return networks[0], None
    if _have_codes(cost) and "identity" not in fixed and level == "node":
        networks = networks[-1:]
    chosen = next((each for each in networks[:-1] if cost.seconds(each, seconds) <= seconds), networks[-1])
    why = _why(cost, networks, chosen)
    return chosen, why + _compare_with_plain(cost, chosen) if "identity" not in fixed and _have_codes(cost) else why


def _have_codes(cost: _Costs) -> bool:
    """Whether each node has weights of its own. Then a color was measured to harm: `python -m benchmarks.defaults`."""
    return cost.problem.features.kind in ("onehot", "embedding")


def _compare_with_plain(cost: _Costs, chosen: ModelSettings) -> str:
    return (
        f" Nodes are told apart by --features {cost.problem.features.kind} already, so a color may add nothing: "
        f"compare with --identity none --layers {chosen.num_layers(cost.part.level)}."
    )


def _why(cost: _Costs, networks: list[ModelSettings], chosen: ModelSettings) -> str:
    number, depth = cost.settings.training.epochs, chosen.num_layers(cost.part.level)
    epochs = "1 epoch takes" if number == 1 else f"{number} epochs take"
    layers = f"{depth} layer{'s' * (depth != 1)}"
    what = f"identity {chosen.identity}, {layers}: {epochs} about {_time(cost.seconds(chosen))}"
    first = networks[0]
    if chosen == first:
        return f"{what}."
    times = max(cost.messages(first) / max(cost.messages(chosen), 1), 1.0)
    other = f"{first.layers} layers" if first.identity == chosen.identity else f"identity {first.identity}"
    return f"{what}; {other} would take about {_time(cost.seconds(first))} ({times:.1f} times as many messages)."


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


class _Costs:
    """What training costs: messages by `identity_cost` on a sample, seconds by a step on it."""

    def __init__(self, problem: Problem, settings: RunSettings) -> None:
        self.problem, self.settings = problem, settings
        self.device = choose_device(settings.training.device)
        generator = generator_of(settings.seed, "queries", 0)
        self.part = problem.train.epoch(generator)
        self.num_queries = _num_queries(self.part)
        self.sample, self.share = self._sampled(generator)
        self._graph = IndexedGraph(self.sample.edge_index, self.sample.x.size(0))
        self._costs = dict[int, tuple[float, float]]()
        self._timed = dict[tuple[bool, int], float]()

    def messages(self, model: ModelSettings) -> float:
        """Of the timed batch, in all rounds together: those of plain rows, and those of the rows of each query."""
        depth, edges = model.num_layers(self.part.level), float(self._graph.into.edge.numel())
        if model.identity == "full":
            edges += self._per_query(model)[1] * _num_queries(self.sample)
        return edges * depth

    def bytes_per_query(self, model: ModelSettings) -> float:
        """About what a query takes while a network runs, beside the plain rows."""
        rows, edges = self._per_query(model)
        return WORKING * (rows * ROW_BYTES + edges * EDGE_BYTES) if model.identity == "full" else 0.0

    def _per_query(self, model: ModelSettings) -> tuple[float, float]:
        """Rows of a query, and the messages into them, on average over some."""
        depth = model.num_layers(self.part.level)
        if depth not in self._costs:
            sample, graph = self.sample.queries, self._graph
            if sample is None or self.part.level == "graph":
                sample = torch.arange(self.sample.x.size(0))
            sample = sample[..., :: max(sample.size(-1) // _COUNTED, 1)]
            if model.colors == 2:
                second = SecondNodes(model.second, model.radius, model.with_self)
                queries = second.read(graph, sample).queries
            else:
                queries = as_queries(sample, graph.num_nodes, sample.device)
            cost, number = cost_on(graph, Data(num_nodes=graph.num_nodes), depth, queries), max(sample.size(-1), 1)
            rows, edges = cost.rows - graph.num_nodes, cost.edges - graph.into.edge.numel()
            self._costs[depth] = rows / number, edges / number
        return self._costs[depth]

    def seconds(self, model: ModelSettings, limit: float | None = None) -> float:
        """Of all epochs. Networks that would pass the limit by far are not timed: their messages say so."""
        training = self.settings.training
        key = (model.identity == "full", model.num_layers(self.part.level))
        if key not in self._timed:
            cheapest = replace(model, layers=2) if self.part.level == "pair" else model
            if cheapest != model and (limit is None or self._predicted(cheapest, model) > 2 * limit):
                return self._predicted(cheapest, model)
            self._timed[key] = self._step(model)
        statistics = _FORWARD * min(_STATISTICS / self.share, 1) * training.reestimate_batchnorm
        held_out = sum(_num_queries(part) for part in self.problem.held_out.values()) / max(self.num_queries, 1)
        evaluation = (statistics + _FORWARD * held_out) / training.eval_every
        return self._timed[key] * self.share * (1 + evaluation) * training.epochs

    def _predicted(self, timed: ModelSettings, model: ModelSettings) -> float:
        return self.seconds(timed) * self.messages(model) / max(self.messages(timed), 1)

    def _step(self, model: ModelSettings) -> float:
        """Of one step on the sample, its preparation included; the fastest of three."""
        # The counts of ID-GNN-Fast are made once, and idgnn counts says how long they take.
        network = self._predictor(replace(model, identity="none") if model.identity == "fast" else model)
        network.train()
        batches = self._batches(network)
        found = []
        try:
            while len(found) < 3 and sum(found) < 2.0:
                start = time.perf_counter()
                batch = batches()
                assert batch.target is not None
                out = network(batch.ready, batch.graph, batch.num_graphs)
                loss = self.problem.objective.loss(out, batch.target)
                loss.backward()
                loss.item()  # waits for a GPU
                found.append(time.perf_counter() - start)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            return float("inf")
        return min(found)

    def _predictor(self, model: ModelSettings) -> Predictor:
        problem, outputs = self.problem, self.problem.objective.num_outputs
        with torch.random.fork_rng(devices=[]):
            made = make_predictor(
                model,
                problem.level,
                problem.in_channels,
                outputs,
                problem.edge_dim,
                problem.symmetric,
                problem.features.num_embeddings,
            )
        return made.to(self.device)

    def _batches(self, network: Predictor) -> Callable[[], GraphBatch]:
        """What makes the batch of the sample, as training does."""
        if self.part.level != "graph" and self.part.num_graphs == 1:
            batches = RootSource(network, 0, self.device).batches(self.sample)
            every = torch.arange(batches.num_items)
            return lambda: next(iter(batches.each([every])))
        part = self.sample.to(self.device)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnreachedColorWarning)
            made = Batches(part, network)
        return lambda: made.cut(torch.arange(part.num_graphs))

    def _sampled(self, generator: torch.Generator) -> tuple[QuerySet, float]:
        """Some queries of a single graph or some of many graphs, and how many times as much an epoch is."""
        part = self.part
        if part.level != "graph" and part.num_graphs == 1:
            size = min(self.settings.training.query_batch_size or _LARGEST, _LARGEST)
            some = torch.randperm(self.num_queries, generator=generator)[:size]
            queries = torch.arange(part.x.size(0)) if part.queries is None else part.queries
            assert part.target is not None
            return replace(part, queries=queries[..., some], target=part.target[some]), self.num_queries / some.numel()
        some = torch.randperm(part.num_graphs, generator=generator)[
            : min(self.settings.training.batch_size, _TIMED_GRAPHS)
        ]
        return part.subset(some), part.num_graphs / some.numel()


def _num_queries(part: QuerySet) -> int:
    if part.level == "graph" or part.queries is None:
        return part.x.size(0)
    return part.queries.size(-1)
