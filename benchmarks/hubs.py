"""What a node with very many messages costs on a GPU: `python -m benchmarks.hubs`.

Five messages for each of 100,000 nodes, from anywhere to anywhere; besides 40,000 that go into one node, or come out
of it, and 3,000 into another (--nodes, --hubs). Three contenders for each aggregation: in pieces, as it is done where
there are hubs; a program for each node, as it is done where there are none; and message by message in plain PyTorch,
which also says what is right.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch
from torch import Tensor

from benchmarks.measure import Figure, show, take_turns
from idgnn.identity.schedule import Messages, group_messages
from idgnn.layers.aggregation.maxima import gather_max, gather_max_plain
from idgnn.layers.aggregation.sums import gather_sum, gather_sum_plain


def messages(num_nodes: int, hubs: list[int], device: str, into_hubs: bool) -> Messages:
    """From anywhere to anywhere, and besides so many into the hubs or out of them."""
    random = torch.Generator().manual_seed(0)
    hub = torch.repeat_interleave(torch.arange(len(hubs)), torch.tensor(hubs))
    end = torch.cat([torch.randint(num_nodes, (5 * num_nodes,), generator=random), hub])
    other = torch.randint(num_nodes, (end.numel(),), generator=random)
    source, target = (other, end) if into_hubs else (end, other)
    target, order = target.sort()
    source, target = source[order].to(device), target.to(device)
    return group_messages(source, target, torch.arange(source.numel(), device=device), num_nodes, num_nodes)


def figures(sent: Messages, channels: int, rounds: int) -> list[Figure]:
    """Milliseconds forward, and forward and backward."""
    device, num_nodes = sent.source.device, sent.ptr.numel() - 1
    x = torch.rand(num_nodes, channels, device=device, requires_grad=True)
    weight = torch.rand(sent.source.numel(), device=device, requires_grad=True)
    towards = torch.rand(num_nodes, channels, device=device)
    in_pieces, one_program = replace(sent, hubs=True), replace(sent, hubs=False)
    contenders: dict[str, Callable[[], Tensor]] = {
        "sum, in pieces": lambda: gather_sum(x, in_pieces, weight),
        "sum, a program each": lambda: gather_sum(x, one_program, weight),
        "sum, PyTorch": lambda: gather_sum_plain(x, sent, weight),
        "maximum, in pieces": lambda: gather_max(x, in_pieces),
        "maximum, a program each": lambda: gather_max(x, one_program),
        "maximum, PyTorch": lambda: gather_max_plain(x, sent),
    }
    torch.testing.assert_close(contenders["sum, in pieces"](), contenders["sum, PyTorch"](), rtol=1e-3, atol=1e-3)
    assert torch.equal(contenders["maximum, in pieces"](), contenders["maximum, PyTorch"]())

    def waited(call: Callable[[], object]) -> Callable[[], None]:
        def timed() -> None:
            call()
            if device.type == "cuda":
                torch.cuda.synchronize(device)

        return timed

    steps: dict[str, Callable[[], object]] = {name: waited(call) for name, call in contenders.items()}
    steps |= {
        f"{name}, and backward": waited(lambda call=call: call().backward(towards)) for name, call in contenders.items()
    }
    times = take_turns(steps, rounds, warm_up=2)
    return [Figure(f"{channels} channels: {name}", 1e3 * median(times[name]), "ms") for name in sorted(times)]


def main() -> None:
    """Measures and shows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--hubs", type=int, nargs="+", default=[40_000, 3_000], help="the messages of each")
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    for where, into_hubs in (("Messages into hubs", True), ("Messages out of hubs", False)):
        sent = messages(options.nodes, options.hubs, options.device, into_hubs)
        show([each for channels in (64, 256) for each in figures(sent, channels, options.rounds)], where)


if __name__ == "__main__":
    main()
