"""The network of the paper's experiments, in its three versions: plain GNN, ID-GNN-Fast and ID-GNN-Full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from idgnn.choices import (
    Activation,
    Aggregation,
    Color,
    ConvName,
    CycleScale,
    Identity,
    Pool,
    SecondNodesName,
)
from idgnn.identity.checks import check_node_numbers, check_rows, check_states
from idgnn.identity.cycle_features import computed_scale, cycle_features, log_counts
from idgnn.identity.identity_graph import IdentityGraph
from idgnn.identity.queries import as_queries
from idgnn.layers.eager import eager
from idgnn.layers.identity_conv import IdentityConv
from idgnn.models.foreign import check_exact
from idgnn.models.inputs import Inputs, check_batch, check_one_color, given, given_with
from idgnn.models.network import Network
from idgnn.models.planner import Engine, Planner, check_engine
from idgnn.models.prepared import Prepared
from idgnn.models.settings import EncoderConfig

_CHECKED_EDGES = 64  # on which layers that are not ours are compared with brute force


class IDGNN(Network):
    r"""An encoder: Linear and ReLU, `num_layers` rounds of (convolution, BatchNorm, ReLU), and a last linear layer.

    Args:
        in_channels: Number of node features.
        hidden_channels: Width of the network; :func:`idgnn.match_budget` finds it for a parameter budget.
        out_channels: Width of the embeddings; `None` leaves the last linear layer out.
        num_layers: Rounds of message passing, :math:`K`. The paper uses 3 for nodes and graphs and 5 for pairs.
        conv: `"gcn"`, `"sage"`, `"gat"`, `"gin"`, `"gine"`, or a function `(in_channels, out_channels) -> layer` that
            makes any PyG layer.
        identity: `"full"`: heterogeneous message passing (Algorithm 1). `"fast"`: closed-walk counts as node features.
            `"none"`: the plain GNN.
        color: What has second weights in `"full"`: `"message"`, as in Eq. 3, or `"message+update"`
            (:class:`idgnn.IdentityConv`).
        colors: With 2, a query colors two nodes, each with weights of its own. The embedding of a node `v` is then a
            pool over second nodes `w` of an MLP of its state when `v` has the first color and `w` the second. Of a
            pair both ends are colored and read, and their two states are pooled.
        second: The second nodes of a node: `"neighbors"` in either direction, `"ball"`, the nodes within `radius` steps
            in either direction, or `"all"` that it is connected with. A node without any has the first color alone.
        radius: The radius of the ball.
        pool: `"sum"`, `"mean"` or `"max"`.
        with_self: Whether the state of `v` under the first color alone is pooled besides.
        directed: Whether two colors tell the pair (u, v) from (v, u): `u` then has the first color in both readings.
            Otherwise each end has the first color where it is read.
        cycle_length: How many counts `"fast"` adds to the features.
        cycle_scale: Their scale: `"standardized"`, logarithms standardized over the training graphs
            (:meth:`fit_cycle_scale`), `"log"`, `"counts"` or `"walk"`.
        act: The nonlinearity: `"relu"`, or `"gelu"` or `"silu"`, which are smooth and learn exact quantities, such as
            counts, from fewer labels.
        dropout: Share of the hidden states that is set to zero in training, after the first layer and each round.
        residual: Whether a round adds to the state that it starts from.
        normalize: Whether embeddings are scaled to length 1 before the last linear layer, as in the paper's code.
            What the length tells is lost then: `pool="sum"` and `"mean"` compute the same, and counts need `False`.
        aggr: Aggregation of `"sage"`.
        heads: Attention heads of `"gat"`.
        edge_dim: Number of edge features of `"gine"`.
        num_embeddings: Number of nodes with a learned vector each, for one graph without features: `x` holds the number
            of each node, `[num_nodes, 1]`, and the first layer adds up its vector and what it makes of the constant 1.

    In training mode BatchNorm takes its statistics over the rows that are computed, which for `"full"` are those of
    the identity graph; in evaluation mode the result is exactly that of Algorithm 1.

    Example:
        >>> model = IDGNN(in_channels=1, hidden_channels=16, out_channels=4, num_layers=3, conv="gin")
        >>> square = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
        >>> model(torch.ones(4, 1), square).shape  # h_v of every node
        torch.Size([4, 4])
        >>> model(torch.ones(4, 1), square, queries=torch.tensor([[0, 0], [1, 2]])).shape  # h_{u|v} of two pairs
        torch.Size([2, 4])
        >>> model = IDGNN(in_channels=1, hidden_channels=16, out_channels=4, conv="gin", colors=2, second="neighbors")
        >>> model(torch.ones(4, 1), square).shape  # each node, pooled over its two neighbors
        torch.Size([4, 4])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int | None,
        num_layers: int = EncoderConfig.num_layers,
        conv: ConvName | Callable[[int, int], nn.Module] = EncoderConfig.conv,
        identity: Identity = EncoderConfig.identity,
        *,
        color: Color = EncoderConfig.color,
        colors: int = EncoderConfig.colors,
        second: SecondNodesName = EncoderConfig.second,
        radius: int = EncoderConfig.radius,
        pool: Pool = EncoderConfig.pool,
        with_self: bool = EncoderConfig.with_self,
        directed: bool = EncoderConfig.directed,
        cycle_length: int = EncoderConfig.cycle_length,
        cycle_scale: CycleScale = EncoderConfig.cycle_scale,
        act: Activation = EncoderConfig.act,
        dropout: float = EncoderConfig.dropout,
        residual: bool = EncoderConfig.residual,
        normalize: bool = EncoderConfig.normalize,
        aggr: Aggregation = EncoderConfig.aggr,
        heads: int = EncoderConfig.heads,
        edge_dim: int | None = EncoderConfig.edge_dim,
        num_embeddings: int | None = EncoderConfig.num_embeddings,
    ) -> None:
        config = EncoderConfig(
            in_channels=in_channels,
            hidden_channels=hidden_channels,
            out_channels=out_channels,
            num_layers=num_layers,
            conv=conv,
            identity=identity,
            color=color,
            colors=colors,
            second=second,
            radius=radius,
            pool=pool,
            with_self=with_self,
            directed=directed,
            cycle_length=cycle_length,
            cycle_scale=cycle_scale,
            act=act,
            dropout=dropout,
            residual=residual,
            normalize=normalize,
            aggr=aggr,
            heads=heads,
            edge_dim=edge_dim,
            num_embeddings=num_embeddings,
        )
        super().__init__(config)
        self.cycle_length: int = cycle_length
        self.cycle_scale: CycleScale = cycle_scale
        self._fitted = False  # whether the counts are known to be standardized, without a look at the device
        self._checked = False  # whether layers that are not ours have been looked at
        self._planner = Planner(num_layers, self.second_nodes)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        queries: Tensor | None = None,
        graph: IdentityGraph | None = None,
        counts: Tensor | None = None,
        engine: Engine | None = None,
    ) -> Tensor:
        r"""Embeds nodes or pairs of nodes.

        Args:
            x: `[num_nodes, in_channels]`.
            edge_index: `[2, num_edges]`.
            edge_attr: `[num_edges, edge_dim]`, for layers that take it.
            edge_weight: `[num_edges]`, for layers that take it.
            batch: The graph of each node `[num_nodes]`; only checked, since graphs of a batch share no edges.
            queries: `None` for all nodes, nodes `[num_queries]`, or pairs `[2, num_queries]` of a node that is read
                and a node that is colored. With two colors both ends of a pair are, and triples `[3, num_queries]`
                of a node that is read and the nodes of the first and the second color are read one by one.
            graph: The identity graph, built before by :func:`idgnn.identity_graph`. It holds the queries. Then `x` and
                `edge_index` may be those of the original graph or its own. With two colors each of its queries is read
                by itself, unless :class:`idgnn.ToIdentityGraph` has listed second nodes that are pooled.
            counts: The features that `"fast"` adds `[num_nodes, cycle_length]`, if they are at hand already; with
                `cycle_scale="standardized"` on the scale `"log"`.
            engine: How `"full"` is computed, in evaluation mode with the same result: `"trimmed"`, the rows of the
                identity graph that each round needs; `"exchange"`, the same for layers that sum, at a cost that does
                not grow with degrees; `"graph"`, all rows; `"ego"`, ego networks (Algorithm 1). `None`: the fastest.

        Returns:
            `[num_nodes, out_channels]`, `[num_queries, out_channels]`, or for pairs `[num_queries, pair_channels]`.
        """
        return self.run(
            self.prepare(
                x,
                edge_index,
                edge_attr=edge_attr,
                edge_weight=edge_weight,
                batch=batch,
                queries=queries,
                graph=graph,
                counts=counts,
                engine=engine,
            )
        )

    def embed(
        self,
        data: Data,
        roots: Tensor | Sequence[int] | np.ndarray | None = None,
        *,
        memory: float | str | None = None,
        out: Tensor | np.ndarray | None = None,
        progress: bool = False,
    ) -> Tensor:
        """The embeddings of a graph of any size, in evaluation mode and without gradients.

        They are those of `model.eval()(data.x, data.edge_index, queries=roots)`, with `edge_attr` and `edge_weight` of
        the graph if the layers take them. States without a color are computed once for all nodes and kept; those with
        one are computed for as many roots at a time as the memory allows.

        Args:
            data: The graph: `x`, `edge_index`, and `edge_attr` or `edge_weight` if the layers take them.
            roots: `None` for all nodes, nodes `[num_roots]`, or pairs `[2, num_roots]` of a node that is read and a
                node that is colored; a tensor, an array or a list.
            memory: What this may take on the device of the network: bytes, or a size such as `"4GiB"`. `None` is half
                of what is free.
            out: Where to write them, for example a `numpy.memmap` if they are larger than memory; a new tensor if
                `None`.
            progress: Whether a bar is shown.

        Returns:
            `[num_roots, out_channels]` on the CPU, for pairs `[num_roots, pair_channels]`; with `out`, a tensor on its
            memory.

        Example:
            >>> model = IDGNN(in_channels=1, hidden_channels=16, out_channels=4)
            >>> star = torch.stack([torch.zeros(1000, dtype=torch.long), torch.arange(1, 1001)])
            >>> data = Data(x=torch.ones(1001, 1), edge_index=torch.cat([star, star.flip(0)], dim=1))
            >>> model.embed(data, memory="64MiB").shape
            torch.Size([1001, 4])
        """
        from idgnn.models.embedding import embed  # which needs to know what an IDGNN is

        return embed(self, data, roots, memory, out, progress)

    def fit_cycle_scale(self, graphs: Data | Sequence[Data]) -> None:
        """Standardizes the counts of `"fast"` over these graphs, which should be the training graphs.

        :func:`idgnn.train` does so. In a training loop of your own call this before the first step; otherwise the first
        batch that the network is given in training mode takes the place of all graphs. Nothing happens if
        `cycle_scale` is another than `"standardized"`, or if the network has no counts.

        Example:
            >>> model = IDGNN(1, 16, 2, identity="fast")
            >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), num_nodes=3)
            >>> model.fit_cycle_scale([path])
            >>> model.count_scale.mean[:3]  # log(1 + count) of 1, 2 and 3 steps
            tensor([0.0000, 0.8283, 0.0000])
        """
        if self.count_scale is not None:
            self.count_scale.fit(log_counts(graphs, self.cycle_length))

    def counts_of(self, edge_index: Tensor, num_nodes: int) -> Tensor:
        """The counts of all nodes, before they are standardized: worked out once per `edge_index`."""

        def count() -> Tensor:
            return cycle_features(edge_index, num_nodes, self.cycle_length, computed_scale(self.cycle_scale))

        return self._planner.kept.get(edge_index, ("counts", num_nodes), count)

    @eager
    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        queries: Tensor | None = None,
        graph: IdentityGraph | None = None,
        counts: Tensor | None = None,
        engine: Engine | None = None,
    ) -> Prepared:
        """Looks at what :meth:`forward` is given and works out which rows to compute: all that depends on values."""
        if graph is None:
            inputs = given(x, edge_index, edge_attr, edge_weight)
        elif self.identity == "full":
            inputs = given_with(graph, x, edge_index, edge_attr, edge_weight)
        else:
            raise ValueError(
                f"graph is an identity graph, but the model has identity={self.identity!r}. Pass x and edge_index of "
                "the original graph alone, or make the model with identity='full'."
            )
        if batch is not None and graph is None:
            check_batch(batch, inputs.edge_index, inputs.num_nodes)
        check_states(inputs.x, self.in_channels, self.dtype, "model")
        operator, weight = self.operator, inputs.edge_weight
        check_engine(engine, operator)
        pool = None
        if self.colors == 1:
            check_one_color(queries)
        if self.colors == 2:
            plan, pool = self._planner.two_colors(inputs, operator, queries, graph, engine)
        elif self.identity == "full":
            plan = self._planner.full(inputs, operator, queries, graph, engine)
        else:
            plan = self._planner.plain(inputs, operator)
        self.check_layers(inputs)
        if operator is not None:
            weight = operator.edge_values(inputs.edge_index, inputs.num_nodes, weight, inputs.x.dtype)
        read = None
        if self.identity != "full" and queries is not None:
            read = as_queries(queries, inputs.num_nodes, inputs.x.device)
        return Prepared(
            self._with_counts(inputs, counts), weight, inputs.edge_attr, plan, read, pool=pool, kind=self.kind
        )

    def check_layers(self, inputs: Inputs) -> None:
        """Refuses inputs that the layers cannot take, and layers that an identity graph is not exact for."""
        if self.vectors is not None:
            check_node_numbers(inputs.x, self.vectors.num_embeddings)
        first = self.convs[0]
        if isinstance(first, IdentityConv):
            first.check_edges(inputs.edge_index, inputs.edge_attr, inputs.edge_weight)
        elif self.identity == "full" and not self._checked and inputs.edge_index.size(1):
            few = slice(0, _CHECKED_EDGES)  # whether layers are exact does not depend on the graph
            node, edge_index = torch.unique(inputs.edge_index[:, few], return_inverse=True)
            states = torch.rand(node.numel(), self.lin_in.out_features).to(inputs.x)
            values = (None if value is None else value[few] for value in (inputs.edge_attr, inputs.edge_weight))
            check_exact(self.convs, states, edge_index, *values)
            self._checked = True

    def _with_counts(self, inputs: Inputs, counts: Tensor | None) -> Tensor:
        """The features of the nodes, and for ID-GNN-Fast the counts beside them."""
        if self.identity != "fast":
            if counts is not None:
                raise ValueError(f"counts are for identity='fast', but the model has identity={self.identity!r}.")
            return inputs.x
        size = inputs.num_nodes
        features = self.counts_of(inputs.edge_index, size) if counts is None else counts
        check_rows(features, "counts", f"[num_nodes, {self.cycle_length}]")
        if features.shape != (size, self.cycle_length):
            raise ValueError(f"counts has shape {list(features.shape)}, expected [num_nodes, {self.cycle_length}].")
        self.fit_if_needed(features)
        return torch.cat([inputs.x, features.to(inputs.x)], dim=-1)

    def fit_if_needed(self, counts: Tensor) -> None:
        """Standardizes by these counts `[nodes, cycle_length]` if this is training and none were given before."""
        scale = self.count_scale
        if scale is not None and self.training and counts.size(0) and not self._fitted:
            if not bool(scale.fitted):
                scale.fit(counts)
            self._fitted = True
