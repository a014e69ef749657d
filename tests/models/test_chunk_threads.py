"""Chunks of `embed` in several threads: in order, within the memory, and with the same result."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch_geometric.data import Data

from idgnn import IDGNN
from idgnn.choices import ConvName
from idgnn.models import embedding_memory
from idgnn.models.chunk_threads import in_threads


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Every test leaves PyTorch the threads that it had."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("num_threads", "inside_each"), [(1, 2), (3, 1), (60, 2)])
def test_results_come_in_order_and_pytorch_has_one_thread_beside_others(num_threads: int, inside_each: int) -> None:
    torch.set_num_threads(2)
    inside = set()

    def work(n: int) -> int:
        inside.add((torch.get_num_threads(), torch.is_grad_enabled()))
        return n * n

    found = list(in_threads(work, [(n, 1.0) for n in range(50)], room=10.0, num_threads=num_threads))
    assert found == [(n, n * n) for n in range(50)]
    assert inside == {(inside_each, False)}  # 60 threads for 50 items: one after the other
    assert torch.get_num_threads() == 2 and torch.is_grad_enabled()


def test_what_is_worked_on_fits_into_the_room_or_is_alone() -> None:
    lock, running, most = threading.Lock(), [0.0], [0.0]
    costs = [4.0, 4.0, 4.0, 20.0, 1.0, 1.0, 9.0, 3.0] * 5

    def work(place: int) -> None:
        with lock:
            running[0] += costs[place]
            alone = running[0] == costs[place]
            most[0] = max(most[0], 0.0 if alone else running[0])
        threading.Event().wait(0.002)
        with lock:
            running[0] -= costs[place]

    list(in_threads(work, list(enumerate(costs)), room=10.0, num_threads=4))
    assert 0 < most[0] <= 10


def test_an_error_ends_all_threads_and_is_raised() -> None:
    before, threads = torch.get_num_threads(), threading.active_count()

    def work(n: int) -> int:
        if n == 3:
            raise ValueError("the third")
        return n

    with pytest.raises(ValueError, match="the third"):
        list(in_threads(work, [(n, 0.0) for n in range(100)], room=1.0, num_threads=2))
    assert torch.get_num_threads() == before and threading.active_count() == threads


@pytest.mark.parametrize("conv", ["gin", "gat"])
def test_embeddings_do_not_depend_on_the_number_of_threads(conv: ConvName, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    edge_index = torch.randint(300, (2, 3000))
    edge_index = torch.cat(
        [edge_index, edge_index.flip(0), torch.stack([torch.arange(300), torch.zeros(300).long()])], 1
    )
    data, model = Data(x=torch.randn(300, 3), edge_index=edge_index), IDGNN(3, 8, 4, conv=conv)
    monkeypatch.setattr(embedding_memory, "CPU_CHUNK", 2**20)  # many chunks
    monkeypatch.setattr(embedding_memory, "_CPU_CHUNK_OF_SUMS", 2**18)
    torch.set_num_threads(3)
    found = model.embed(data)
    monkeypatch.setattr(embedding_memory, "_MOST_THREADS", 1)
    torch.testing.assert_close(found, model.embed(data), rtol=0, atol=1e-6)
    model.double()
    data = Data(x=torch.randn(300, 3, dtype=torch.double), edge_index=edge_index)
    torch.testing.assert_close(model.embed(data), model.eval()(data.x, data.edge_index), rtol=0, atol=1e-10)
