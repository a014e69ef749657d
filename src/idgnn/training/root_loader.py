"""Mini-batches of queries about a large graph, for training loops of one's own."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from idgnn.identity.checks import check_graph, check_whole
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec
from idgnn.identity.queries import as_queries, as_tensor
from idgnn.models.hetero.identity_aware import HeteroIdentityAwareModel
from idgnn.models.hetero.idgnn import HeteroIDGNN
from idgnn.models.hetero.index import HeteroIndex, HeteroPrepared
from idgnn.models.hetero.wrapped_batches import WrappedGraph, WrappedPrepared
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.idgnn import IDGNN
from idgnn.models.large_graph import LargeGraph, check_fanout
from idgnn.models.prepared import Prepared
from idgnn.training.packing import pack
from idgnn.training.preparing import Order, Preparer
from idgnn.training.seeds import generator_of, seed_of


@dataclass(frozen=True)
class RootBatch:
    """Some of the queries, and what a network runs on to answer them."""

    ready: Prepared | HeteroPrepared | WrappedPrepared  # for model.run
    queries: Tensor  # [batch] nodes, or [2, batch] pairs, by their numbers in the whole graph
    index: Tensor  # [batch] their positions among all queries

    def to(self, device: torch.device | str) -> RootBatch:
        """The same on a device."""
        return pack(self).unpack(device)


class RootLoader:
    r"""Draws batches of nodes, or of pairs of nodes, from a graph of any size, and prepares what a network runs on.

    Without `fanout` it is exact: in evaluation mode `model.run(batch.ready)` is what `model(data.x, data.edge_index,
    queries=batch.queries)` computes. Degrees, GCN's normalization and the counts of ID-GNN-Fast are worked out once on
    the whole graph; a batch then costs what the nodes within :math:`K` steps of its queries cost, and nothing more.

    With `fanout` it is an approximation: the network sees a graph in which a node has at most so many in-neighbors,
    drawn again for each batch; the first number is for the queries themselves, the next for their in-neighbors, and so
    on. Colors travel over edges that were drawn. Degrees stay those of the whole graph, and where GCN weighs messages,
    each of those that were drawn counts for as many as were not.

    All that is random comes from the seed: the same batches with the same draws, whatever the number of workers. Each
    pass has an order and draws of its own.

    Args:
        data: The graph, or graphs: `x`, `edge_index`, and `edge_attr` or `edge_weight` if the layers take them. Several
            are one with the node ids of `torch_geometric.data.Batch.from_data_list`. Or one `HeteroData`.
        model: An :class:`idgnn.IDGNN`, or a model that :func:`idgnn.identity_aware` returned; of a `HeteroData` an
            :class:`idgnn.HeteroIDGNN`, or a wrapped model over several node types. If it changes other than in its
            weights, make a new loader.
        queries: Nodes `[num_queries]`, pairs `[2, num_queries]` of a node that is read and a node that is colored, or
            `None` for all nodes; a tensor, an array or a list. Of a `HeteroData` a node type, nodes `("driver", ids)`
            or pairs `(("circuit", r), ("driver", v))`; batches then have ids within these types.
        batch_size: Queries in a batch.
        fanout: The most in-neighbors of a node in each hop, for example `(15, 10, 5)`; -1 is all of them.
        shuffle: Whether each pass has the queries in an order of its own.
        seed: Of the orders and the draws.
        num_workers: Processes that prepare batches beside training.

    Example:
        >>> ring = torch.arange(1000)
        >>> edge_index = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
        >>> data = Data(x=torch.randn(1000, 8), edge_index=edge_index, y=ring % 2)
        >>> model = IDGNN(in_channels=8, hidden_channels=16, out_channels=2)
        >>> optimizer = torch.optim.Adam(model.parameters())
        >>> for batch in RootLoader(data, model, batch_size=256, shuffle=True):
        ...     out = model.run(batch.ready)
        ...     loss = torch.nn.functional.cross_entropy(out, data.y[batch.queries])
        ...     optimizer.zero_grad()
        ...     loss.backward()
        ...     optimizer.step()
        >>> out.shape
        torch.Size([232, 2])
    """

    def __init__(
        self,
        data: Data | Sequence[Data] | HeteroData,
        model: IDGNN | IdentityAwareModel | HeteroIDGNN | HeteroIdentityAwareModel,
        queries: Tensor | Sequence[int] | np.ndarray | TypedQuerySpec | None = None,
        *,
        batch_size: int = 512,
        fanout: Sequence[int] = (),
        shuffle: bool = False,
        seed: int = 0,
        num_workers: int = 0,
    ) -> None:
        check_whole(batch_size, "batch_size", "the queries in a batch")
        check_whole(num_workers, "num_workers", "the processes that prepare batches", least=0)
        if not isinstance(fanout, Sequence):
            raise ValueError(
                f"fanout is {fanout!r}, expected the most in-neighbors of a node for each round, such as (15, 10, 5), "
                "or nothing to have them all."
            )
        self.batch_size, self.fanout, self.shuffle, self.seed = batch_size, tuple(fanout), shuffle, seed
        self.epoch = 0
        """The number of the next pass: set it to repeat one."""
        if isinstance(data, HeteroData):
            if fanout:
                raise ValueError("fanout is for graphs of one node type. Leave it out: batches are exact.")
            typed = TypedBatches(model, data, queries)
            self.queries, self._preparer = typed.queries, Preparer(typed, num_workers)
            return
        if isinstance(model, HeteroIDGNN | HeteroIdentityAwareModel):
            raise ValueError(f"the network is over several node types, but data is a {type(data).__name__}.")
        graphs: list[Any] = [data] if isinstance(data, Data) else list(data) if isinstance(data, Sequence) else []
        if not graphs or not all(isinstance(graph, Data) for graph in graphs):
            raise ValueError(
                f"data is {type(data).__name__!r}, expected a torch_geometric.data.Data or a list of them. Make one "
                "with Data(x=x, edge_index=edge_index)."
            )
        whole: Any = graphs[0] if isinstance(data, Data) else Batch.from_data_list(graphs)
        if fanout:
            check_fanout(fanout, model.num_layers or len(fanout))
        self.queries = _checked(as_tensor(cast(Any, queries), "queries"), whole)
        graph = LargeGraph(model, whole, self.queries if not fanout else None)
        self._preparer = Preparer(graph, num_workers)

    def __len__(self) -> int:
        """The number of batches."""
        return -(-self.queries.size(-1) // self.batch_size)

    def __iter__(self) -> Iterator[RootBatch]:
        epoch, size = self.epoch, self.queries.size(-1)
        self.epoch += 1
        order = torch.randperm(size, generator=generator_of(self.seed, "order", epoch))
        batches = (order if self.shuffle else torch.arange(size)).split(self.batch_size) if size else ()
        orders = [
            Order(self.queries[..., index].numpy(), self.fanout, seed_of(self.seed, "fanout", epoch, number))
            for number, index in enumerate(batches)
        ]
        for index, ready in zip(batches, self._preparer.each(orders), strict=True):
            yield RootBatch(ready, self.queries[..., index], index)


class TypedBatches:
    """Batches of typed queries about one graph, by their numbers, as :class:`Preparer` orders them."""

    def __init__(self, model: Any, data: HeteroData, queries: Any) -> None:
        data = copy.copy(data).cpu()  # PyG moves graphs in place
        if isinstance(model, HeteroIDGNN):
            self.graph: HeteroIndex | WrappedGraph = HeteroIndex(model, data)
            self.typed = self.graph.queries(queries)
        elif isinstance(model, HeteroIdentityAwareModel):
            self.graph = WrappedGraph(model, data, queries)
            self.typed = self.graph.queries
        else:
            raise ValueError(
                f"the network is a {type(model).__name__}, expected a HeteroIDGNN or a model over several node types "
                "that idgnn.identity_aware returned: data is a HeteroData."
            )

    @property
    def queries(self) -> Tensor:
        """Nodes `[num_queries]`, or pairs `[2, num_queries]`, by their numbers within their types."""
        return self.typed.node if self.typed.own else torch.stack([self.typed.node, self.typed.color])

    def prepare(self, queries: Tensor, fanout: Sequence[int] = (), seed: int = 0) -> Any:
        """What the network runs on to answer some of the queries."""
        node, color = (queries, queries) if self.typed.own else queries
        return self.graph.prepare(TypedQueries(self.typed.read, self.typed.root, node, color))


def _checked(queries: Tensor | None, data: Data) -> Tensor:
    num_nodes = check_graph(data)
    if queries is None:
        return torch.arange(num_nodes)
    if queries.numel():
        as_queries(queries, num_nodes, queries.device)  # refuses what are no queries of this graph
    return queries.cpu().long()
