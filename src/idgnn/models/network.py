"""The weights of an encoder, and what they compute on rows that are ready, without a look at any value."""

from __future__ import annotations

from typing import Any, cast, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as drop
from torch.nn.functional import normalize as l2_normalize
from torch_geometric.nn import BatchNorm

from idgnn.choices import (
    Activation,
    EdgeInput,
    Identity,
    Pool,
    TwoColorOptions,
    check_activation,
    check_flags,
    check_num_colors,
    check_pool,
)
from idgnn.identity.checks import check_num_layers, check_whole
from idgnn.identity.cycle_features import check_scale
from idgnn.identity.row_graph import RowGraph
from idgnn.identity.schedule import Messages, Schedule
from idgnn.identity.second_nodes import SecondNodes
from idgnn.layers.activation import MODULES, activate
from idgnn.layers.identity_conv import IdentityConv
from idgnn.layers.norm_act import norm_act
from idgnn.layers.operator import Operator
from idgnn.models.count_scale import CountScale
from idgnn.models.encoder_layers import make_layer
from idgnn.models.pooling import pool_states
from idgnn.models.prepared import Prepared, network_kind
from idgnn.models.saving import Saved
from idgnn.models.settings import EncoderConfig, check_dropout
from idgnn.models.wrapping.wrapped import Wrapped, takes


class Network(Saved):
    """The layers of an :class:`idgnn.IDGNN`, which run on what its `prepare` made ready.

    Nothing here depends on a value, so that it can be compiled and recorded as a CUDA graph.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        _check(config)
        self.config = config
        self.in_channels, self.out_channels = config.in_channels, config.out_channels
        self.num_layers, self.identity, self.colors = config.num_layers, config.identity, config.colors
        self.normalize, self.dropout, self.residual = config.normalize, config.dropout, config.residual
        self.act: Activation = config.act
        self.pool: Pool = config.pool
        second = SecondNodes(config.second, config.radius, config.with_self, config.directed)  # which checks them
        self.second_nodes = second if config.colors == 2 else None
        self.kind = network_kind(config.num_layers, _layer_name(config), config.identity, self.second_nodes)
        width, added = config.hidden_channels, config.cycle_length if config.identity == "fast" else 0
        standardized = config.cycle_scale == "standardized"
        self.count_scale = CountScale(config.cycle_length) if added and standardized else None
        self.lin_in = nn.Linear(config.in_channels + added, width)
        self.vectors = None if config.num_embeddings is None else nn.Embedding(config.num_embeddings, width)
        self.convs = nn.ModuleList(make_layer(config) for _ in range(config.num_layers))
        self.norms = nn.ModuleList(BatchNorm(width, allow_single_element=True) for _ in range(config.num_layers))
        self.before_pool = None
        if config.colors == 2:
            self.before_pool = nn.Sequential(nn.Linear(width, width), MODULES[self.act](), nn.Linear(width, width))
        self.lin_out = nn.Identity() if config.out_channels is None else nn.Linear(width, config.out_channels)

    @property
    def settings(self) -> dict[str, Any]:
        """The options by name, as they are saved."""
        return self.config.as_dict()

    @property
    def operator(self) -> Operator | None:
        """The operator of the first layer; `None` if the layers are not ours."""
        first = self.convs[0]
        return first.operator if isinstance(first, IdentityConv) else None

    @property
    def embedding_channels(self) -> int:
        """Width of what is returned for a node."""
        return self.config.hidden_channels if self.out_channels is None else self.out_channels

    @property
    def pair_channels(self) -> int:
        """Width of what is returned for a pair: one conditional embedding, or two node embeddings side by side."""
        return self.embedding_channels * (1 if self.identity == "full" else 2)

    def takes(self, name: EdgeInput) -> bool:
        """Whether the layers read edge features, or edge weights."""
        first, operator = self.convs[0], self.operator
        if operator is not None:
            return operator.takes_edge_attr if name == "edge_attr" else operator.takes_edge_weight
        return first.takes(name) if isinstance(first, Wrapped) else takes(first, name)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        return self.lin_in.weight.dtype

    def run(self, ready: Prepared) -> Tensor:
        """Embeds what :meth:`prepare` made ready: the network itself, without a look at any value."""
        if not isinstance(ready, Prepared):
            raise ValueError(
                f"run was given a {type(ready).__name__}, expected what prepare returns; of a batch of RootLoader that "
                "is batch.ready."
            )
        if ready.kind != self.kind:
            raise ValueError(
                f"run was given what was prepared for {ready.kind}, but the model has {self.kind}. Prepare it with "
                "the model that runs it: model.run(model.prepare(x, edge_index))."
            )
        if isinstance(ready.plan, Schedule):
            h, answer, in_order = self._run_schedule(ready, ready.plan), ready.plan.answer, ready.plan.answers_in_order
        else:
            h, answer, in_order = self._run_rows(self.start(ready.x), ready, ready.plan), ready.plan.query_row, False
        if ready.pool is not None:  # then each row answers once
            return self.finish(self.pooled(h if in_order else h.index_select(0, answer), ready.pool))
        # Where rows answer once or more often, embeddings are selected in place of states: they are shorter.
        last = answer.numel() >= h.size(0)
        h = h if last else h.index_select(0, answer)
        h = self.finish(h)
        h = h.index_select(0, answer) if last and not in_order else h
        if ready.read is None:
            return h
        node = h.index_select(0, ready.read.node)
        return node if ready.read.own else torch.cat([node, h.index_select(0, ready.read.color)], dim=-1)

    def pooled(self, h: Tensor, pool: Messages) -> Tensor:
        """The embeddings before the last layer, from the states under two colors that are pooled into each."""
        assert self.before_pool is not None
        return pool_states(self.before_pool(h), pool, self.pool)

    def start(self, x: Tensor) -> Tensor:
        """The states before the first round."""
        x = x if self.count_scale is None else self.count_scale(x)
        if self.vectors is None:
            h = self.lin_in(x)
        else:
            one = torch.cat([torch.ones_like(x[:, :1]), x[:, 1:]], dim=1)  # the counts of ID-GNN-Fast are beside it
            h = self.lin_in(one) + self.vectors(x[:, 0].long())
        return self._dropped(activate(h, self.act))

    def after(self, layer: int, out: Tensor, own: Tensor | None, real: Tensor | None = None) -> Tensor:
        """The states after a round, from what its convolution gave and, in a residual network, the states `own` of the
        same rows before it; `real` says which rows are no padding."""
        norm = cast(BatchNorm, self.norms[layer])
        if real is None:
            h = activate(norm(out), self.act, overwrite=True)
        else:
            h = norm_act(out, norm.module, real, self.act)
        h = self._dropped(h)
        return h if own is None else h + own

    def _dropped(self, h: Tensor) -> Tensor:
        return drop(h, self.dropout, self.training) if self.dropout else h

    def finish(self, h: Tensor) -> Tensor:
        """The embeddings, from the states after the last round."""
        return self.lin_out(l2_normalize(h, dim=-1) if self.normalize else h)

    def _run_schedule(self, ready: Prepared, schedule: Schedule) -> Tensor:
        """The rounds of our own layers, from the nodes to the targets of the last."""
        if self.identity == "full":
            h = self.start(ready.x).index_select(0, schedule.node)
        else:  # each node once: features are selected, which have no gradient
            h = self.start(schedule.start(ready.x))
        for layer, (conv, round_) in enumerate(zip(self.convs, schedule.rounds, strict=True)):
            out = cast(IdentityConv, conv).operator(h, round_, ready.weight, ready.edge_attr)
            h = self.after(layer, out, round_.own_states(h) if self.residual else None, round_.real)
        return h

    def _run_rows(self, h: Tensor, ready: Prepared, rows: RowGraph) -> Tensor:
        """The rounds of any other layers: all rows every time."""
        edge = {"edge_attr": ready.edge_attr, "edge_weight": ready.weight}
        options = {name: values[rows.edge] for name, values in edge.items() if values is not None}
        if self.identity == "full":
            options["colored"] = rows.colored
        h = h.index_select(0, rows.node)
        for layer, conv in enumerate(self.convs):
            h = self.after(layer, conv(h, rows.edge_index, **options), h if self.residual else None)
        return h


def _layer_name(config: EncoderConfig) -> str:
    if callable(config.conv):
        return getattr(config.conv, "__name__", type(config.conv).__name__)
    return f"sage ({config.aggr})" if config.conv == "sage" else config.conv  # which of them sums makes a difference


def _check(config: EncoderConfig) -> None:
    """Refuses options that do not fit."""
    if config.identity not in get_args(Identity):
        raise ValueError(f"identity is {config.identity!r}, expected one of {', '.join(get_args(Identity))}.")
    check_num_colors(config.colors, config.identity)
    check_pool(config.pool)
    check_flags(config, ("residual", "normalize"))
    check_activation(config.act)
    TwoColorOptions(config.second, config.radius, config.pool, config.with_self, config.directed).check_used(
        config.colors
    )
    check_num_layers(config.num_layers)
    check_scale(config.cycle_scale)
    check_dropout(config.dropout)
    check_whole(config.in_channels, "in_channels", "the number of node features")
    check_whole(config.hidden_channels, "hidden_channels", "the width of the network")
    if config.out_channels is not None:
        check_whole(config.out_channels, "out_channels", "the width of the embeddings")
    check_whole(config.cycle_length, "cycle_length", "how many counts are added to the features")
    if config.num_embeddings is not None:
        check_whole(config.num_embeddings, "num_embeddings", "the number of nodes with learned vectors")
        if config.in_channels != 1:
            raise ValueError(
                f"num_embeddings is given and in_channels is {config.in_channels}, expected 1: the number of each node."
            )
    if isinstance(config.conv, nn.Module):
        raise ValueError(
            f"conv is {config.conv}, a layer that is made already; expected a function or class that makes one, for "
            f"example conv={type(config.conv).__name__}."
        )
