r"""Any model over several node types to its ID-GNN-Full version."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.fx import GraphModule
from torch.nn.parameter import is_lazy
from torch_geometric.data import HeteroData
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, MessagePassing
from torch_geometric.nn.module_dict import ModuleDict

from idgnn.choices import Color
from idgnn.identity.hetero.graph import HeteroIdentityGraph, TypedRows, typed_queries
from idgnn.identity.hetero.queries import TypedQueries, TypedQuerySpec
from idgnn.layers.eager import eager
from idgnn.models.wrapping.calls import ColoredRows, Context
from idgnn.models.wrapping.color_map import ColorMap, source_channels
from idgnn.models.wrapping.hetero_arguments import HeteroCall, TypedPlan
from idgnn.models.wrapping.hetero_calls import HeteroCalls, TypedContext, joined_rows
from idgnn.models.wrapping.hetero_hooks import AllTypesHooks, EdgeTypeHooks, end_types
from idgnn.models.wrapping.hetero_trim import trimmed
from idgnn.models.wrapping.hetero_verify import verify_types
from idgnn.models.wrapping.refusals import check_trace
from idgnn.models.wrapping.trace import trace, trial
from idgnn.models.wrapping.verify import Comparisons
from idgnn.models.wrapping.wrapped import Wrapped, copied, hold

if TYPE_CHECKING:
    from idgnn.models.hetero.wrapped_batches import WrappedPrepared


class HeteroIdentityAwareModel(Wrapped):
    """ID-GNN-Full by the layers of a model over several node types. Made by :func:`idgnn.identity_aware`.

    Called as the model itself, `model(x_dict, edge_index_dict, ...)`, or with a `HeteroData` if its forward takes one,
    and with one of

    * `queries`: a node type `"driver"`, some of its nodes `("driver", ids)`, or pairs `(("circuit", r), ("driver", v))`
      of nodes that are read and colored: the result is `[num_queries, out]`;
    * `graph`: the identity graph, if it was built before (:func:`idgnn.identity_graph`), or a batch of them. Then the
      arguments may be those of the original graph or of the identity graph;
    * `colored`: masks by node type, which name the colored rows of the given graph; all rows are returned, as the model
      itself returns them. With no row colored that is the output of the model, bit for bit.

    Every layer has a color map, `W1 h + b1`, for what a colored node sends (:class:`ColorMap`); a layer of all types at
    once has one for each source type. Those of edge types that start elsewhere than at the colored type are not used.
    With `color="message+update"` a layer also adds a linear map of the colored row's own input, zero at first, to what
    it returns for that row, edge type by edge type.
    HANConv weighs the relations of a node type by a mean over all of its nodes, which is that of the plain graph.

    Example:
        >>> from torch_geometric.nn import HeteroConv, SAGEConv
        >>> from idgnn import identity_aware
        >>> there = torch.tensor([[0, 1], [0, 0]])
        >>> edges = {("a", "to", "b"): there, ("b", "back", "a"): there.flip(0)}
        >>> model = identity_aware(HeteroConv({kind: SAGEConv(2, 4) for kind in edges}))
        >>> x = {"a": torch.randn(2, 2), "b": torch.randn(1, 2)}
        >>> model(x, edges, queries=(("b", [0, 0]), ("a", [0, 1]))).shape, model.num_layers
        (torch.Size([2, 4]), 1)
    """

    def __init__(self, module: nn.Module, color: Color = "message") -> None:
        super().__init__()
        self.module = copied(module)
        self.color: Color = color
        self.colors = nn.Module()
        self._calls = HeteroCalls()
        self._order = _joined_order(self.module)
        self._calls.joined = self._order is not None
        self._hooks: dict[str, EdgeTypeHooks | AllTypesHooks] = {}
        for name, layer in self._layers().items():
            self._hooks[name] = self._hook(name or "layer", layer)
            self._hooks[name].install(layer)
        self._num_layers: int | None = None
        self._traced: dict[str, int] = {}
        self._rounds: dict[str, dict[str, int]] = {}  # of each layer, if none is called twice
        self._comparisons = Comparisons()  # by the number of rounds and the types that are read and colored
        self._trimmed: set[tuple[int, str, str]] = set()  # those that are exact on the rows that matter in each round

    identity = "full"

    @property
    def num_layers(self) -> int | None:
        """The number of message-passing rounds on the longest chain in the last call, `None` before the first one."""
        return self._num_layers

    @eager
    def forward(
        self,
        *args: Any,
        queries: TypedQuerySpec | None = None,
        graph: HeteroIdentityGraph | None = None,
        colored: Mapping[str, Tensor] | None = None,
        **kwargs: Any,
    ) -> Any:
        """The embeddings of the queries `[num_queries, out]`; every other argument is the model's own."""
        if sum(given is not None for given in (queries, graph, colored)) > 1:
            raise ValueError("more than one of queries, graph and colored was given. A graph brings its queries along.")
        call = HeteroCall.of(self.module, args, kwargs)
        if colored is not None:
            return self.run_colored(call, colored)
        if graph is not None:
            if not isinstance(graph, HeteroIdentityGraph):
                raise ValueError(f"graph is a {type(graph).__name__}, expected what idgnn.identity_graph returns.")
            plan = TypedPlan.of_graph(graph)
            roots = graph.root_type if isinstance(graph.root_type, list) else [graph.root_type]
            num_layers = self.check_types(plan.original(call), plan.read, roots[0])
            if int(torch.as_tensor(graph.num_layers).min()) < num_layers:
                raise ValueError(
                    f"graph was built for fewer layers than the model takes rounds of messages, {num_layers}. Build it "
                    f"with identity_graph(data, num_layers={num_layers}, ...)."
                )
            return self.run_plan(call, plan)
        typed = call.typed()
        num_layers = self.trace_call(call)
        parsed = typed_queries(typed, queries, num_layers)
        self.check_types(call, parsed.read, parsed.root)
        plan = TypedPlan.of_rows(TypedRows.of(typed, parsed, num_layers), typed)
        rounds = self.trimmed_rounds(call, parsed.read, parsed.root)
        return self.run_plan(call, plan if rounds is None else trimmed(plan, num_layers, rounds))

    def prepare(self, data: HeteroData, queries: TypedQuerySpec | TypedQueries) -> WrappedPrepared:
        """Works out the part of a graph that answers the queries, and its rows, to be run by :meth:`run`."""
        from idgnn.models.hetero.wrapped_batches import WrappedGraph  # which needs to know what this is

        graph = WrappedGraph(self, data, queries)
        return graph.prepare(graph.queries).to(next(self.parameters(), torch.empty(0)).device)

    def run(self, ready: WrappedPrepared) -> Tensor:
        """The embeddings of what :meth:`prepare`, or a :class:`idgnn.RootLoader`, made ready: `[num_queries, out]`."""
        return self.run_plan(ready.call, ready.plan)

    def embed(
        self,
        data: HeteroData,
        queries: TypedQuerySpec | TypedQueries,
        *,
        memory: float | str | None = None,
        progress: bool = False,
    ) -> Tensor:
        """The answers to any number of queries, in evaluation mode and without gradients, on the CPU.

        As many queries are answered at a time as the memory allows, each batch on the part of the graph that it sees.
        The model is given `x_dict`, `edge_index_dict`, and `edge_attr_dict` and `edge_weight_dict` if it takes them; or
        the `HeteroData`, if it takes one.
        """
        from idgnn.models.hetero.wrapped_batches import embed_wrapped  # which needs to know what this is

        return embed_wrapped(self, data, queries, memory, progress)

    def call_of(self, data: HeteroData) -> HeteroCall:
        """The arguments of the model for a graph."""
        parameters = inspect.signature(self.module.forward).parameters
        if any("HeteroData" in str(parameter.annotation) for parameter in parameters.values()):
            return HeteroCall.of(self.module, (data,), {})
        named: dict[str, Any] = {}
        for name in ("edge_attr", "edge_weight"):
            found = {kind: data[kind][name] for kind in data.edge_types if data[kind].get(name) is not None}
            argument = next((each for each in (f"{name}_dict", name) if each in parameters), None)
            if found and argument is not None:
                named[argument] = found
        return HeteroCall.of(self.module, (data.x_dict, data.edge_index_dict), named)

    def run_plan(self, call: HeteroCall, plan: TypedPlan) -> Any:
        """The answers of a plan."""
        output = self._run(plan.lift(call), plan)
        colored = any(bool(mask.any()) for mask in plan.colored.values())
        num_rows = plan.num_outputs if colored else plan.node[plan.read].numel()
        return read_rows(output, plan.read, plan.answer, num_rows, type(self.module).__name__)

    def trimmed_rounds(self, call: HeteroCall, read: str, root: str) -> dict[str, int] | None:
        """The round of each layer, if the model is known to be exact where each computes the rows that matter alone."""
        known = (self.trace_call(call), read, root) in self._trimmed
        return self._rounds.get(call.settings) if known else None

    def run_colored(self, call: HeteroCall, colored: Mapping[str, Tensor]) -> Any:
        """The model on the graph itself, those rows colored that the masks name; all rows are returned."""
        for kind, mask in colored.items():
            if kind not in call.num_nodes:
                raise ValueError(
                    f"colored names the node type {kind!r}, but the graph has {', '.join(map(repr, call.num_nodes))}."
                )
            if mask.shape != (call.num_nodes[kind],) or mask.dtype != torch.bool:
                raise ValueError(
                    f"colored of {kind!r} is {mask.dtype} {list(mask.shape)}, expected bool [{call.num_nodes[kind]}]."
                )
        if not any(bool(mask.any()) for mask in colored.values()):
            return self.module(*call.args, **call.kwargs)
        # What HANConv weighs relations by is a mean over the plain rows, so they have to be there.
        weighs = any(isinstance(layer, HANConv) for layer in self.module.modules())
        plan = TypedPlan.of_colors(call, colored, weighs)
        output = self._run(plan.lift(call), plan)
        return _behind(output, plan) if weighs else output

    def _run(self, call: HeteroCall, plan: TypedPlan) -> Any:
        contexts = {kind: ColoredRows.of(mask) for kind, mask in plan.colored.items()}
        if all(rows is None for rows in contexts.values()):  # no color arrives anywhere
            return self.module(*call.args, **call.kwargs)
        for kind, edges in call.edge_index.items():
            rows = contexts[kind[0]]
            context = None if rows is None else Context(rows)
            self._calls.own_type(edges, TypedContext(context, contexts, kind, plan.trim, plan.plain_row))
        joined = None if self._order is None else joined_rows(plan.colored, self._order)
        # Of layers that are given other edges; where that cannot be, any rows will do.
        current = joined or next(rows for rows in contexts.values() if rows is not None)
        with self._calls.running(Context(current)):
            return self.module(*call.args, **call.kwargs)

    def reset_parameters(self) -> None:
        """Draws the model's weights again, as far as it can do so itself, and makes the two message functions equal."""
        for child in (self.module, *self.color_maps()):
            if callable(reset := getattr(child, "reset_parameters", None)):
                reset()

    def color_maps(self) -> list[ColorMap]:
        """The second message functions."""
        return [color for color in self.colors.modules() if isinstance(color, ColorMap)]

    def trace_call(self, call: HeteroCall) -> int:
        """The number of message-passing rounds that the model takes in this call, without side effects."""
        if call.settings not in self._traced:
            with self._calls.lock, trial(self, call.args) as twin, twin._calls.running(None):
                if any(is_lazy(parameter) for parameter in twin.module.parameters()):
                    twin.module(*call.args, **call.kwargs)
                traced = trace(twin.module, twin._layers(), call.args, call.kwargs, tuple(call.edge_index.values()))
            check_trace(traced, type(self.module).__name__)
            self._traced[call.settings] = traced.num_layers
            if traced.once is not None:
                self._rounds[call.settings] = traced.once
        self._num_layers = self._traced[call.settings]
        return self._num_layers

    def check_types(self, call: HeteroCall, read: str, root: str) -> int:
        """Counts the rounds, and compares the model with brute force, for each pair of types on the first graph that
        shows all of it."""
        num_layers = self.trace_call(call)
        key = num_layers, read, root
        if not self._comparisons.are_over(key):
            rounds = self._rounds.get(call.settings)
            with self._calls.lock:
                try:
                    with trial(self, call.args) as twin:
                        if twin is self:  # it could not be copied
                            verdict = verify_types(self, call, num_layers, read, root, rounds)
                        else:  # in double precision, which tells a mistake from rounding
                            verdict = verify_types(twin.double(), call.double(), num_layers, read, root, rounds)
                except (RuntimeError, TypeError):  # the model, or the device, has a dtype of its own
                    with trial(self, call.args) as twin:
                        verdict = verify_types(twin, call, num_layers, read, root, rounds)
            if verdict is not None:
                self._comparisons.add(key, verdict)
                if verdict.trimmed:
                    self._trimmed.add(key)
        return num_layers

    def _layers(self) -> dict[str, MessagePassing]:
        return {name: layer for name, layer in self.module.named_modules() if isinstance(layer, MessagePassing)}

    def _hook(self, name: str, layer: MessagePassing) -> EdgeTypeHooks | AllTypesHooks:
        kinds, targets = end_types(layer)
        if kinds is None:
            color = ColorMap(source_channels(layer), like=layer, color=self.color)
            hold(self.colors, name, color)
            return EdgeTypeHooks(name, color, self._calls)
        widths = getattr(layer, "in_channels", None)
        maps = ModuleDict()
        for kind in kinds:
            width = widths.get(kind) if isinstance(widths, dict) else widths
            known = width if isinstance(width, int) and width > 0 else None
            # A type that receives nothing has no update.
            maps[kind] = ColorMap(known, like=layer, color=self.color if kind in targets else "message")
        hold(self.colors, name, maps)
        return AllTypesHooks(name, maps, self._calls)


def takes_types(module: nn.Module) -> bool:
    """Whether a module works on dictionaries of node types: by its parts, or by the arguments of its forward."""
    if isinstance(module, GraphModule) and any(
        getattr(node.target, "__name__", "") in ("get_dict", "get_node_offset_dict") for node in module.graph.nodes
    ):
        return True  # by to_hetero or to_hetero_with_bases
    if any(isinstance(part, (HeteroConv, HGTConv, HANConv)) for part in module.modules()):
        return True
    parameters = list(inspect.signature(module.forward).parameters.values())
    hint = str(parameters[0].annotation).lower().removeprefix("typing.") if parameters else ""
    return (
        hint.startswith(("dict[", "mapping["))
        or any(
            parameter.name in ("x_dict", "edge_index_dict") or "HeteroData" in str(parameter.annotation)
            for parameter in parameters
        )
        or any(takes_types(part) for part in module.modules() if isinstance(part, GraphModule) and part is not module)
    )


def read_rows(output: Any, read: str, answer: Tensor, num_rows: int, name: str) -> Any:
    """The rows of the answers, of an output by node type or of the type that is read alone."""
    if isinstance(output, Mapping):
        if output.get(read) is None:
            there = ", ".join(repr(kind) for kind, value in output.items() if value is not None)
            raise ValueError(f"{name} returned no states of {read!r}, which is read; it returned {there or 'none'}.")
        output = output[read]
    if not isinstance(output, Tensor) or output.dim() == 0 or output.size(0) != num_rows:
        given = f"a tensor of shape {list(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        raise ValueError(
            f"{name} returned {given} for {num_rows} rows of {read!r}, expected one row each, or a dictionary by node "
            "type of such. Make the part of it identity-aware that returns that."
        )
    return output.index_select(0, answer)


def _behind(output: Any, plan: TypedPlan) -> Any:
    """The rows behind the plain copy, of an output by node type."""
    if not isinstance(output, Mapping):
        raise ValueError("a model with HANConv has to return a dictionary by node type to be colored by hand.")
    return {kind: None if value is None else value[plan.plain_row[kind].numel() :] for kind, value in output.items()}


def _joined_order(module: nn.Module) -> tuple[str, ...] | None:
    """The order in which a model made by `to_hetero_with_bases` joins the node types; `None` if it does not."""
    for part in module.modules():
        if isinstance(part, GraphModule):
            for node in part.graph.nodes:
                if getattr(node.target, "__name__", "") == "get_node_offset_dict":
                    return tuple(node.args[1])
    return None
