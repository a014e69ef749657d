"""What every test relies on: the same numbers on every run, and where the benchmark datasets are."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest
import torch

# The processes of `make test` share the cores, and one thread adds in one order.
torch.set_num_threads(1)

# A shell that starts the tests in the background makes them ignore Ctrl-C, and the processes that they start with them.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class TorchRandom:
    """PyTorch's global generator in the shape that hypothesis reseeds before each example and restores after it."""

    seed = staticmethod(torch.manual_seed)
    getstate = staticmethod(torch.get_rng_state)
    setstate = staticmethod(torch.set_rng_state)


TORCH_RANDOM = TorchRandom()  # hypothesis keeps a weak reference only
hypothesis.register_random(TORCH_RANDOM)

hypothesis.settings.register_profile(
    "idgnn",
    deadline=None,  # the first call of a PyTorch function takes many times longer than the next
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    derandomize="CI" in os.environ,
)
hypothesis.settings.load_profile("idgnn")


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the benchmark datasets, named by the environment variable IDGNN_DATA."""
    if "IDGNN_DATA" not in os.environ:
        pytest.skip("needs the benchmark datasets: set IDGNN_DATA to the folder that holds them")
    folder = Path(os.environ["IDGNN_DATA"])
    if not folder.is_dir():
        pytest.fail(f"IDGNN_DATA is {folder}, expected an existing folder")
    return folder
