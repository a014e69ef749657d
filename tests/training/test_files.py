"""Training on files, and predictions for files."""

import pytest
import torch

from idgnn.graphs.files.read import read_files
from idgnn.graphs.sources import FileSource
from idgnn.models.settings import ModelSettings
from idgnn.training.run_settings import TrainOptions
from idgnn.training.train import train
from idgnn.training.trained import Run
from tests.graphs.files.written import write

QUICK = TrainOptions(epochs=2, batch_size=2)
SMALL = ModelSettings(layers=2)


@pytest.fixture
def edges(tmp_path):
    ring = "".join(f"n{i},n{(i + 1) % 12}\nn{i},n{(i + 3) % 12}\n" for i in range(12))
    return write(tmp_path / "e.csv", "source,target\n" + ring)


def test_numbers_that_are_not_there_reach_no_network(tmp_path, edges):
    rows = "".join(f"n{i},{'' if i % 3 else i},{i % 2}\n" for i in range(12))
    source = FileSource(edges, write(tmp_path / "n.csv", "id,age,y\n" + rows), label="y", missing="indicator")
    run = train(source, "node-classification", model=SMALL, training=QUICK, folder=tmp_path / "run")
    table = run.predict(source)
    assert table["node"] == [f"n{i}" for i in range(12)]
    again = Run.load(tmp_path / "run").predict(FileSource(edges, source.nodes))
    assert again == table
    graphs = read_files(source, run.schema).graphs
    assert torch.isfinite(graphs[0].x).all()
    assert run.predict(graphs) == table


def test_pairs_of_a_file_are_trained_on_and_predicted(tmp_path, edges):
    rows = "".join(f"n{i},n{j},{'near' if abs(i - j) < 3 else 'far'}\n" for i in range(12) for j in range(i))
    pairs = write(tmp_path / "p.csv", "source,target,kind\n" + rows)
    source = FileSource(edges, labeled_pairs=pairs, label="kind")
    [graph] = read_files(source).graphs
    place = graph.node_name.index
    assert graph.edge_label_index[:, 4].tolist() == [place("n3"), place("n1")]
    assert graph.edge_label[:4].tolist() == [1, 1, 1, 0]
    run = train(source, "pair-classification", model=SMALL, training=QUICK)
    assert run.classes == ("far", "near")
    new = write(tmp_path / "q.csv", "target,source\nn5,n2\nn0,n1\n")
    table = run.predict(FileSource(edges, labeled_pairs=new))
    assert (table["source"], table["target"]) == (["n2", "n1"], ["n5", "n0"])
    wanted = torch.tensor([[place("n2"), place("n1")], [place("n5"), place("n0")]])
    by_hand = run.predict(read_files(FileSource(edges), run.schema).graphs, [wanted])
    assert by_hand["probability_near"] == table["probability_near"]


def test_bad_pairs_are_sentences(tmp_path, edges):
    bad = write(tmp_path / "p.csv", "source,target,kind\nn0,n99,x\n")
    with pytest.raises(ValueError, match=r"p.csv:2: node 'n99' is not in the graph$"):
        read_files(FileSource(edges, labeled_pairs=bad, label="kind"))
    more = write(tmp_path / "p.csv", "source,target,kind,km\nn0,n9,x,1\n")
    with pytest.raises(ValueError, match=r"has the columns 'km', which cannot be features of pairs"):
        read_files(FileSource(edges, labeled_pairs=more, label="kind"))
    many = write(tmp_path / "m.csv", "source,target,graph\na,b,1\na,b,2\n")
    with pytest.raises(ValueError, match=r"p.csv has no column 'graph', and there are 2 graphs"):
        read_files(
            FileSource(many, labeled_pairs=write(tmp_path / "p.csv", "source,target,kind\na,b,x\n"), label="kind")
        )


def test_pairs_with_two_labels_are_bad_rows(tmp_path, edges):
    rows = "source,target,kind\nn0,n1,x\nn1,n0,y\nn2,n3,x\nn0,n1,\nn0,n1,y\nn2,n3,x\n"
    twice = FileSource(edges, labeled_pairs=write(tmp_path / "p.csv", rows), label="kind")
    # The other order is another pair, an empty label is unknown, and the same label is no contradiction.
    with pytest.raises(ValueError, match=r"1 bad row.*\n.*p.csv:6: the pair 'n0', 'n1' has another label at 2$"):
        read_files(twice)
