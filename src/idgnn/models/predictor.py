"""An encoder and a head: from graphs to predictions."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from idgnn.choices import Activation, EdgeInput, Level, PairHeadName
from idgnn.identity.queries import Queries
from idgnn.models.budget import match_budget, num_parameters
from idgnn.models.heads import GraphHead, NodeHead, PairHead
from idgnn.models.identity_aware_layer import IdentityAwareLayer
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.idgnn import IDGNN
from idgnn.models.inputs import of_data
from idgnn.models.large_graph import LargeGraph
from idgnn.models.prepared import Prepared
from idgnn.models.saving import Saved
from idgnn.models.settings import EncoderConfig, ModelSettings
from idgnn.models.wrapping.trace import side_effect_free

_PAIR_HIDDEN = 256  # as in the paper


class Predictor(Saved):
    """A network that answers queries about nodes, pairs or graphs.

    Args:
        level: What is asked about.
        num_outputs: Numbers per answer.
        encoder: The settings of an :class:`idgnn.IDGNN` without a last linear layer; of a wrapped model its class
            (`own_network`), `in_channels`, `hidden_channels`, the width of its output, and `reading`, how it reads
            queries.
        pair_hidden: Width of the hidden layer of the MLP that reads pairs.
        pair_head: `"mlp"`, or `"paper"`, where one linear layer reads a conditional embedding of ID-GNN-Full.
        symmetric: Whether the answer about a pair is the mean of those about (u, v) and (v, u). Encoders with two
            colors embed both directions alike, unless they are `directed`.
        wrapped: The encoder, if it is a model that :func:`idgnn.identity_aware` wrapped.
    """

    encoder_class: ClassVar[type[IDGNN]] = IDGNN
    """The encoder that is made from its settings; variants have one of their own."""
    encoder: Any  # an IDGNN, one of its variants in the experiments, or an IdentityAwareModel

    def __init__(
        self,
        level: Level,
        num_outputs: int,
        encoder: dict[str, Any],
        pair_hidden: int | None = _PAIR_HIDDEN,
        pair_head: PairHeadName = ModelSettings.pair_head,
        symmetric: bool = False,
        wrapped: IdentityAwareModel | None = None,
    ) -> None:
        super().__init__()
        self.settings = {
            "level": level,
            "num_outputs": num_outputs,
            "encoder": encoder,
            "pair_hidden": pair_hidden,
            "pair_head": pair_head,
            "symmetric": symmetric,
        }
        self.level: Level = level
        self.encoder = self.encoder_class(**encoder) if wrapped is None else wrapped
        two_colors = getattr(self.encoder, "second_nodes", None) is not None
        self.symmetric = symmetric and level == "pair" and not two_colors
        linear = self.encoder.identity == "full" and pair_head == "paper"
        self.head = self.make_head(num_outputs, None if linear else pair_hidden)

    def make_head(self, num_outputs: int, pair_hidden: int | None) -> nn.Module:
        """What reads the embeddings; pairs by an MLP of this width, or by one linear layer."""
        if self.level == "pair":
            return PairHead(self.pair_channels, num_outputs, pair_hidden, self.act)
        if self.level == "graph":
            return GraphHead(self.width, num_outputs, act=self.act)
        return NodeHead(self.width, num_outputs)

    @property
    def in_channels(self) -> int:
        """The number of node features."""
        return self.settings["encoder"]["in_channels"]

    @property
    def act(self) -> Activation:
        """The nonlinearity: that of the encoder, and ReLU where the encoder is a wrapped model."""
        return self.settings["encoder"].get("act", EncoderConfig.act)

    @property
    def width(self) -> int:
        """The width of the embedding of a node."""
        return self.settings["encoder"]["hidden_channels"]

    @property
    def pair_channels(self) -> int:
        """The width of the embedding of a pair."""
        return self.width * (1 if self.encoder.identity == "full" else 2)

    def forward(self, ready: Prepared, graph: Tensor, num_graphs: int) -> Tensor:
        """Answers to all queries `[queries, num_outputs]`, or for graphs `[num_graphs, num_outputs]`.

        Args:
            ready: What :meth:`idgnn.IDGNN.prepare` gave for the encoder.
            graph: The graph of each embedding `[queries]`.
            num_graphs: How many there are.
        """
        h = self.encoder.run(ready)
        return self.head(h, graph, num_graphs) if self.level == "graph" else self.answer(h)

    def answer(self, h: Tensor) -> Tensor:
        """Answers from embeddings of nodes, or of pairs: `[queries, num_outputs]`.

        Where pairs are symmetric, those of ID-GNN-Full are given in both directions, side by side.
        """
        if not self.symmetric:
            return self.head(h)
        ahead, back = h.chunk(2, dim=-1)
        if self.encoder.identity == "full":
            return (self.head(ahead) + self.head(back)) / 2
        return (self.head(h) + self.head(torch.cat([back, ahead], dim=-1))) / 2

    @property
    def reads_both(self) -> bool:
        """Whether the encoder has to embed both directions of a pair, under different colors."""
        return self.symmetric and self.encoder.identity == "full"

    def takes(self, name: EdgeInput) -> bool:
        """As :meth:`idgnn.IDGNN.takes`."""
        return self.encoder.takes(name)

    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        queries: Tensor | None = None,
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`; of pairs both directions, if they are read."""
        if queries is not None and self.reads_both:
            queries = both_directions(queries)
        ready = self.encoder.prepare(x, edge_index, edge_attr=edge_attr, edge_weight=edge_weight, queries=queries)
        return read_side_by_side(ready, queries) if self.reads_both and queries is not None else ready

    @classmethod
    def load(cls, folder: str | os.PathLike[str], wrapped: IdentityAwareModel | None = None) -> Self:
        """Reads a predictor that :meth:`save` wrote; a wrapped model is made by the caller and gets the weights."""
        settings = cls._read_settings(folder)
        own = settings.get("encoder", {}).get("own_network")
        if wrapped is None:
            if own is not None:
                raise ValueError(
                    f"the network in {folder} is {own}, a model of your own, which no file can hold. Make it in code "
                    f"and pass it: Run.load(folder, model=idgnn.identity_aware({own}(...)))."
                )
            return super().load(folder)
        check_wrapped(wrapped)
        name = type(wrapped.module).__name__
        if name != own:
            found = "an IDGNN, which is made from its settings. Leave model out" if own is None else f"{own}. Pass that"
            raise ValueError(f"model is {name}, but the network in {folder} is {found}.")
        wrapped.check_reading(settings["encoder"].get("reading", wrapped.reading), folder)
        return cls._made(folder, {**settings, "wrapped": wrapped})._load_weights(folder, assign=False)


def both_directions(pairs: Tensor) -> Tensor:
    """The pairs `[2, pairs]`, and behind them the same pairs the other way round: `[2, 2 * pairs]`."""
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def read_side_by_side(ready: Prepared, pairs: Tensor) -> Prepared:
    """What was prepared for both directions of pairs, read with the two embeddings of a pair side by side."""
    ahead, back = torch.arange(pairs.size(1), device=ready.x.device).chunk(2)  # positions among the answers
    return replace(ready, read=Queries(ahead, back))


def check_wrapped(model: Any) -> None:
    """Refuses what is not a model that :func:`idgnn.identity_aware` wrapped."""
    if isinstance(model, IdentityAwareModel):
        return
    name = type(model).__name__
    if isinstance(model, IDGNN):
        raise ValueError("model is an IDGNN, which is made from settings here: model=idgnn.ModelSettings(...).")
    if isinstance(model, IdentityAwareLayer | MessagePassing):
        layer = type(model.module).__name__ if isinstance(model, IdentityAwareLayer) else name
        raise ValueError(
            f"model is {layer}, a single layer. Write a model that calls such layers one after another, and pass "
            "model=idgnn.identity_aware(that model)."
        )
    if isinstance(model, nn.Module):
        raise ValueError(f"model is {name}, a plain module. Wrap it: model=idgnn.identity_aware({name}(...)).")
    raise ValueError(
        f"model is {model!r}, expected idgnn.ModelSettings, or a model of your own: idgnn.identity_aware(MyNet(...))."
    )


def wrapped_predictor(
    encoder: IdentityAwareModel, level: Level, num_outputs: int, data: Data, symmetric: bool = False
) -> Predictor:
    """A head on a wrapped model, whose output width is found by running it on the first node of a graph with edges."""
    device, x = next(encoder.parameters()).device, cast(Tensor, data.x)
    graph = LargeGraph.of_inputs(encoder, of_data(data, encoder, device))
    with side_effect_free(encoder, device):
        h: Any = encoder.run(graph.prepare(torch.zeros(1, dtype=torch.long, device=device)))
    name = type(encoder.module).__name__
    if not isinstance(h, Tensor) or h.dim() != 2:
        found = f"a tensor of shape {['num_nodes', *h.shape[1:]]}" if isinstance(h, Tensor) else f"a {type(h).__name__}"
        raise ValueError(f"{name} returns {found}, expected one tensor of shape [num_nodes, channels].")
    settings = {
        "own_network": name,
        "in_channels": x.size(1),
        "hidden_channels": h.size(1),
        "reading": encoder.reading,
    }
    return Predictor(level, num_outputs, settings, symmetric=symmetric, wrapped=encoder)


def make_predictor(
    settings: ModelSettings,
    level: Level,
    in_channels: int,
    num_outputs: int,
    edge_dim: int | None,
    symmetric: bool = False,
    num_embeddings: int | None = None,
) -> Predictor:
    """The network that settings ask for, with the width that its budget allows.

    Every network is counted with its own head. The budget is that of a plain GCN with the smallest head there is: for
    pairs the one linear layer of ID-GNN-Full, so that a network that reads pairs by an MLP is narrower for it.
    `symmetric` says whether pairs have no direction, for settings that leave this to the task; `num_embeddings` is the
    number of nodes with learned vectors, if their numbers are the only feature.
    """
    symmetric = symmetric if settings.symmetric is None else settings.symmetric

    def network(settings: ModelSettings, width: int) -> Predictor:
        encoder = settings.encoder(level, in_channels, width, edge_dim, not symmetric, num_embeddings).as_dict()
        return Predictor(level, num_outputs, encoder, pair_head=settings.pair_head, symmetric=symmetric)

    if settings.conv == "gine" and edge_dim is None:
        raise ValueError("gine reads edge features, but the graphs have none. Use gin, or give them features.")
    width = settings.width
    if width is None:
        gcn = settings.plain_gcn().encoder(level, in_channels, settings.budget, None, num_embeddings=num_embeddings)
        with torch.device("meta"):
            target = num_parameters(Predictor("node" if level == "pair" else level, num_outputs, gcn.as_dict()))
        step = settings.heads if settings.conv == "gat" else 1  # its heads share the width
        width = step * match_budget(lambda steps: network(settings, step * steps), target, tolerance=0.1)
    return network(settings, width)
