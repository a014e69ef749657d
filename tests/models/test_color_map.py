"""Color maps know their width as soon as it can be known."""

from __future__ import annotations

import pytest
import torch
import torch_geometric.nn as pyg
from torch import nn
from torch.nn.functional import relu
from torch_geometric.nn import GCNConv, SAGEConv

from idgnn.models.wrapping.color_map import ColorMap, source_channels
from tests.models.wrapped import Mean

pytestmark = pytest.mark.usefixtures("double")


def test_widths_known_from_the_layer() -> None:
    known = {
        4: [GCNConv(4, 8), SAGEConv((4, 6), 8), pyg.CGConv((4, 6)), pyg.GINConv(nn.Linear(4, 8)), pyg.FAConv(4)],
        6: [pyg.GINEConv(nn.Sequential(nn.ReLU(), nn.Linear(6, 8))), pyg.EdgeConv(pyg.MLP([12, 8])), pyg.DNAConv(6)],
        10: [pyg.SignedConv(5, 8, first_aggr=False), pyg.SignedConv(10, 8, first_aggr=True)],
    }
    for width, layers in known.items():
        assert [source_channels(layer) for layer in layers] == [width] * len(layers)
    unknown = (GCNConv(-1, 8), pyg.LGConv(), Mean(4), pyg.PointNetConv(), pyg.GINConv(relu))
    assert [source_channels(layer) for layer in unknown] == [None] * len(unknown)


def test_a_color_map_says_what_it_was_given() -> None:
    color = ColorMap(4)
    with pytest.raises(ValueError, match="width 3"):
        color(torch.ones(2, 3))
    with pytest.raises(ValueError, match="int64"):
        color(torch.ones(2, 4, dtype=torch.long))
    assert repr(ColorMap(None)) == "ColorMap(None)"


def test_a_color_map_keeps_the_dtype_of_the_states_under_autocast() -> None:
    color = ColorMap(4).float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            assert color(torch.ones(2, 4, dtype=dtype)).dtype == dtype
