"""Private interfaces of PyTorch and PyG that are used, listed in docs/architecture.md: that they do what we rely on.

If one of these fails under a new version, that page says which module uses the interface, and for what.
"""

import copy
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GraphSAGE, to_hetero, to_hetero_with_bases
from torch_geometric.nn.models.rev_gnn import InvertibleModule

PAGE = (Path(__file__).parents[1] / "docs/architecture.md").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "_base_cls",
        "_slice_dict",
        "_inc_dict",
        "_store._num_nodes",
        "_version",
        "WeakTensorKeyDictionary",
        "_sparse_mm_reduce_impl",
        "TorchDispatchMode",
        "_schema",
        "_pytree",
        "StorageWeakRef",
        "_cdata",
        "_current_graph_task_id",
        "_forward_pre_hooks",
        "InvertibleModule",
        "get_dict",
        "get_node_offset_dict",
        "TORCHELASTIC_ERROR_FILE",
    ],
)
def test_the_page_names_it(name):
    assert name in PAGE


def test_batch_base_cls_and_slice_dict():
    class Marked(Data):
        pass

    assert isinstance(Batch(_base_cls=Marked), Marked)
    batch = Batch.from_data_list([Data(x=torch.ones(n, 1), num_nodes=n) for n in (2, 3)])
    assert batch._slice_dict["x"].tolist() == [0, 2, 5]
    assert "x" in batch._inc_dict
    assert batch._store._num_nodes == [2, 3]


def test_tensor_version_counts_changes_in_place():
    tensor = torch.zeros(2)
    before = tensor._version
    tensor.add_(1)
    assert tensor._version > before


def test_weak_tensor_keys_go_with_their_tensor():
    kept, tensor = WeakTensorKeyDictionary(), torch.zeros(1)
    kept[tensor] = 1
    assert kept[tensor] == 1 and len(kept) == 1
    del tensor
    assert len(kept) == 0


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
def test_sparse_mm_reduce_impl_gives_maxima_and_where_they_came_from():
    matrix = torch.sparse_csr_tensor(
        torch.tensor([0, 2, 2]), torch.tensor([0, 2]), torch.ones(2), (2, 3), check_invariants=False
    )
    x = torch.tensor([[1.0], [9.0], [5.0]], requires_grad=True)
    value, winner = torch.ops.aten._sparse_mm_reduce_impl(matrix, x, "amax")
    assert value[0].tolist() == [5.0] and winner[0].tolist() == [1]


def test_dispatch_mode_sees_operations_by_their_schema():
    names = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            names.append(func._schema.name)
            return func(*args, **(kwargs or {}))

    with Watch():
        torch.ones(2).add(1)
    assert "aten::add" in names


def test_pytree_reaches_nested_values():
    nested = {"a": [1, (2, 3)]}
    assert tree_leaves(nested) == [1, 2, 3]
    assert tree_map(lambda value: value + 1, nested) == {"a": [2, (3, 4)]}


def test_storages_are_known_by_their_address_while_they_live():
    tensor = torch.zeros(3)
    reference = StorageWeakRef(tensor.untyped_storage())
    assert tensor.detach().untyped_storage()._cdata == tensor.untyped_storage()._cdata
    assert not reference.expired()
    del tensor
    assert reference.expired()


def test_current_graph_task_id_tells_a_backward_pass():
    seen = []
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: seen.append(torch._C._current_graph_task_id()))
    assert torch._C._current_graph_task_id() == -1
    y.sum().backward()
    assert seen[0] != -1


def test_forward_pre_hooks_are_copied_with_a_module():
    layer = GCNConv(1, 1)
    layer.register_forward_pre_hook(print)
    assert list(copy.deepcopy(layer)._forward_pre_hooks.values()) == [print]


def test_reversible_blocks_ask_themselves_for_their_parameters():
    """The gradients of a reversible block go to `self.parameters()`, which an instance may replace."""
    import inspect

    assert "self.parameters()" in inspect.getsource(InvertibleModule)


def test_to_hetero_leaves_its_functions_in_the_graph():
    kinds = ["a"], [("a", "to", "a"), ("a", "from", "a")]
    for made, name in (
        (to_hetero(GraphSAGE(2, 2, 1), kinds), "get_dict"),
        (to_hetero_with_bases(GraphSAGE(2, 2, 1), kinds, num_bases=2), "get_node_offset_dict"),
    ):
        found = [node for node in made.graph.nodes if getattr(node.target, "__name__", "") == name]
        assert found
        if name == "get_node_offset_dict":
            assert list(found[0].args[1]) == ["a"]
