r"""Any PyG layer, or any model made of them, to its ID-GNN-Full version."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any, get_args, overload

from torch import nn
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, MessagePassing

from idgnn.choices import Color, Pool, SecondNodesName, TwoColorOptions, check_num_colors, check_pool
from idgnn.identity.second_nodes import SecondNodes
from idgnn.models.hetero.identity_aware import HeteroIdentityAwareModel, takes_types
from idgnn.models.identity_aware_layer import IdentityAwareLayer
from idgnn.models.identity_aware_model import IdentityAwareModel
from idgnn.models.wrapping.refusals import check_takeable
from idgnn.models.wrapping.roles import ArgumentRole
from idgnn.models.wrapping.wrapped import Wrapped


@overload
def identity_aware(module: HeteroConv | HGTConv | HANConv, *, color: Color = "message") -> HeteroIdentityAwareModel: ...
@overload
def identity_aware(module: MessagePassing, *, color: Color = "message", colors: int = 1) -> IdentityAwareLayer: ...
@overload
def identity_aware(
    module: nn.Module,
    *,
    color: Color = "message",
    colors: int = 1,
    second: SecondNodesName = TwoColorOptions.second,
    radius: int = TwoColorOptions.radius,
    pool: Pool = TwoColorOptions.pool,
    with_self: bool = TwoColorOptions.with_self,
    directed: bool = TwoColorOptions.directed,
    per_node: Iterable[str] = (),
    per_edge: Iterable[str] = (),
    shared: Iterable[str] = (),
) -> IdentityAwareModel: ...
def identity_aware(
    module: nn.Module,
    *,
    color: Color = "message",
    colors: int = 1,
    second: SecondNodesName = TwoColorOptions.second,
    radius: int = TwoColorOptions.radius,
    pool: Pool = TwoColorOptions.pool,
    with_self: bool = TwoColorOptions.with_self,
    directed: bool = TwoColorOptions.directed,
    per_node: Iterable[str] = (),
    per_edge: Iterable[str] = (),
    shared: Iterable[str] = (),
) -> Any:
    r"""The ID-GNN-Full version of a PyG layer or of a model that is made of PyG layers.

    Every message-passing layer gets a second message function for colored nodes (Eq. 3),

    .. math:: \textsc{Msg}_1(\mathbf{h}) = \textsc{Msg}_0(\mathbf{W}_1 \mathbf{h} + \mathbf{b}_1),

    with :math:`\mathbf{W}_1 = \mathbf{I}` and :math:`\mathbf{b}_1 = \mathbf{0}` at first. So a trained model starts as
    exactly what it was, and fine-tuning learns the color. What is given is copied, weights and all: it stays as it is
    when its copy is trained, and an optimizer has to be made from the parameters of what is returned.

    Args:
        module: A `MessagePassing` layer, which becomes an :class:`IdentityAwareLayer`, or any other module that calls
            such layers in its forward, which becomes an :class:`IdentityAwareModel`. A model over several node types
            (`HeteroConv`, `HGTConv`, `HANConv`, `to_hetero`, or a forward that takes `x_dict` and `edge_index_dict`
            or a `HeteroData`) becomes a :class:`idgnn.models.hetero.identity_aware.HeteroIdentityAwareModel`.
        color: `"message"` colors messages alone, as in the paper. With `"message+update"` the colored row also adds a
            linear map of its input, zero at first, to what the layer returns for it: then it differs from its twins,
            which messages alone do not tell apart. These maps have no size until the first call: call the model once
            before you count its parameters.
        colors: With 2, each layer gets a third message function, for nodes of a second color, and a model embeds a
            node by a pool over its states with second nodes, as :class:`idgnn.IDGNN` does but without an MLP. Such a
            model starts as what it was for nodes if `pool` is `"mean"` or `"max"`.
        second: The second nodes of a node, for models with two colors; it, `radius`, `pool`, `with_self` and
            `directed` are those of :class:`idgnn.IDGNN`.
        radius: The radius of the ball.
        pool: `"sum"`, `"mean"` or `"max"`. At first all states of a node are equal, so `"sum"` multiplies what the
            model computed by their number.
        with_self: Whether the state of a node under the first color alone is pooled besides.
        directed: Whether two colors tell the pair (u, v) from (v, u).
        per_node: The names of arguments of a model that have a row for each node. Like `per_edge` and `shared` it is
            needed only where this can be decided neither by PyG's names (`x`, `batch`, `edge_attr`, ...) nor by trying
            it out at the first call.
        per_edge: The names of arguments that have a row for each edge.
        shared: The names of arguments that are the same for all rows.

    Raises:
        ValueError: If it cannot be taken exactly: layers that see several hops, that find their own graph, that use
            both directions; models that mix rows or pool inside. Some of it shows at the first call only.

    Example:
        >>> import torch
        >>> from torch_geometric.nn import GIN
        >>> hexagon = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
        >>> triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
        >>> _ = torch.manual_seed(0)  # one draw in twenty has no active unit left
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
    if any(isinstance(child, Wrapped) for child in module.modules()):
        raise ValueError(
            f"{type(module).__name__} is identity-aware already, or holds a part that is. Give what it was made of."
        )
    if color not in get_args(Color):
        raise ValueError(f"color is {color!r}, expected one of {', '.join(map(repr, get_args(Color)))}.")
    check_num_colors(colors)
    check_pool(pool)
    TwoColorOptions(second, radius, pool, with_self, directed).check_used(colors)
    second_nodes = SecondNodes(second, radius, with_self, directed)
    check_takeable(module)
    if takes_types(module):
        if any((tuple(per_node), tuple(per_edge), tuple(shared))):
            raise ValueError(
                "per_node, per_edge and shared are for models of one node type; here the keys of dictionaries tell."
            )
        if colors != 1:
            raise ValueError("colors=2 is for models of one node type; here a query has one color.")
        return HeteroIdentityAwareModel(module, color)
    said = _roles_by_name(per_node, per_edge, shared)
    if not isinstance(module, MessagePassing):
        _check_names(module, said)
        return IdentityAwareModel(module, said, color, second_nodes if colors == 2 else None, pool)
    if said:
        raise ValueError("per_node, per_edge and shared are for models; the arguments of a layer are given per row.")
    if second_nodes != SecondNodes() or pool != TwoColorOptions.pool:
        raise ValueError(
            f"{type(module).__name__} is a layer, which is given the color of each row and reads no second nodes. "
            "Leave second, radius, pool, with_self and directed out, or wrap a model that calls the layer."
        )
    return IdentityAwareLayer(module, color, colors)


def _roles_by_name(
    per_node: str | Iterable[str], per_edge: str | Iterable[str], shared: str | Iterable[str]
) -> dict[str, ArgumentRole]:
    """The role of each argument that the user names; refuses two of them."""
    roles: tuple[tuple[ArgumentRole, Iterable[str]], ...] = ("node", per_node), ("edge", per_edge), ("shared", shared)
    said: dict[str, ArgumentRole] = {}
    for role, names in roles:
        for name in [names] if isinstance(names, str) else names:
            if said.setdefault(name, role) != role:
                raise ValueError(
                    f"the argument {name} is said to be per {said[name]} and {role}, expected one of them."
                )
    return said


def _check_names(module: nn.Module, said: dict[str, ArgumentRole]) -> None:
    """Refuses names that the forward of a module has no argument for."""
    parameters = signature(module.forward).parameters.values()
    names = {parameter.name for parameter in parameters}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    for name in said:
        if name.split("[")[0] not in names:
            raise ValueError(
                f"{name!r} is said to be per node, per edge or shared, but {type(module).__name__}.forward has no "
                f"such argument; it has {', '.join(sorted(names))}."
            )
