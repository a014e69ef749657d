"""Hubs in pieces: every message is in one piece, of its own target, and no piece is long."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from idgnn.layers.aggregation.dispatch import PIECE, pieces

DEGREES = st.one_of(st.integers(0, 3), st.sampled_from([PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 5 * PIECE + 7]))


@given(degrees=st.lists(DEGREES, max_size=8))
def test_every_message_is_in_one_piece_of_its_target(degrees):
    ptr = torch.tensor([0, *degrees]).cumsum(0)
    made = pieces(ptr, sum(degrees))
    assert made.ptr[0] == 0 and made.ptr[-1] == sum(degrees)
    assert made.ptr.diff().min() >= 0 if made.number.numel() else not degrees
    assert (made.ptr.diff() <= PIECE).all()
    for target, degree in enumerate(degrees):
        mine = slice(int(made.first[target]), int(made.first[target + 1]))
        assert (made.owner[mine] == target).all()
        assert (made.ptr.diff()[mine] > 0).all() and made.ptr.diff()[mine].sum() == degree
    assert (made.ptr.diff()[int(made.first[-1]) :] == 0).all()  # as many as there can be, not as there are
