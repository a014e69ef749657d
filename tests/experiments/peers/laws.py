"""What holds for every peer: invariance, batches, copies."""

from dataclasses import replace

import torch
from torch_geometric.data import Data

from idgnn.experiments.peers.dense import DenseGraphs
from idgnn.experiments.peers.packed import PackedGraphs
from idgnn.experiments.peers.run import BUILDERS
from idgnn.experiments.peers.settings import PeerName, PeerSettings

CLASSES = 2


def small(network: PeerName, **changed) -> PeerSettings:
    made = PeerSettings(network, "MUTAG-folds", 2, 4, 0.01, width=6)
    return replace(made, **changed)


def in_double(store):
    """The store with float64 numbers."""
    if isinstance(store, DenseGraphs):
        store.dtype = torch.float64
    else:
        assert isinstance(store, PackedGraphs)
        for values in store.values.values():
            values |= {name: each.double() for name, each in values.items() if each.is_floating_point()}
    return store


def make(settings: PeerSettings, graphs: list[Data], copies: int = 1, seed: int = 0):
    """Network and store, in float64."""
    peer = BUILDERS[settings.network](settings, graphs, CLASSES)
    torch.manual_seed(seed)
    network = peer.network(copies).double()
    return network, in_double(peer.store("cpu"))


@torch.no_grad()
def answers(settings: PeerSettings, graphs: list[Data], seed: int = 0) -> torch.Tensor:
    """`[graphs, classes]`, all in one batch, in evaluation mode."""
    network, store = make(settings, graphs, seed=seed)
    return network.eval()(store.batch(torch.arange(len(graphs)).unsqueeze(0)))[0]


def gradients(network, out: torch.Tensor) -> list[torch.Tensor]:
    network.zero_grad()
    (out * torch.linspace(1, 2, out.numel(), dtype=out.dtype).view_as(out)).sum().backward()
    return [weight.grad.clone() for weight in network.parameters()]


def check_batch_equals_each_alone(settings: PeerSettings, graphs: list[Data]) -> None:
    """Outputs and gradients of one padded batch, and of one graph at a time."""
    network, store = make(settings, graphs)
    network.eval()
    ids = torch.tensor([[*range(len(graphs)), -1]])
    together = network(store.batch(ids))[:, :-1]
    alone = torch.cat([network(store.batch(torch.tensor([[i]]))) for i in range(len(graphs))], dim=1)
    torch.testing.assert_close(together, alone)
    for one, other in zip(gradients(network, together), gradients(network, alone), strict=True):
        torch.testing.assert_close(one, other)


def check_copies_are_independent(settings: PeerSettings, graphs: list[Data]) -> None:
    """Two copies on different graphs, in training mode, are two networks with one copy each."""
    both, store = make(settings, graphs, copies=2)
    ids = torch.tensor([[0, 1, 2, 3, 4], [8, 7, 3, 6, -1]])
    both.train()
    out = both(store.batch(ids))
    for copy in range(2):
        one, _ = make(settings, graphs)
        state = {name: value[copy : copy + 1].clone() for name, value in both.state_dict().items()}
        fresh = one.state_dict()  # buffers as they were before the step
        buffers = {name for name, _ in one.named_buffers()}
        one.load_state_dict({name: fresh[name] if name in buffers else value for name, value in state.items()})
        real = ids[copy][ids[copy] >= 0]
        alone = one.train()(store.batch(real.unsqueeze(0)))[0]
        torch.testing.assert_close(out[copy, : len(real)], alone)
        for name, value in one.state_dict().items():
            torch.testing.assert_close(value, state[name])


def separates(settings: PeerSettings, pair: list[Data]) -> bool:
    """Whether some random weights give two graphs different answers."""
    found = [answers(settings, pair, seed) for seed in range(4)]
    return any(float((out[0] - out[1]).abs().max()) > 1e-8 * float(out.abs().max()) for out in found)
