r"""Any PyG layer, or any model made of them, to its ID-GNN-Full version."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, overload

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from idgnn.identity.identity_graph import IdentityGraph, identity_graph
from idgnn.layers.eager import eager
from idgnn.layers.wrapping.color_map import ColorMap, source_channels
from idgnn.layers.wrapping.colored_layers import coloring
from idgnn.layers.wrapping.colored_rows import ColoredRows
from idgnn.layers.wrapping.coloring import Route
from idgnn.layers.wrapping.lifting import ModelCall, check_graph, lift, rows_of
from idgnn.layers.wrapping.quiet import quiet
from idgnn.layers.wrapping.refusals import check_no_rows_of_nodes, check_takeable, several_hops
from idgnn.layers.wrapping.steps import count_steps
from idgnn.layers.wrapping.verification import verify


@overload
def identity_aware(module: MessagePassing) -> IdentityAwareLayer: ...
@overload
def identity_aware(module: nn.Module) -> IdentityAwareModel: ...
def identity_aware(module: nn.Module) -> IdentityAwareLayer | IdentityAwareModel:
    r"""The ID-GNN-Full version of a PyG layer or of a model that is made of PyG layers.

    Every message-passing layer gets a second message function for colored nodes (Eq. 3),

    .. math:: \textsc{Msg}_1(\mathbf{h}) = \textsc{Msg}_0(\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1),

    with :math:`\mathbf{W}_1 = \mathbf{I}` and :math:`\mathbf{b}_1 = \mathbf{0}` at first. So a trained model starts as
    exactly what it was, and fine-tuning learns the color. What is given is copied, weights and all: it stays as it is
    when its copy is trained, and an optimizer has to be made from the parameters of what is returned.

    Args:
        module: A `MessagePassing` layer, which becomes an :class:`IdentityAwareLayer`, or any other module that calls
            such layers in its forward, which becomes an :class:`IdentityAwareModel`.

    Raises:
        ValueError: If it cannot be taken exactly: layers that see several hops, that find their own graph, that use
            both directions; models that mix rows or pool inside. Some of it shows at the first call only.

    Example:
        >>> from torch_geometric.nn import GIN
        >>> hexagon = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
        >>> triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
        >>> model = identity_aware(GIN(1, 8, num_layers=3))
        >>> for weight in model.colors.parameters():  # as training would
        ...     _ = nn.init.normal_(weight)
        >>> here, there = (model(torch.ones(6, 1), torch.cat([e, e.flip(0)], 1)) for e in (hexagon, triangles))
        >>> here.shape, model.num_layers, torch.allclose(here, there)
        (torch.Size([6, 8]), 3, False)
    """
    if not isinstance(module, nn.Module):
        raise ValueError(f"identity_aware was given a {type(module).__name__}, expected a PyG layer or a torch module.")
    module = getattr(module, "_orig_mod", module)  # what torch.compile was given
    if any(isinstance(child, (IdentityAwareLayer, IdentityAwareModel)) for child in module.modules()):
        raise ValueError(
            f"{type(module).__name__} is identity-aware already, or holds a part that is. Give what it was made of."
        )
    check_takeable(module)
    return IdentityAwareLayer(module) if isinstance(module, MessagePassing) else IdentityAwareModel(module)


class IdentityAwareLayer(nn.Module):
    """One round of heterogeneous message passing (Eq. 3) by a PyG layer. Made by :func:`identity_aware`.

    Called as the layer itself, with `colored` besides, which says for each row of `x` whether its messages are
    colored. Without it, or with no row colored, the output is that of the layer, bit for bit.

    Example:
        >>> from torch_geometric.nn import SAGEConv
        >>> layer = identity_aware(SAGEConv(2, 4))
        >>> x, edge_index = torch.randn(3, 2), torch.tensor([[0, 1], [1, 2]])
        >>> layer(x, edge_index, colored=torch.tensor([True, False, False])).shape
        torch.Size([3, 4])
    """

    def __init__(self, layer: MessagePassing) -> None:
        super().__init__()
        self.module = _copied(layer)
        self.color = ColorMap(source_channels(layer), like=layer)
        self._routes: dict[str, Route] = {}

    def forward(self, *args: Any, colored: Tensor | None = None, **kwargs: Any) -> Any:
        """The layer's own output, with the messages of the rows that `colored` `[rows]` names colored."""
        rows = None if colored is None else ColoredRows.of(colored)
        if rows is None:
            return self.module(*args, **kwargs)
        return self._colored(rows, args, kwargs)

    @eager
    def _colored(self, rows: ColoredRows, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with coloring({"": (self.module, self.color)}, rows, self._routes):
            return self.module(*args, **kwargs)

    def reset_parameters(self) -> None:
        """Draws the layer's weights anew, and makes the two message functions equal."""
        self.module.reset_parameters()
        self.color.reset_parameters()


class IdentityAwareModel(nn.Module):
    """ID-GNN-Full (Algorithm 1) by the layers of a given model. Made by :func:`identity_aware`.

    Called as the model itself, as `model(x, edge_index, ...)` or with a `Data`, it returns the embedding of every node
    under its own color `[num_nodes, out]`. Besides the model's own arguments it takes

    * `queries`: node ids `[num_queries]`, or pairs `[2, num_queries]` for the conditional embeddings of `queries[0]`
      when `queries[1]` is colored;
    * `graph`: the identity graph of `edge_index`, if it was built before (:func:`idgnn.identity_graph`);
    * `colored`: says that `x` and `edge_index` are an identity graph already; all of its rows are returned. With no
      row colored that is the output of the model, bit for bit.

    What has one row per node or edge among the arguments is carried over to the identity graph. In training, BatchNorm
    takes its statistics over the rows of the identity graph; in evaluation mode the result is exact. torch.compile
    leaves it as it is: it runs, and does not get faster.

    To train from the start on graphs without features, where all rows begin equal, let the color make a difference at
    once: `nn.init.normal_(p, std=0.1)` for each `p` of `colors.parameters()`.

    `module` is the copy of the given model, `colors` holds the color map of each layer under the name that the layer
    has in it, and `num_layers` is the number of rounds, known after the first call.

    Example:
        >>> from torch_geometric.nn import GAT
        >>> model = identity_aware(GAT(2, 8, num_layers=2, out_channels=4))
        >>> x, edge_index = torch.randn(3, 2), torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> model(x, edge_index, queries=torch.tensor([[0, 1], [2, 0]])).shape
        torch.Size([2, 4])
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = _copied(module)
        self.colors = nn.Module()
        for name, layer in self._layers():
            _hold(self.colors, name, ColorMap(source_channels(layer), like=layer))
        self._routes: dict[str, Route] = {}
        self._num_layers: int | None = None
        self._settings = ""
        self._verified = False

    @property
    def num_layers(self) -> int | None:
        """The number of message-passing rounds on the longest chain through the model, `None` before the first call."""
        return self._num_layers

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
        if colored is not None:
            return self._run(colored, args, kwargs)
        call = ModelCall.of(self.module, args, kwargs)
        call.check()
        try:
            num_layers = self._prepare(call)
            if graph is None:
                plain = Data(edge_index=call.edge_index, num_nodes=call.num_nodes)
                graph = identity_graph(plain, num_layers=num_layers, queries=queries)
            check_graph(graph, call, num_layers)
            lifted_args, lifted_kwargs = lift(call, graph)
            output = self._run(graph.colored, lifted_args, lifted_kwargs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            # If the model cannot take what was given at all, its own words have the shapes of that.
            with quiet(self.module, call.x.device):
                self.module(*call.args, **call.kwargs)
            check_no_rows_of_nodes(self.module, call.num_nodes, error)
            raise
        return rows_of(output, graph.node.numel(), graph.query_row, type(self.module).__name__)

    def reset_parameters(self) -> None:
        """Draws the model's weights anew, as far as it can do so itself, and makes the two message functions equal."""
        for child in (self.module, *self._color_maps().values()):
            if callable(reset := getattr(child, "reset_parameters", None)):
                reset()

    def _layers(self) -> Iterator[tuple[str, MessagePassing]]:
        return ((name, layer) for name, layer in self.module.named_modules() if isinstance(layer, MessagePassing))

    def _color_maps(self) -> dict[str, ColorMap]:
        return {name: color for name, color in self.colors.named_modules() if isinstance(color, ColorMap)}

    def _run(self, colored: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The model on the rows of an identity graph."""
        rows = ColoredRows.of(colored)
        if rows is None:
            return self.module(*args, **kwargs)
        colors = self._color_maps()
        with coloring({n: (layer, colors[n]) for n, layer in self._layers()}, rows, self._routes):
            return self.module(*args, **kwargs)

    def _prepare(self, call: ModelCall) -> int:
        """Finds out the number of rounds at the first call, and checks the model on the first graph with edges."""
        if call.settings != self._settings:  # a depth that is passed as an argument, for example
            self._settings, self._num_layers, self._verified = call.settings, None, False
        if self._num_layers is not None and (self._verified or call.num_edges == 0):
            return self._num_layers
        with quiet(self.module, call.x.device):
            if self._num_layers is None:
                self._num_layers = self._count(call)
            if call.num_edges > 0:
                self._verify(call, self._num_layers)
                self._verified = True
        return self._num_layers

    def _verify(self, call: ModelCall, num_layers: int) -> None:
        name = type(self.module).__name__
        try:
            with torch.inference_mode(False):  # inside of it, weights without a width are not converted
                twin = copy.deepcopy(self).double()  # more digits tell a small mistake from rounding
            verify(name, twin._run, call.double(twin.module), num_layers, twin._color_maps().values())
        except (RuntimeError, TypeError):  # the model, or the device, has a dtype of its own
            verify(name, self._run, call, num_layers, self._color_maps().values())

    def _count(self, call: ModelCall) -> int:
        name = type(self.module).__name__
        if any(is_lazy(parameter) for parameter in self.module.parameters()):
            self.module(*call.args, **call.kwargs)  # weights that come into being on the way have no depth
        steps = count_steps(
            self.module, dict(self._layers()), self.module, call.args, call.kwargs, edge_index=call.edge_index
        )
        rows_of(steps.output, call.num_nodes, None, name)
        for layer, hops in steps.inside.items():
            if hops > 1:
                why, advice = several_hops(hops)
                raise ValueError(f"the layer {layer!r} of {name} {why}. {advice}.")
        if steps.astray:
            raise ValueError(
                f"{name} calls propagate of its layer {steps.astray[0]!r} from outside of that layer, where it cannot "
                "be colored. Call the layer itself."
            )
        if steps.own:
            raise ValueError(
                f"{name} sends messages of its own ({steps.own[0]}) outside of its MessagePassing layers, where they "
                "are neither counted nor colored. Put them into a MessagePassing layer."
            )
        if steps.total == 0:
            raise ValueError(f"no message reaches the output of {name}, so there is nothing to color.")
        return steps.total


def _copied(module: Any) -> Any:
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        raise ValueError(
            f"{type(module).__name__} cannot be copied: it keeps a tensor of its last training step. Load its weights "
            "into a fresh one (fresh.load_state_dict(model.state_dict())), and make that identity-aware."
        ) from error


def _hold(tree: nn.Module, name: str, color: ColorMap) -> None:
    """Puts a color map into a tree of modules that mirrors the names of the model."""
    *path, last = name.split(".")
    for part in path:
        if part not in tree._modules:
            tree.add_module(part, nn.Module())
        tree = tree.get_submodule(part)
    tree.add_module(last, color)
