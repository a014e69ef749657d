"""The loss of a ranking, and its best candidates."""

import pytest
import torch

from idgnn.models.hetero.ranking import best_candidates, ranking_loss


def test_ranking():
    score, root = torch.tensor([0.1, 0.7, 0.2, 0.2, 0.9]), torch.tensor([5, 5, 8, 8, 2])
    candidate, positive = torch.tensor([0, 1, 4, 3, 7]), torch.tensor([False, True, True, True, True])
    roots, found = best_candidates(score, root, candidate, 3)
    assert roots.tolist() == [2, 5, 8]
    assert found.tolist() == [[7, -1, -1], [1, 0, -1], [3, 4, -1]]
    expected = [torch.softmax(score[:2], 0)[1].log(), torch.tensor(0.5).log(), torch.tensor(0.5).log(), torch.zeros(())]
    torch.testing.assert_close(ranking_loss(score, root, positive), -torch.stack(expected).mean())
    with pytest.raises(ValueError, match="no pair is positive"):
        ranking_loss(score, root, torch.zeros(5, dtype=torch.bool))
