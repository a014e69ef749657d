"""A model made of PyG layers, run on the rows of identity graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch.utils._pytree import tree_map
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from idgnn.choices import Color, Pool
from idgnn.identity.adjacency import IndexedGraph
from idgnn.identity.cost import keep_freed_memory
from idgnn.identity.identity_graph import IdentityGraph, identity_graph, identity_graph_of
from idgnn.identity.row_graph import RowGraph
from idgnn.identity.schedule import Messages
from idgnn.identity.second_nodes import SecondNodes
from idgnn.layers.eager import eager
from idgnn.models.inputs import Inputs, check_one_color, given
from idgnn.models.planner import pooled
from idgnn.models.pooling import pool_states
from idgnn.models.prepared import Prepared, network_kind
from idgnn.models.wrapping.arguments import ModelCall, rows_of
from idgnn.models.wrapping.calls import Calls, ColoredRows, Context
from idgnn.models.wrapping.color_map import ColorMap, source_channels
from idgnn.models.wrapping.hooks import LayerHooks, ReversibleParameters
from idgnn.models.wrapping.lifting import lift, original_call
from idgnn.models.wrapping.plan import Plan, Rounds
from idgnn.models.wrapping.plans import Plans
from idgnn.models.wrapping.refusals import check_no_rows_of_nodes, check_trace
from idgnn.models.wrapping.roles import ArgumentRole, Roles
from idgnn.models.wrapping.trace import side_effect_free, trace, trial
from idgnn.models.wrapping.verify import Comparisons, verify
from idgnn.models.wrapping.wrapped import Wrapped, copied, hold


class IdentityAwareModel(Wrapped):
    """ID-GNN-Full (Algorithm 1) by the layers of a given model. Made by :func:`idgnn.identity_aware`.

    Called as the model itself, as `model(x, edge_index, ...)`, or with a `Data` if its own forward takes one, it
    returns the embedding of every node under its own color `[num_nodes, out]`. Besides the model's own arguments it
    takes

    * `queries`: node ids `[num_queries]`, or pairs `[2, num_queries]` for the conditional embeddings of `queries[0]`
      when `queries[1]` is colored; with two colors pairs whose ends are both colored and read, or triples
      `[3, num_queries]` for `queries[0]` when `queries[1]` has the first color and `queries[2]` the second;
    * `graph`: the identity graph of `edge_index`, if it was built before (:func:`idgnn.identity_graph`). Then the
      arguments may be those of the original graph or those of the identity graph, `model(batch.x, batch.edge_index,
      graph=batch)`;
    * `colored`: says that `x` and `edge_index` are an identity graph already; all of its rows are returned. With no
      row colored that is the output of the model, bit for bit.

    What has one row per node or edge among the arguments is carried over to the identity graph. If the model is a
    chain of layers that take `(x_source, x_target)`, each round computes only the rows that matter. In training,
    BatchNorm takes its statistics over the rows that are computed; in evaluation mode the result is exact.
    torch.compile leaves it as it is: it runs, and does not get faster. Training on a CPU lets the C library keep freed
    memory, as :class:`idgnn.RootLoader` does.

    To train from the start on graphs without features, where all rows begin equal, let the color make a difference at
    once: `nn.init.normal_(p, std=0.1)` for each `p` of `colors.parameters()`.

    `module` is the copy of the given model, and called directly it is that model; `colors` holds the color map of each
    layer under the name that the layer has in it.

    Example:
        >>> from torch_geometric.nn import GAT
        >>> from idgnn import identity_aware
        >>> model = identity_aware(GAT(2, 8, num_layers=2, out_channels=4))
        >>> x, edge_index = torch.randn(3, 2), torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> model(x, edge_index, queries=torch.tensor([[0, 1], [2, 0]])).shape
        torch.Size([2, 4])
    """

    def __init__(
        self,
        module: nn.Module,
        said: dict[str, ArgumentRole],
        color: Color = "message",
        second: SecondNodes | None = None,
        pool: Pool = "sum",
    ) -> None:
        super().__init__()
        self.second_nodes = second  # how nodes and pairs are read with two colors; None: there is one
        self.pool: Pool = pool
        self.module = copied(module)
        self.colors = nn.Module()
        self._calls = Calls()
        self._hooks: dict[str, LayerHooks] = {}
        for name, layer in self._layers().items():
            num_colors = 1 if second is None else 2
            colored = ColorMap(source_channels(layer), like=layer, color=color, colors=num_colors)
            hold(self.colors, name, colored)
            self._hooks[name] = LayerHooks(name, colored, self._calls)
            self._hooks[name].install(layer)
        for name, block in self.module.named_modules():
            if isinstance(block, InvertibleModule):
                inside = [
                    hooks.color for place, hooks in self._hooks.items() if place.startswith(f"{name}." if name else "")
                ]
                vars(block)["parameters"] = ReversibleParameters(block, inside, self._calls)
        self.roles = Roles(said)
        self._num_layers: int | None = None
        self._traced: dict[str, tuple[int, Rounds | None]] = {}  # by the settings of a call
        self._comparisons = Comparisons()  # by the number of rounds
        self._trimmed: set[Rounds] = set()  # chains of layers that are exact on the rows that matter
        self._plans = Plans(second)

    identity = "full"
    operator = None  # its layers are not ours
    in_channels = None  # known to the model alone

    @property
    def num_layers(self) -> int | None:
        """The number of message-passing rounds on the longest chain through the model in its last call, `None` before
        the first one."""
        return self._num_layers

    @property
    def reading(self) -> str:
        """With two colors the options of second nodes and the pool."""
        return "" if self.second_nodes is None else f"pool={self.pool!r}, {self.second_nodes.options}"

    @property
    def kind(self) -> str:
        """What is prepared for it in its last call."""
        return network_kind(self._num_layers or 1, type(self.module).__name__, "full", self.second_nodes)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of the weights."""
        weights = (parameter for parameter in self.parameters() if parameter.is_floating_point())
        return next(weights, torch.empty(0)).dtype

    def check_layers(self, inputs: Inputs) -> None:
        """Counts the rounds, and compares the model with brute force, if it was not called before."""
        if inputs.num_nodes:
            self._prepare(ModelCall.of(self.module, (inputs.x, inputs.edge_index), self._edge_inputs(inputs)))

    @eager
    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor,
        *,
        edge_attr: Tensor | None = None,
        edge_weight: Tensor | None = None,
        queries: Tensor | None = None,
    ) -> Prepared:
        """As :meth:`idgnn.IDGNN.prepare`: the rows that :meth:`run` runs on."""
        inputs = given(x, edge_index, edge_attr, edge_weight)
        self.check_layers(inputs)
        data = Data(edge_index=inputs.edge_index, num_nodes=inputs.num_nodes)
        if self.second_nodes is None:
            check_one_color(queries)
            rows = RowGraph.of(identity_graph(data, self._num_layers or 1, queries))
            return Prepared(inputs.x, edge_weight, edge_attr, rows, None, kind=self.kind)
        reading = self.second_nodes.read(IndexedGraph(inputs.edge_index, inputs.num_nodes), queries)
        graph = identity_graph_of(data, self._num_layers or 1, reading.queries, warn=False)
        rows, pool = pooled(RowGraph.of(graph), reading.owner, reading.num_answers)
        return Prepared(inputs.x, edge_weight, edge_attr, rows, None, pool=pool, kind=self.kind)

    def run(self, ready: Prepared) -> Tensor:
        """As :meth:`idgnn.IDGNN.run`: embeds what :meth:`prepare`, or a :class:`idgnn.RootLoader`, made ready."""
        if not isinstance(ready, Prepared) or not isinstance(ready.plan, RowGraph):
            raise ValueError("run expects what prepare returns; of a batch of RootLoader that is batch.ready.")
        rows = ready.plan
        edge = {"edge_attr": ready.edge_attr, "edge_weight": ready.weight}
        options = {name: values.index_select(0, rows.edge) for name, values in edge.items() if values is not None}
        x = ready.x.index_select(0, rows.node)
        out = self.run_rows(x, rows.edge_index, colored=rows.colored, **options)
        h = rows_of(out, rows.node.numel(), rows.query_row, type(self.module).__name__)
        if ready.pool is not None:
            return self.pooled(h, ready.pool)
        if ready.read is None:
            return h
        return torch.cat([h.index_select(0, ready.read.node), h.index_select(0, ready.read.color)], dim=-1)

    def pooled(self, h: Any, pool: Messages) -> Any:
        """The embeddings of queries, from the states under two colors that are pooled into each."""
        return tree_map(lambda leaf: pool_states(leaf, pool, self.pool) if isinstance(leaf, Tensor) else leaf, h)

    def embed(
        self,
        data: Data,
        roots: Tensor | Sequence[int] | np.ndarray | None = None,
        *,
        memory: float | str | None = None,
        out: Tensor | np.ndarray | None = None,
        progress: bool = False,
    ) -> Tensor:
        """The embeddings of a graph of any size, as :meth:`idgnn.IDGNN.embed`: `[num_roots, out]`.

        The model is given `x`, `edge_index`, and `edge_attr` and `edge_weight` of the graph if it takes them.
        """
        from idgnn.models.embedding import embed  # which needs to know what a wrapped model is

        return embed(self, data, roots, memory, out, progress)

    def _edge_inputs(self, inputs: Inputs) -> dict[str, Tensor]:
        edge = {"edge_attr": inputs.edge_attr, "edge_weight": inputs.edge_weight}
        return {name: values for name, values in edge.items() if values is not None}

    def trace(self, *args: Any, **kwargs: Any) -> int:
        """The number of message-passing rounds that the model takes in this call, without side effects."""
        call = ModelCall.of(self.module, args, kwargs)
        call.check()
        return self._trace(call)[0]

    @eager
    def forward(
        self,
        *args: Any,
        queries: Tensor | None = None,
        graph: IdentityGraph | None = None,
        colored: Tensor | None = None,
        **kwargs: Any,
    ) -> Any:
        """The embeddings of the queries `[num_queries, out]`; every other argument is the model's own."""
        if sum(given is not None for given in (queries, graph, colored)) > 1:
            raise ValueError("more than one of queries, graph and colored was given. A graph brings its queries along.")
        call = ModelCall.of(self.module, args, kwargs)
        if colored is not None:
            return self.run_call(call, colored)
        plain = call if graph is None else original_call(call, graph, self.roles)
        plain.check()
        if call.x.device.type == "cpu" and self.training and torch.is_grad_enabled():
            keep_freed_memory()
        try:
            num_layers, rounds = self._prepare(plain)
            order = rounds if rounds in self._trimmed and not plain.sized else None
            plan = self._plans.get(plain, queries, graph, num_layers, order)
            output = self.run_plan(lift(call, plan, self.roles), plan)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            # If the model cannot take what was given at all, its own words have the shapes of that.
            with side_effect_free(self.module, call.x.device):
                self.module(*plain.args, **plain.kwargs)
            check_no_rows_of_nodes(self.module, plain.num_nodes, error)
            raise
        h = rows_of(output, plan.num_outputs, plan.answer, type(self.module).__name__)
        return h if plan.pool is None else self.pooled(h, plan.pool)

    def run_rows(self, *args: Any, colored: Tensor, **kwargs: Any) -> Any:
        """The model on the rows of any graph, those that `colored` `[rows]` names colored; returns all rows."""
        return self.run_call(ModelCall.of(self.module, args, kwargs), colored)

    def run_call(self, call: ModelCall, colored: Tensor) -> Any:
        """:meth:`run_rows` of arguments whose names are known."""
        rows = ColoredRows.of(colored)
        if rows is None:
            return self.module(*call.args, **call.kwargs)
        # The same edges may be given with other colors, so each call has edges of its own to know its colors by.
        return self._run(call.replaced(edge_index=call.edge_index.clone()), Context(rows))

    def run_plan(self, call: ModelCall, plan: Plan) -> Any:
        """The model on arguments that were lifted to the rows of a plan."""
        return self._run(call, plan.context)

    def _run(self, call: ModelCall, context: Context | None) -> Any:
        if context is None:
            return self.module(*call.args, **call.kwargs)
        self._calls.own(call.edge_index, context)
        with self._calls.running(context):
            return self.module(*call.args, **call.kwargs)

    def reset_parameters(self) -> None:
        """Draws the model's weights again, as far as it can do so itself, and makes the two message functions equal."""
        for child in (self.module, *self.color_maps().values()):
            if callable(reset := getattr(child, "reset_parameters", None)):
                reset()

    def color_maps(self) -> dict[str, ColorMap]:
        """The second message functions, by the names of the layers."""
        return {name: color for name, color in self.colors.named_modules() if isinstance(color, ColorMap)}

    def takes_pairs(self, rounds: Rounds) -> bool:
        """Whether all of these layers take `(x_source, x_target)`; known once they were called."""
        routes = [self._hooks[name].route for name, _ in rounds]
        return all(route is not None and route.pairs for route in routes)

    def _layers(self) -> dict[str, MessagePassing]:
        return {name: layer for name, layer in self.module.named_modules() if isinstance(layer, MessagePassing)}

    def _prepare(self, call: ModelCall) -> tuple[int, Rounds | None]:
        """Detects roles and rounds at the first call, and compares the model with brute force, for each number of
        rounds on the first graph that shows all of it."""
        settings = call.settings
        undecided = self.roles.undecided(call)
        found = self._traced.get(settings)
        if undecided or found is None or (call.num_edges and not self._comparisons.are_over(found[0])):
            with self._calls.lock:
                undecided = self.roles.undecided(call)  # another thread may have been first
                if undecided:
                    self._decide(call, undecided)
                if settings not in self._traced:
                    if len(self._traced) > 100:
                        self._traced.clear()
                    self._traced[settings] = self._trace(call)
                found = self._traced[settings]
                if call.num_edges and not self._comparisons.are_over(found[0]):
                    self._verify(call, *found)
        self._num_layers = found[0]
        return found

    def _decide(self, call: ModelCall, names: list[str]) -> None:
        with trial(self.module, call.x) as module:

            def run(call: ModelCall) -> Any:
                call = call.fresh()
                return module(*call.args, **call.kwargs)

            self.roles.decide(call, names, run, type(self.module).__name__)

    def _trace(self, call: ModelCall) -> tuple[int, Rounds | None]:
        with trial(self, call.x) as twin, twin._calls.running(None):
            call = call.fresh()
            if any(is_lazy(parameter) for parameter in twin.module.parameters()):
                twin.module(*call.args, **call.kwargs)  # weights that come into being on the way have no depth
            per_edge = tuple(v for n, v in call.leaves if self.roles.of(n) == "edge")
            traced = trace(twin.module, twin._layers(), call.args, call.kwargs, call.edge_index, per_edge)
        name = type(self.module).__name__
        rows_of(traced.output, call.num_nodes, None, name)
        check_trace(traced, name)
        return traced.num_layers, None if traced.rounds is None else tuple(traced.rounds.items())

    def _verify(self, call: ModelCall, num_layers: int, rounds: Rounds | None) -> None:
        try:
            with trial(self, call.x) as twin:
                if twin is self:  # it could not be copied
                    verdict = verify(self, call, num_layers, rounds)
                else:  # in double precision, which tells a mistake from rounding
                    verdict = verify(twin.double(), call.double(), num_layers, rounds)
        except (RuntimeError, TypeError):  # the model, or the device, has a dtype of its own
            with trial(self, call.x) as twin:
                verdict = verify(twin, call, num_layers, rounds)
        for name, hooks in twin._hooks.items():
            self._hooks[name].route = hooks.route
            own = self._hooks[name].color
            if hooks.color.channels is not None and own.channels is None and not own.follows_input:
                own.set_channels(hooks.color.channels, call.x.device, own.delta.dtype)
            for update, known in zip(own.updates, hooks.color.updates, strict=True):
                if known.shape is not None:
                    update.set_shape(known.shape, call.x.device, update.weight.dtype)
        self._comparisons.add(num_layers, verdict)
        if verdict.trimmed and rounds is not None:
            self._trimmed.add(rounds)
