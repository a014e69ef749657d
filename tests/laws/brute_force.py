"""What the library is compared with: one colored copy of the whole graph per query, every layer from its equation.

Plain dense PyTorch over the parameters of the model in question. Nothing here calls the library's own rounds. `colored`
is the color of each node, 0, 1 or 2; of one color it may be a mask.
"""

import torch
from torch import Tensor, nn

from idgnn import IDGNN, IdentityConv


def embeddings(model: IDGNN, x: Tensor, edge_index: Tensor, asked: list[tuple[int, int]], **edge: Tensor) -> Tensor:
    """The embedding of node u when node v is colored, for each (u, v) asked."""
    after = {}
    for _, color in asked:
        colored = torch.arange(x.size(0)) == color
        after[color] = network(model, x, edge_index, colored, **edge)
    return torch.stack([after[color][node] for node, color in asked])


def two_colors(model: IDGNN, x: Tensor, edge_index: Tensor, asked: list[list[tuple[int, int, int]]], **edge) -> Tensor:
    """The embedding of each list of (read, first color, second color), pooled; a node with both has the first."""
    pooled = []
    for triples in asked:
        found = []
        for read, first, second in triples:
            colored = torch.zeros(x.size(0), dtype=torch.long)
            colored[second], colored[first] = 2, 1
            found.append(states(model, x, edge_index, colored, **edge)[read])
        hidden, _, last = model.before_pool
        mapped = linear(last, act(model.act, linear(hidden, torch.stack(found))))
        pooled.append({"sum": mapped.sum(0), "mean": mapped.mean(0), "max": mapped.amax(0)}[model.pool])
    return finish(model, torch.stack(pooled))


def network(model: IDGNN, x: Tensor, edge_index: Tensor, colored: Tensor, **edge: Tensor) -> Tensor:
    """The whole encoder in evaluation mode on one copy of the graph."""
    return finish(model, states(model, x, edge_index, colored, **edge))


def states(model: IDGNN, x: Tensor, edge_index: Tensor, colored: Tensor, **edge: Tensor) -> Tensor:
    """After the last round."""
    h = act(model.act, linear(model.lin_in, x))
    for conv, norm in zip(model.convs, model.norms, strict=True):
        added = act(model.act, batch_norm(norm.module, one_round(conv, h, edge_index, colored, **edge)))
        h = h + added if model.residual else added
    return h


def finish(model: IDGNN, h: Tensor) -> Tensor:
    if model.normalize:
        h = h / h.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return linear(model.lin_out, h)


def act(name: str, x: Tensor) -> Tensor:
    """SiLU is x times the logistic function, GELU x times the distribution function of the normal distribution."""
    if name == "relu":
        return x.clamp(min=0)
    return x * torch.sigmoid(x) if name == "silu" else x * (1 + torch.erf(x / 2**0.5)) / 2


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    out = x @ layer.weight.t()
    return out if layer.bias is None else out + layer.bias


def batch_norm(norm: nn.BatchNorm1d, x: Tensor) -> Tensor:
    return (x - norm.running_mean) / (norm.running_var + norm.eps).sqrt() * norm.weight + norm.bias


def one_round(
    conv: IdentityConv,
    h: Tensor,
    edge_index: Tensor,
    colored: Tensor,
    edge_weight: Tensor | None = None,
    edge_attr: Tensor | None = None,
) -> Tensor:
    """One round of Eq. 3 on all nodes of a graph."""
    edges = list(zip(*edge_index.tolist(), strict=True))
    operator = conv.operator
    if conv.conv == "gcn":
        return gcn(operator, h, edges, colored, edge_weight) + own(operator, h, colored)
    if conv.conv == "sage":
        return sage(operator, h, edges, colored) + own(operator, h, colored)
    if conv.conv == "gat":
        return gat(operator, h, edges, colored) + own(operator, h, colored)
    if conv.conv == "gin":
        return gin(operator, h, edges, colored)
    return gine(operator, h, edges, colored, edge_attr)


def sent(operator: nn.Module, h: Tensor, colored: Tensor) -> Tensor:
    """The message of every node: W_c h if it has color c, W_0 h if it has none."""
    out = linear(operator.lin, h)
    for color, lin in ((1, operator.lin_colored), (2, operator.lin_second)):
        out = out if lin is None else torch.where((colored == color)[:, None], linear(lin, h), out)
    return out


def own(operator: nn.Module, h: Tensor, colored: Tensor) -> Tensor:
    """The product of its own W_c and h of each colored node, if updates are colored, and zero of all others."""
    if operator.update_colored is None:
        return h.new_zeros(())
    first = (colored == 1)[:, None] * (h @ operator.update_colored.t())
    if operator.update_second is None:
        return first
    return first + (colored == 2)[:, None] * (h @ operator.update_second.t())


def gcn(operator: nn.Module, h: Tensor, edges: list, colored: Tensor, edge_weight: Tensor | None) -> Tensor:
    """D^-1/2 (A + I) D^-1/2 times the messages; a self-loop that is there already takes the place of that of I."""
    size = h.size(0)
    cells = [[h.new_zeros(()) for _ in range(size)] for _ in range(size)]  # cells[target][source]
    for node in range(size):
        cells[node][node] = h.new_ones(())
    for number, (source, target) in enumerate(edges):
        weight = h.new_ones(()) if edge_weight is None else edge_weight[number]
        cells[target][source] = weight if source == target else cells[target][source] + weight
    adjacency = torch.stack([torch.stack(row) for row in cells])
    scale = adjacency.sum(1) ** -0.5
    out = scale[:, None] * adjacency * scale @ sent(operator, h, colored)
    return out if operator.bias is None else out + operator.bias


def sage(operator: nn.Module, h: Tensor, edges: list, colored: Tensor) -> Tensor:
    """Eq. 2: ReLU messages, their maximum (mean, sum), beside the node's own state."""
    messages = sent(operator, h, colored).relu()
    collected = []
    for node in range(h.size(0)):
        arriving = [messages[source] for source, target in edges if target == node]
        stack = torch.stack(arriving) if arriving else messages.new_zeros(1, messages.size(1))
        collected.append({"max": stack.amax(0), "mean": stack.mean(0), "sum": stack.sum(0)}[operator.aggr])
    return linear(operator.lin_out, torch.cat([torch.stack(collected), h], dim=1))


def gat(operator: nn.Module, h: Tensor, edges: list, colored: Tensor) -> Tensor:
    """Attention over the in-neighbors and the node itself; the asking side is never colored."""
    heads = operator.heads
    messages = sent(operator, h, colored).view(h.size(0), heads, -1)
    asking = linear(operator.lin, h).view(h.size(0), heads, -1)
    out = []
    for node in range(h.size(0)):
        sources = [source for source, target in edges if target == node and source != node] + [node]
        by_head = []
        for head in range(heads):
            theirs = messages[sources, head]
            score = theirs @ operator.att_source[head] + asking[node, head] @ operator.att_target[head]
            score = torch.where(score > 0, score, operator.negative_slope * score)
            by_head.append(torch.softmax(score, 0) @ theirs)
        out.append(torch.cat(by_head))
    stacked = torch.stack(out)
    return stacked if operator.bias is None else stacked + operator.bias


def gin(operator: nn.Module, h: Tensor, edges: list, colored: Tensor) -> Tensor:
    """V act(W_0 (1 + eps) h_u + sum of W h_s + b) + c."""
    weight = operator.lin.weight
    messages = h @ weight.t()
    for color, lin in ((1, operator.lin_colored), (2, operator.lin_second)):
        messages = messages if lin is None else torch.where((colored == color)[:, None], h @ lin.weight.t(), messages)
    total = []
    for node in range(h.size(0)):
        inside = weight @ h[node] * (1 + operator.eps) + operator.lin.bias
        for source, target in edges:
            if target == node:
                inside = inside + messages[source]
        total.append(inside)
    return linear(operator.lin_out, act(operator.act, torch.stack(total) + own(operator, h, colored)))


def gine(operator: nn.Module, h: Tensor, edges: list, colored: Tensor, edge_attr: Tensor) -> Tensor:
    """MLP((1 + eps) h_u + sum of ReLU(h_s + E f)); a colored source sends ReLU(W_1 h_s + E_1 f)."""
    total = [(1 + operator.eps) * h[node] for node in range(h.size(0))]
    for number, (source, target) in enumerate(edges):
        if colored[source] == 1:
            message = operator.lin_colored.weight @ h[source] + linear(operator.lin_edge_colored, edge_attr[number])
        elif colored[source] == 2:
            message = operator.lin_second.weight @ h[source] + linear(operator.lin_edge_second, edge_attr[number])
        else:
            message = h[source] + linear(operator.lin_edge, edge_attr[number])
        total[target] = total[target] + message.relu()
    given = torch.stack(total) + own(operator, h, colored)
    return linear(operator.lin_out, act(operator.act, linear(operator.lin_in, given)))
