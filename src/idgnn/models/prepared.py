"""What a network is run on once all has been looked at, for a few graphs or, to be cut into batches, for many."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from idgnn.identity.cut_schedule import StackedMessages, StackedSchedule
from idgnn.identity.cutting import Cut, Cutter
from idgnn.identity.queries import Queries
from idgnn.identity.schedule import Messages, Schedule
from idgnn.models.planner import Plan


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


class PreparedGraphs:
    """What a network is run on for many graphs, from which that for any of them is cut.

    Args:
        prepared: All graphs together, for a network with named layers.
        owner: The graph of each node `[num_nodes]`, in order.
        num_graphs: The number of graphs.
    """

    def __init__(self, prepared: Prepared, owner: Tensor, num_graphs: int) -> None:
        if not isinstance(prepared.plan, Schedule):
            raise ValueError(
                "the network has layers of its own kind, and batches can be cut for the named layers alone (gcn, sage, "
                "gat, gin, gine). Prepare every batch by itself."
            )
        self.x, self.weight, self.edge_attr = prepared.x, prepared.weight, prepared.edge_attr
        self.pair_x = prepared.pair_x
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
            self.pool = StackedMessages(pool, 0, answers, self.queries, self.cutter)
            self.pooled = self.cutter.field(answers, pool.back.degree)
        self.cutter.finish()

    def cut(self, graphs: Tensor) -> tuple[Prepared, Cut]:
        """For these graphs `[graphs]`, ids on the CPU; the second says which queries they have."""
        cut = self.cutter.cut(graphs)
        read = None
        if self.node is not None:
            node = cut[self.node]
            read = Queries(node, node if self.color is None else cut[self.color])
        x = cut.take(self.x, self.nodes)
        pair_x = None if self.pair_x is None else cut.take(self.pair_x, self.queries)
        pool = None if self.pool is None else self.pool.cut(cut, 0, cut[self.pooled])
        return Prepared(x, self.weight, self.edge_attr, self.schedule.cut(cut), read, pair_x, pool), cut
