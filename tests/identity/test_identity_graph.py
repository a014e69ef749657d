"""What a user of `identity_graph` and `ToIdentityGraph` meets: attributes, queries, warnings, loaders, devices."""

import copy
import inspect

import pytest
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose, ToUndirected

from idgnn import IdentityGraph, ToIdentityGraph, identity_graph
from idgnn.identity.identity_graph import UnreachedColorWarning


def path(size: int, **attributes) -> Data:
    """0 - 1 - 2 - ..., with the features 0, 1, 2, ..."""
    edges = [(node, node + 1) for node in range(size - 1)]
    edge_index = torch.tensor(edges + [(b, a) for a, b in edges]).t().contiguous()
    return Data(x=torch.arange(float(size)).unsqueeze(1), edge_index=edge_index, **attributes)


def test_a_path_of_three_nodes_written_out():
    graph = identity_graph(path(3), num_layers=2)
    # Plain rows 0 to 2; then, of each node, those within one step: (0|0) (1|0), (0|1) (1|1) (2|1), (1|2) (2|2).
    assert graph.node.tolist() == [0, 1, 2, 0, 1, 0, 1, 2, 1, 2]
    assert graph.colored.nonzero().flatten().tolist() == [3, 6, 9]
    assert graph.arrival.tolist() == [0, 0, 0, 0, 1, 1, 0, 1, 1, 0]
    assert graph.query_row.tolist() == [3, 6, 9]
    assert graph.plain_row.tolist() == [0, 1, 2]
    assert graph.plain_edge.tolist() == [0, 1, 2, 3]
    assert graph.num_layers == 2
    assert graph.x.flatten().tolist() == graph.node.tolist()
    into_4 = graph.edge_index[0, graph.edge_index[1] == 4].tolist()  # (1|0) hears (0|0), and of node 2 the plain row
    assert sorted(into_4) == [2, 3]


def test_every_documented_attribute_is_there_and_every_attribute_is_documented():
    graph = identity_graph(path(3, edge_attr=torch.ones(4, 2), edge_weight=torch.ones(4)), num_layers=2)
    documented = inspect.getdoc(IdentityGraph)
    for key in set(graph.keys()) - {"num_nodes", "num_layers"}:
        assert f"`{key}`" in documented, f"{key} is not documented"
    assert graph.validate()
    assert graph.edge_attr.shape == (graph.num_edges, 2)
    assert graph.edge_weight.shape == (graph.num_edges,)
    for key in ("edge_index", "edge", "node", "arrival", "plain_row", "plain_edge", "query_row"):
        assert graph[key].dtype == torch.long, key
    assert graph.colored.dtype == torch.bool


def test_the_original_graph_is_in_it_and_stays_as_it_was():
    data = path(4, edge_attr=torch.randn(6, 2), y=torch.tensor([1]))
    before = copy.deepcopy(data)
    graph = identity_graph(data, num_layers=3)
    assert torch.equal(graph.edge_index[:, graph.plain_edge], data.edge_index)
    assert torch.equal(graph.edge_attr[graph.plain_edge], data.edge_attr)
    assert torch.equal(graph.x[graph.plain_row], data.x)
    assert set(data.keys()) == set(before.keys())
    assert all(torch.equal(data[key], before[key]) for key in before.keys())  # noqa: SIM118


def test_what_speaks_of_nodes_labels_and_graphs_is_carried_as_it_is():
    data = path(3, y=torch.tensor([5, 6, 7]), train_mask=torch.tensor([True, False, True]), name="a path")
    graph = identity_graph(data, num_layers=3)
    assert graph.y.tolist() == [5, 6, 7]
    assert graph.train_mask.tolist() == [True, False, True]
    assert graph.name == "a path"


def test_an_attribute_of_the_users_is_not_lost_without_a_word():
    """`node` and `edge` are also what others call their own attributes."""
    for key in ("node", "edge", "colored", "num_layers", "query_row"):
        data = path(3)
        data[key] = torch.tensor([41, 42, 43])
        with pytest.raises(ValueError, match=f"{key}.*rename|{key}.*Rename"):
            identity_graph(data, num_layers=2)


def test_an_identity_graph_is_not_made_into_one_again():
    once = identity_graph(path(3), num_layers=2)
    with pytest.raises(ValueError, match="identity graph already"):
        identity_graph(once, num_layers=2)


def test_without_features_num_nodes_counts_the_nodes():
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4)
    graph = identity_graph(data, num_layers=3)
    assert graph.plain_row.numel() == 4
    assert "x" not in graph
    assert graph.num_nodes == 4 + 4  # a directed edge leads nowhere back: each node has its own row, no more


def test_other_node_features_count_the_nodes_as_they_do_in_pyg():
    data = Data(pos=torch.randn(4, 3), edge_index=torch.tensor([[0], [1]]))
    assert identity_graph(data, num_layers=3).plain_row.numel() == data.num_nodes == 4


def test_some_roots_cost_their_own_cones_alone():
    graph = identity_graph(path(5), num_layers=3, queries=torch.tensor([0, 4, 0]))
    assert graph.num_nodes == 5 + 2 + 2
    assert graph.node[graph.query_row].tolist() == [0, 4, 0]
    assert graph.query_row[0] == graph.query_row[2]
    assert graph.colored.sum() == 2


def test_a_pair_of_equal_nodes_is_a_node_query():
    data = path(4)
    roots = torch.tensor([2, 1])
    nodes, pairs = identity_graph(data, 3, roots), identity_graph(data, 3, torch.stack([roots, roots]))
    assert all(torch.equal(nodes[key], pairs[key]) for key in ("edge_index", "node", "colored", "query_row"))


def test_pairs_read_the_first_and_color_the_second():
    graph = identity_graph(path(3), num_layers=2, queries=torch.tensor([[0], [2]]))
    assert graph.node[graph.query_row].tolist() == [0]
    assert graph.node[graph.colored].tolist() == [2]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int16, torch.uint8])
def test_ids_may_be_any_whole_numbers(dtype):
    data = path(4)
    asked = torch.tensor([[0, 1], [2, 1]])
    expected = identity_graph(data, 2, asked)
    data.edge_index = data.edge_index.to(dtype)
    graph = identity_graph(data, 2, asked.to(dtype))
    assert torch.equal(graph.edge_index, expected.edge_index)
    assert torch.equal(graph.query_row, expected.query_row)


def test_a_graph_without_nodes_gives_an_empty_identity_graph():
    """A filter can leave nothing of a graph. PyG's layers answer that with no rows, and so does every node query."""
    graph = identity_graph(Data(x=torch.empty(0, 2), edge_index=torch.empty(2, 0, dtype=torch.long)), num_layers=3)
    assert (graph.num_nodes, graph.num_edges) == (0, 0)
    assert graph.query_row.numel() == 0


def test_faces_of_a_batch_name_the_nodes_of_their_graph():
    triangle = Data(num_nodes=3, edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), face=torch.tensor([[0], [1], [2]]))
    found = Batch.from_data_list([identity_graph(triangle, 2)] * 2)
    assert found.face.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_a_graph_without_nodes_does_not_disturb_its_batch():
    nothing = Data(x=torch.empty(0, 1), edge_index=torch.empty(2, 0, dtype=torch.long))
    listed = [path(2), nothing, path(3)]
    found = identity_graph(Batch.from_data_list(listed), 2)
    expected = Batch.from_data_list([identity_graph(data, 2) for data in listed])
    assert torch.equal(found.ptr, expected.ptr)
    assert torch.equal(found.edge_index, expected.edge_index)
    assert torch.equal(found.query_row, expected.query_row)


@pytest.mark.parametrize("chunk", [1, 2, 5, 2**22])
def test_a_color_that_many_ask_for_is_built_as_one_however_small_the_parts(monkeypatch, chunk):
    """Its queries share rows; in two parts they would be there twice."""
    monkeypatch.setattr("idgnn.identity.cone.CHUNK", chunk)
    monkeypatch.setattr("idgnn.identity.identity_graph.CHUNK", chunk)
    asked = torch.tensor([[0, 4, 2, 1, 3], [2, 2, 2, 1, 2]])
    graph = identity_graph(path(5), 3, asked)
    # Of color 1: 0, 1, 2. Of color 2, which is read everywhere: all five.
    assert graph.node.tolist() == [0, 1, 2, 3, 4, 0, 1, 2, 0, 1, 2, 3, 4]
    assert graph.query_row.tolist() == [8, 12, 10, 6, 11]


# --- Warnings


def test_queries_out_of_reach_are_counted_in_one_warning():
    asked = torch.tensor([[0, 0, 4, 1], [1, 4, 0, 4]])  # 1, 4, 4 and 3 steps
    with pytest.warns(UnreachedColorWarning, match="3 of 4 queries.*more than 2 steps.*more layers") as caught:
        identity_graph(path(5), num_layers=2, queries=asked)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_queries_within_reach_give_no_warning(recwarn):
    identity_graph(path(5), num_layers=4, queries=torch.tensor([[0, 4], [4, 4]]))
    identity_graph(path(5), num_layers=1)
    assert not recwarn.list


def test_the_way_there_counts_not_the_way_back():
    one_way = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    identity_graph(one_way, 1, torch.tensor([[1], [0]]))  # the color of 0 arrives at 1
    with pytest.warns(UnreachedColorWarning, match="1 of 1"):
        identity_graph(one_way, 1, torch.tensor([[0], [1]]))


# --- The transform, loaders, devices, files


def test_the_transform_is_the_function():
    data = path(4, edge_label_index=torch.tensor([[0, 1], [1, 3]]))
    transform = ToIdentityGraph(num_layers=2, queries="edge_label_index")
    expected = identity_graph(data, 2, data.edge_label_index)
    graph = transform(data)
    assert all(torch.equal(graph[key], expected[key]) for key in ("edge_index", "node", "query_row"))
    assert "colored" not in data  # transforms leave their input alone
    assert repr(transform) == "ToIdentityGraph(num_layers=2, queries='edge_label_index')"


def test_the_transform_composes():
    one_way = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    graph = Compose([ToUndirected(), ToIdentityGraph(num_layers=3)])(one_way)
    assert torch.equal(graph.node, identity_graph(path(3), 3).node)


class Paths(InMemoryDataset):
    """Paths of 2, 3 and 4 nodes with a label and two pairs each."""

    def __init__(self, transform=None):
        super().__init__(transform=transform)
        pairs = torch.tensor([[0, 1], [1, 1]])
        listed = [path(size, y=torch.tensor([size]), edge_label_index=pairs) for size in (2, 3, 4)]
        self.data, self.slices = self.collate(listed)


@pytest.mark.parametrize("queries", [None, "edge_label_index"])
def test_a_dataset_with_the_transform_goes_through_a_loader(queries):
    dataset = Paths(ToIdentityGraph(num_layers=3, queries=queries))
    (batch,) = DataLoader(dataset, batch_size=3)
    assert isinstance(batch, IdentityGraph)
    assert batch.y.tolist() == [2, 3, 4]
    first = [0, 2, 5]  # the first node of each graph in the batch
    asked = range(9) if queries is None else [node + offset for offset in first for node in (0, 1)]
    assert batch.node[batch.query_row].tolist() == list(asked)
    assert batch.edge_label_index[0].tolist() == [0, 1, 2, 3, 5, 6]
    assert torch.equal(batch.x[batch.plain_row].flatten(), torch.tensor([0.0, 1, 0, 1, 2, 0, 1, 2, 3]))
    original = Batch.from_data_list([Paths()[number] for number in range(3)])
    assert torch.equal(batch.node[batch.edge_index], original.edge_index[:, batch.edge])
    assert torch.equal(batch.batch[batch.query_row], batch.batch[batch.plain_row][batch.node[batch.query_row]])


def test_a_loader_with_workers_gives_the_same():
    dataset = Paths(ToIdentityGraph(num_layers=2))
    (alone,) = DataLoader(dataset, batch_size=3)
    (helped,) = DataLoader(dataset, batch_size=3, num_workers=1)
    assert torch.equal(alone.edge_index, helped.edge_index)
    assert torch.equal(alone.query_row, helped.query_row)


def test_follow_batch_counts_the_queries_of_each_graph():
    dataset = Paths(ToIdentityGraph(num_layers=2))
    (batch,) = DataLoader(dataset, batch_size=3, follow_batch=["query_row"])
    assert batch.query_row_batch.tolist() == [0, 0, 1, 1, 1, 2, 2, 2, 2]


def test_it_moves_and_changes_type_as_any_data_does():
    graph = identity_graph(path(3, edge_attr=torch.ones(4, 1)), 2)
    assert all(value.device.type == "meta" for _, value in graph.clone().to("meta") if isinstance(value, torch.Tensor))
    single = graph.clone().apply(lambda value: value.double(), "x")
    assert single.x.dtype == torch.double
    assert isinstance(graph.clone(), IdentityGraph)
    assert isinstance(copy.copy(graph), IdentityGraph)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_built_on_a_gpu_it_is_the_same():
    data = Batch.from_data_list([path(5), path(3), path(7)])
    asked = torch.tensor([[0, 6, 8], [2, 5, 9]])
    for queries in (None, asked[0], asked):
        expected = identity_graph(data, 3, queries)
        found = identity_graph(data.clone().to("cuda"), 3, None if queries is None else queries.cuda())
        assert found.edge_index.is_cuda
        for key in (
            "edge_index",
            "edge",
            "node",
            "colored",
            "arrival",
            "query_row",
            "plain_row",
            "plain_edge",
            "batch",
        ):
            assert torch.equal(found[key].cpu(), expected[key]), key
        for one, other in zip(found.to_data_list(), expected.to_data_list(), strict=True):
            assert torch.equal(one.edge_index.cpu(), other.edge_index)


def test_it_is_saved_and_loaded_as_any_data_is(tmp_path):
    graph = identity_graph(path(3), 2)
    torch.save(graph, tmp_path / "graph.pt")
    loaded = torch.load(tmp_path / "graph.pt", weights_only=False)
    assert isinstance(loaded, IdentityGraph)
    assert torch.equal(loaded.edge_index, graph.edge_index)
    torch.save(graph.to_dict(), tmp_path / "dict.pt")
    again = IdentityGraph.from_dict(torch.load(tmp_path / "dict.pt", weights_only=True))
    assert torch.equal(again.query_row, graph.query_row)
    assert again.num_nodes == graph.num_nodes


def test_answers_are_pooled_by_the_graph_of_their_query():
    batch = Batch.from_data_list([identity_graph(path(2), 2), identity_graph(path(3), 2)])
    assert batch.query_batch.tolist() == [0, 0, 1, 1, 1]
