"""A step on a padded batch is the step on the batch: outputs, gradients, running statistics."""

import copy
import os
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from idgnn.experiments.copy_sum import ExpressivePredictor
from idgnn.models.predictor import Predictor, make_predictor
from idgnn.models.settings import ModelSettings
from idgnn.tasks.query_set import QuerySet, stack
from idgnn.training.batches import Batches, GraphBatch
from idgnn.training.cuda_graphs import CudaGraphCache
from idgnn.training.padded_batches import STEP, PaddedBatches, level_of, profile_of, room_at

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=on_a_gpu)]
# Directed, with a hub, with self-loops and repeated edges, one node, no edges, in two parts, complete.
EDGES = {
    "path": (4, [(0, 1), (1, 2), (2, 3)]),
    "hub": (9, [(0, i) for i in range(1, 9)] + [(i, 0) for i in range(1, 9)]),
    "loops": (3, [(0, 0), (0, 1), (0, 1), (1, 0), (2, 2), (2, 2)]),
    "one node": (1, []),
    "no edges": (3, []),
    "two parts": (6, [(0, 1), (1, 0), (1, 2), (2, 1), (4, 5), (5, 4)]),
    "complete": (5, [(i, j) for i in range(5) for j in range(5) if i != j]),
}
BATCHES = [[0, 1, 2, 3, 4, 5, 6], [6, 1, 4], [5, 0, 2], [1, 6]]


def part_of(asked: str, dtype: torch.dtype, device: str) -> QuerySet:
    generator, graphs, queries = torch.Generator().manual_seed(0), [], None
    for size, edges in EDGES.values():
        edge_index = torch.tensor(edges, dtype=torch.long).view(-1, 2).t()
        graphs.append(Data(x=torch.randn(size, 2, generator=generator), edge_index=edge_index))
        graphs[-1].edge_attr = torch.randn(len(edges), 3, generator=generator)
        graphs[-1].edge_weight = torch.rand(len(edges), generator=generator) + 0.5
    sizes = [1 if asked == "graph" else data.num_nodes for data in graphs]
    if asked in ("some nodes", "pair"):
        shape = (4,) if asked == "some nodes" else (2, 5)
        queries = [torch.randint(data.num_nodes, shape, generator=generator) for data in graphs]
        queries[5] = queries[5][..., :0]
        sizes = [each.size(-1) for each in queries]
    part = stack("node" if asked == "some nodes" else asked, graphs, queries, [torch.rand(size) for size in sizes])
    values = {name: getattr(part, name).to(dtype) for name in ("x", "edge_attr", "edge_weight", "target")}
    return replace(part, **values).to(device)


def network(part: QuerySet, conv: str, identity: str, **options) -> Predictor:
    torch.manual_seed(0)
    settings = ModelSettings(
        conv=conv, identity=identity, width=8, layers=3, heads=2 if conv == "gat" else 1, **options
    )
    model = make_predictor(settings, part.level, 2, 3, 3, symmetric=part.level == "pair")
    return model.to(part.x.device, part.x.dtype).train()


def prepares(model: nn.Module) -> nn.Module:
    """What prepares batches for a network."""
    return model if isinstance(model, Predictor) else model.encoder


def padding_of(batches: Batches, batch_size: int) -> PaddedBatches:
    assert batches.whole is not None
    return PaddedBatches(batches.whole, batches.target, batch_size, batches.part.level == "graph")


def result(model: Predictor, batch: GraphBatch) -> dict[str, torch.Tensor]:
    """Outputs, gradients of a weighted sum of them, and all buffers after the step."""
    out = model(batch.ready, batch.graph, batch.num_graphs)
    real = torch.ones(out.size(0), dtype=torch.bool, device=out.device) if batch.real is None else batch.real
    # The n-th real answer has the n-th weight, in whichever row it is.
    weights = (1 + torch.cumsum(real, 0) * 0.37).sin().to(out) * real
    model.zero_grad()
    (out.sin() * weights.unsqueeze(-1)).sum().backward()
    gradients = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
    return {"out": out, "real": real, **gradients}


def values_of(found: dict[str, torch.Tensor], model: Predictor) -> dict[str, torch.Tensor]:
    """All that a step gives, of real answers alone, in float64."""
    values = {name: value for name, value in found.items() if name != "real"} | dict(model.named_buffers())
    values["out"] = values["out"][found["real"]]
    return {name: value.detach().double() for name, value in values.items()}


def assert_same(ours: dict, theirs: dict, exact: dict, tolerance: float) -> None:
    """Equal up to the tolerance. Where rounding changes the step without padding by more than that (BatchNorm over a
    few rows, maxima of almost equal messages), padding may change it by some times as much."""
    assert ours.keys() == theirs.keys(), "other weights have gradients"

    def away(one: dict, other: dict) -> dict[str, float]:
        scale = {name: max(1.0, float(value.abs().max())) for name, value in exact.items()}
        return {name: float((one[name] - other[name]).abs().max()) / scale[name] for name in ours}

    rounding = max(away(theirs, exact).values())  # by chance that of one tensor may be small
    for name, difference in away(ours, theirs).items():
        assert difference <= max(tolerance, 50 * rounding), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("asked", "dtype", "tolerance"),
    [
        *((asked, torch.float64, 1e-12) for asked in ("node", "some nodes", "pair", "graph")),
        *((asked, torch.float32, 1e-6) for asked in ("node", "pair")),
    ],
)
@pytest.mark.parametrize("identity", ["none", "fast", "full"])
@pytest.mark.parametrize("conv", ["gcn", "sage", "gat", "gin", "gine"])
def test_padding_changes_nothing(conv, identity, asked, dtype, tolerance, device):
    check_padding(asked, dtype, tolerance, device, conv, identity)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("asked", ["node", "pair", "graph"])
@pytest.mark.parametrize(
    ("conv", "pool"), [("gcn", "sum"), ("sage", "mean"), ("gat", "max"), ("gin", "sum"), ("gine", "sum")]
)
def test_padding_changes_nothing_with_two_colors(conv, pool, asked, device):
    check_padding(asked, torch.float64, 1e-12, device, conv, "full", colors=2, pool=pool, with_self=pool == "mean")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("asked", ["node", "graph"])
@pytest.mark.parametrize(
    ("identity", "colors", "copy"),
    [("none", 1, False), ("fast", 1, False), ("full", 1, False), ("full", 2, False), ("full", 1, True)],
)
def test_padding_changes_nothing_in_networks_of_the_expressiveness_table(identity, colors, copy, asked, device):
    def expressive(part: QuerySet, conv: str, identity: str, **options) -> ExpressivePredictor:
        encoder = network(part, conv, identity, **options).settings["encoder"]
        return ExpressivePredictor(part.level, 3, encoder, copy).to(part.x.device, part.x.dtype).train()

    options = {"colors": colors, "residual": colors == 2, "act": "silu" if colors == 2 else "relu"}
    check_padding(asked, torch.float64, 1e-12, device, "gin", identity, make=expressive, **options)


def check_padding(
    asked: str,
    dtype: torch.dtype,
    tolerance: float,
    device: str,
    conv: str,
    identity: str,
    make: Callable[..., nn.Module] = network,
    **options,
):
    part = part_of(asked, dtype, device)
    start = make(part, conv, identity, **options)
    batches = Batches(part, prepares(start))
    padded, cache = padding_of(batches, len(EDGES)), None if device == "cpu" else CudaGraphCache()
    padded_at, recorded = 0, {}
    model = copy.deepcopy(start)
    exact_start = copy.deepcopy(start).double()
    exact_batches = (
        batches if dtype == torch.float64 else Batches(part_of(asked, torch.float64, device), prepares(exact_start))
    )
    for ids in BATCHES if dtype == torch.float64 else BATCHES[:2]:
        graphs = torch.tensor(ids)
        size = padded.size(graphs)
        assert size is not None
        padded.prepare(size)
        padded.load(graphs)
        expected, exact = copy.deepcopy(start), copy.deepcopy(exact_start)
        theirs = result(expected, batches.cut(graphs))
        rounded = values_of(result(exact, exact_batches.cut(graphs)), exact)
        if cache is None:
            model = copy.deepcopy(start)
            ours = result(model, padded.cut(size))
        else:
            found = recorded.setdefault(size, {})  # a replay writes over what the recording gave

            def step(given, found=found, size=size, model=model):
                found.update(result(model, given.cut(size)))
                return found["out"]

            for _ in range(2):  # the first time warms up, the second records and replays
                with torch.no_grad():
                    for value, first in zip(model.buffers(), start.buffers(), strict=True):
                        value.copy_(first)
                cache.run(size, lambda: padded, step, kind=size)
            ours = found
        assert_same(values_of(ours, model), values_of(theirs, expected), rounded, tolerance)
        padded_at += ours["real"].numel() > theirs["real"].numel()
    assert padded_at, "nothing was padded"


@pytest.mark.parametrize("conv", ["gcn", "sage"])
def test_kernels_cut_what_index_arithmetic_does(conv):
    pytest.importorskip("triton", reason="Triton comes with PyTorch for CUDA")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("no GPU; set TRITON_INTERPRET=1 to run the kernels on the CPU")
    from idgnn.layers.aggregation import kernels

    part = part_of("pair", torch.float64, device)
    padded = padding_of(Batches(part, network(part, conv, "full")), 7)
    for ids in BATCHES:
        padded.load(torch.tensor(ids))
        size = padded.size(torch.tensor(ids))
        assert size is not None
        cutter, found = padded._cutter(size), []
        for cutter.kernels in (None, kernels):
            cut = cutter.cut(padded.graphs)
            found.append([torch.cat(each, -1) for each in (cut._index, cut._run, cut._real, cut._found)])
            found[-1] += [torch.cat(cut._pointers)]
        (*plain, fields, ptr), (*ours, our_fields, our_ptr) = found
        assert all(torch.equal(*both) for both in zip(plain, ours, strict=True)) and torch.equal(ptr, our_ptr)
        assert torch.equal(fields[:, plain[2]], our_fields[:, plain[2]]), "of padding any place is right"


def test_indices_of_padding_lie_within_the_batch():
    """What points out of a batch would be an error that a GPU does not report."""
    part = part_of("pair", torch.float64, "cpu")
    for conv in ("gcn", "gat", "gin"):
        padded = padding_of(Batches(part, network(part, conv, "full")), 7)
        for ids in BATCHES:
            padded.load(torch.tensor(ids))
            size = padded.size(torch.tensor(ids))
            assert size is not None
            ready = padded.cut(size).ready
            for round_ in ready.plan.rounds:
                lists = [(round_.plain, 0, round_.split), (round_.colored, round_.split, round_.num_sources)]
                assert in_range(round_.previous, round_.num_sources)
                if round_.exchange is not None:
                    exchange = round_.exchange
                    lists.append((exchange.changes, exchange.num_plain, round_.split))
                    lists[0] = (round_.plain, 0, exchange.num_plain)
                    assert in_range(exchange.twin, exchange.num_plain) and in_range(
                        exchange.arrived, round_.num_targets
                    )
                    assert in_range(exchange.base, exchange.node.numel())
                    assert in_range(exchange.base_row, exchange.num_plain)
                for messages, first, last in lists:
                    assert in_range(messages.source, last - first)
                    assert in_range(messages.back.neighbor, messages.ptr.numel() - 1)
                    assert in_range(messages.back.edge, messages.source.numel())
                    assert messages.ptr[-1] == messages.back.ptr[-1] <= messages.source.numel()
                    assert (messages.ptr.diff() >= 0).all() and (messages.back.ptr.diff() >= 0).all()
            assert in_range(ready.plan.answer, ready.plan.rounds[-1].num_targets)


def in_range(index: torch.Tensor, size: int) -> bool:
    return not index.numel() or (int(index.min()) >= 0 and int(index.max()) < size)


def test_sizes_are_few_and_hold_all_batches():
    sizes = torch.randint(10, 50, (600, 5), generator=torch.Generator().manual_seed(0))
    sizes[:, 3], sizes[:, 4] = 0, (torch.arange(600) % 97 == 0).long()
    profile, levels = profile_of(sizes, 64), set()
    assert profile[3] == 0
    for seed in range(200):
        chosen = torch.randperm(600, generator=torch.Generator().manual_seed(seed))[:64]
        batch = sizes[chosen].sum(0)
        level = level_of(batch.tolist(), profile.tolist())
        assert level is not None
        levels.add(level)
        room = room_at(level, profile)
        assert (room[profile > 0] > batch[profile > 0]).all() and room[3] == 0
        assert (room_at(level - 1, profile) <= batch + 8).any(), "a lower level would do"
    assert level_of([1, 1, 1, 1, 0], profile.tolist()) is None, "there was never anything in the fourth"
    assert len(levels) <= 6
    assert STEP**6 < 1.35


def test_queries_of_another_epoch_are_written_over_those_before():
    part, other = part_of("pair", torch.float64, "cpu"), part_of("pair", torch.float64, "cpu")
    other = replace(other, queries=other.queries.flip(0), target=other.target + 1)
    model = network(part, "gcn", "full")
    first = Batches(part, model, spare=0.5)
    padded = padding_of(first, 7)
    graphs = torch.tensor([6, 1, 2])
    size = padded.size(graphs)
    second = Batches(other, model, first, spare=0.5)
    assert second.whole is not None and second.whole.follows and padded.follow(second.whole)
    padded.load(graphs)
    ours, theirs = padded.cut(size), Batches(other, model).cut(graphs)
    assert torch.equal(ours.target[ours.real], theirs.target)
    out, expected = (model.eval()(each.ready, each.graph, each.num_graphs) for each in (ours, theirs))
    assert torch.allclose(out[ours.real], expected, atol=1e-12)
    narrow = Batches(replace(part, queries=part.queries.repeat_interleave(4, 1), target=None), model, second)
    assert not narrow.whole.follows and not padded.follow(narrow.whole)
