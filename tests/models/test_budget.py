"""Equal numbers of parameters."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

from idgnn import IDGNN, match_budget
from idgnn.models.budget import num_parameters
from tests.models.small_graphs import CONVS, IDENTITIES


@pytest.mark.parametrize("identity", IDENTITIES)
@pytest.mark.parametrize("conv", CONVS)
@pytest.mark.parametrize("num_layers", [3, 5])
def test_every_version_matches_a_gcn_of_width_256_within_one_percent(num_layers, conv, identity):
    gcn = IDGNN(1, 256, 10, num_layers, conv="gcn", identity="none")
    edge_dim = 3 if conv == "gine" else None

    def build(width: int) -> IDGNN:
        return IDGNN(1, width, 10, num_layers, conv, identity, edge_dim=edge_dim)

    width = match_budget(build, gcn)
    asked, found = num_parameters(gcn), num_parameters(build(width))
    assert abs(found - asked) <= 0.01 * asked
    # No neighboring width comes closer.
    for other in (width - 1, width + 1):
        assert abs(num_parameters(build(other)) - asked) >= abs(found - asked)


def test_a_gcn_matches_itself():
    assert match_budget(lambda width: IDGNN(1, width, 10, identity="none"), IDGNN(1, 256, 10, identity="none")) == 256


@pytest.mark.parametrize("identity", IDENTITIES)
def test_layers_of_the_users_own_match_too(identity):
    width = match_budget(lambda width: IDGNN(1, width, 10, conv=GCNConv, identity=identity), 200_000)
    found = num_parameters(IDGNN(1, width, 10, conv=GCNConv, identity=identity))
    assert abs(found - 200_000) <= 2_000


def test_nothing_is_allocated_and_no_random_number_is_used():
    state = torch.get_rng_state()
    assert match_budget(lambda width: nn.Linear(width, width, bias=False), 10**12) == 10**6
    assert torch.equal(torch.get_rng_state(), state)


def test_frozen_parameters_do_not_count():
    layer = nn.Linear(3, 4)
    layer.bias.requires_grad_(False)
    assert num_parameters(layer) == 12


def test_a_budget_that_no_width_meets_is_refused():
    says = r"no width gives 150 parameters to within 1%: width 1 has 100 and width 2 has 200.* a larger tolerance"
    with pytest.raises(ValueError, match=says):
        match_budget(lambda width: nn.Linear(100, width, bias=False), 150)
    assert match_budget(lambda width: nn.Linear(100, width, bias=False), 150, tolerance=0.4) in (1, 2)


@pytest.mark.parametrize("asked", [0, -5, 1])
def test_a_budget_below_the_smallest_network_is_refused(asked):
    with pytest.raises(ValueError, match=rf"no width gives {asked} parameters"):
        match_budget(lambda width: IDGNN(1, width, 10), asked)


def test_a_network_that_does_not_grow_is_refused():
    """Doubling the width for ever would hang."""
    calls = []

    def build(width: int) -> nn.Module:
        calls.append(width)
        assert len(calls) < 1000, "the search does not end"
        return nn.Linear(3, 3)

    with pytest.raises(ValueError, match="grow"):
        match_budget(build, 1000)
