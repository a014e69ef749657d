"""Answers of networks and counts, against brute force."""

from __future__ import annotations

import random
import warnings
from pathlib import Path

import numpy as np
import torch

from benchmarks.fuzz_cases.draws import draw_graph, draw_model
from benchmarks.fuzz_cases.outcomes import WrongError
from idgnn import cycle_counts, walk_counts
from tests.laws import brute_force


def answers(rng: random.Random, folder: Path) -> str:
    """A network on a graph: its answers, those in little memory, and those of one colored copy for each query."""
    data, model = draw_graph(rng), draw_model(rng)
    size = int(data.num_nodes or 0)
    pairs = torch.randint(size, (2, rng.randint(1, 6)), generator=torch.Generator().manual_seed(rng.randrange(99)))
    queries = rng.choice((None, pairs[0], pairs))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # colors that reach no query
        found = model(data.x, data.edge_index, queries=queries)
        embedded = model.embed(data, queries, memory=rng.choice((None, 2**20)))
    _check_same(embedded, found, "embed")
    if model.identity == "full":
        nodes = list(range(size)) if queries is None else (queries if queries.dim() == 1 else queries[0]).tolist()
        colors = nodes if queries is None or queries.dim() == 1 else queries[1].tolist()
        with torch.no_grad():
            expected = brute_force.embeddings(model, data.x, data.edge_index, list(zip(nodes, colors, strict=True)))
        _check_same(found, expected, "brute force")
    return f"{model.identity} {model.config.conv}"


def _check_same(found: torch.Tensor, expected: torch.Tensor, what: str) -> None:
    scale = float(expected.abs().max().clamp(min=1)) if expected.numel() else 1.0
    if found.shape != expected.shape or not torch.allclose(found, expected, atol=1e-9 * scale, rtol=1e-9):
        raise WrongError(f"{what} differs by {float((found - expected).abs().max()):.3g}")


def counts(rng: random.Random, folder: Path) -> str:
    """Closed walks and walks of pairs against powers of a matrix of Python's integers."""
    data, length = draw_graph(rng, 10), rng.randint(1, 9)
    size = int(data.num_nodes or 0)
    matrix = np.zeros((size, size), dtype=object)
    for a, b in data.edge_index.t().tolist():
        matrix[a, b] += 1
    pairs = torch.randint(size, (2, 5), generator=torch.Generator().manual_seed(rng.randrange(99)))
    closed, walks, power = [], [], np.eye(size, dtype=object)
    for _ in range(length):
        power = power @ matrix
        closed.append([power[v, v] for v in range(size)])
        walks.append([power[a, b] for a, b in pairs.t().tolist()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # counts beyond 2^53
        ours = cycle_counts(data.edge_index, size, length), walk_counts(data.edge_index, size, pairs, length)
    for found, expected in zip(ours, (closed, walks), strict=True):
        wanted = torch.tensor(np.array(expected, dtype=np.float64).T.copy())
        if not torch.allclose(found, wanted, rtol=1e-12, atol=0):
            raise WrongError("counts are not those of the powers of the matrix")
    return "counted"
