"""What a network is run on once all has been looked at, for a few graphs or, to be cut into batches, for many."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from idgnn.choices import Identity
from idgnn.identity.cut_schedule import StackedMessages, StackedSchedule
from idgnn.identity.cutting import Cut, Cutter, Store, with_spare
from idgnn.identity.padded_cut import PaddedCut
from idgnn.identity.queries import Queries
from idgnn.identity.schedule import Messages, Schedule
from idgnn.identity.second_nodes import SecondNodes
from idgnn.models.planner import Plan


def network_kind(num_layers: int, layer: str, identity: Identity, second: SecondNodes | None) -> str:
    """What networks have in common that can run on what was prepared for one of them.

    A text, which a compiled network compares without a look at any value; numbers it takes for sizes that may change.
    """
    rounds = "1 round" if num_layers == 1 else f"{num_layers} rounds"
    two = "" if second is None else f" and two colors ({second.options})"
    return f"{rounds} of {layer} with identity={identity!r}{two}"


@dataclass(frozen=True)
class Prepared:
    """Features, and which rows to compute from them in which round."""

    x: Tensor  # [nodes, channels] with the counts of ID-GNN-Fast
    weight: Tensor | None  # of messages: per edge and self-loop for our own layers, else the edge weights as given
    edge_attr: Tensor | None
    plan: Plan
    # Which answers of the plan are read: of a plain network, nodes; of symmetric pairs, both directions; None: all.
    read: Queries | None
    pair_x: Tensor | None = None  # [queries, channels] features of the queries themselves
    pool: Messages | None = None  # with two colors: from the answers of the plan to the queries they are pooled into
    kind: str = field(kw_only=True)  # of the network that it was prepared for


class PreparedGraphs:
    """What a network is run on for many graphs, from which that for any of them is cut.

    Args:
        prepared: All graphs together, for a network with named layers.
        owner: The graph of each node `[num_nodes]`, in order.
        num_graphs: The number of graphs.
        over: The same for other queries, which are not asked any more. If these fit into its tensors, they are written
            over them, so that steps that were recorded go on with the new queries.
        spare: The share of room that is left for that in new tensors.
    """

    def __init__(
        self,
        prepared: Prepared,
        owner: Tensor,
        num_graphs: int,
        over: PreparedGraphs | None = None,
        spare: float = 0.0,
    ) -> None:
        if not isinstance(prepared.plan, Schedule):
            raise ValueError(
                "the network has layers of its own kind, and batches can be cut for the named layers alone (gcn, sage, "
                "gat, gin, gine). Prepare every batch by itself."
            )
        self.kind = prepared.kind
        self.cutter = Cutter(num_graphs)
        self.nodes = self.cutter.space(owner)
        self.schedule = StackedSchedule(prepared.plan, self.nodes, self.cutter)
        self.queries, self.node, self.color = self.schedule.queries, None, None
        if prepared.read is not None:
            answers = self.schedule.queries
            self.queries = self.cutter.space(answers.owner[prepared.read.node])
            self.node = self.cutter.field(self.queries, prepared.read.node, answers)
            if not prepared.read.own:
                self.color = self.cutter.field(self.queries, prepared.read.color, answers)
        self.pool = None
        if prepared.pool is not None:
            answers, pool = self.schedule.queries, prepared.pool
            self.queries = self.cutter.space(answers.owner[pool.source.index_select(0, pool.ptr[:-1])])
            by_source = self.cutter.pointers(self.cutter.field(answers, pool.back.degree))
            self.pool = StackedMessages(pool, 0, by_source, answers, self.queries, self.cutter)
        self.spare = spare
        given = (prepared.x, prepared.weight, prepared.edge_attr, prepared.pair_x)
        before = (None,) * 4 if over is None else (over.x, over.weight, over.edge_attr, over.pair_x)
        fits = over is not None and all(_holds(old, new) for old, new in zip(before, given, strict=True))
        self.cutter.finish(over.store if over is not None and fits else None, spare)
        self.follows = over is not None and self.store is over.store
        """Whether the tensors of `over` were written over."""
        kept = (self.with_room(new, old) for old, new in zip(before, given, strict=True))
        self.x, self.weight, self.edge_attr, self.pair_x = kept

    @property
    def store(self) -> Store:
        """What batches are cut out of."""
        return self.cutter.store

    def with_room(self, values: Tensor | None, over: Tensor | None) -> Tensor | None:
        """Values with room behind them, or written over those before."""
        if values is None or (not self.spare and not self.follows):
            return values
        size = values.size(0)
        kept = over if self.follows else values.new_zeros(with_spare(size, self.spare), *values.shape[1:])
        assert kept is not None
        kept[:size] = values
        return kept

    def cut(self, graphs: Tensor) -> tuple[Prepared, Cut]:
        """For these graphs `[graphs]`, ids on the CPU; the second says which queries they have."""
        cut = self.cutter.cut(graphs)
        return self.prepared(cut), cut

    def prepared(self, cut: Cut | PaddedCut) -> Prepared:
        """What was cut out, as a network takes it."""
        read = None
        if self.node is not None:
            node = cut[self.node]
            read = Queries(node, node if self.color is None else cut[self.color])
        assert self.x is not None
        x = cut.take(self.x, self.nodes)
        pair_x = None if self.pair_x is None else cut.take(self.pair_x, self.queries)
        pool = None if self.pool is None else self.pool.cut(cut)
        return Prepared(x, self.weight, self.edge_attr, self.schedule.cut(cut), read, pair_x, pool, kind=self.kind)


def _holds(kept: Tensor | None, values: Tensor | None) -> bool:
    """Whether values can be written over others."""
    if kept is None or values is None:
        return kept is values
    return kept.size(0) >= values.size(0) and kept.shape[1:] == values.shape[1:]
