import importlib.util
import re
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name, *arguments):
    """Runs the script in this process, where warnings are errors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")


def percents(text):
    return [int(number) for number in re.findall(r"(\d+) ?%", text)]


def test_regular_graphs_prints_table_1(capsys):
    run("regular_graphs.py", "12")
    rows = [percents(line) for line in capsys.readouterr().out.splitlines() if "%" in line]
    assert len(rows) == 3 * 4
    for published, walks, full, plain in zip(*[iter(rows)] * 4, strict=True):
        assert published[3] == walks[3] == full[3] == 100
        assert all(more >= less for more, less in zip(full, walks, strict=True))
        assert plain == [8, 8, 8, 8]  # one representation for all twelve graphs


def test_count_cycles_agrees_with_matrix_powers_and_networkx(capsys):
    run("count_cycles.py")
    assert capsys.readouterr().out.count("agree exactly: True") == 2


def test_any_pyg_model_learns_what_the_plain_one_cannot(capsys):
    run("any_pyg_model.py")
    out = capsys.readouterr().out
    losses = [float(loss) for loss in re.findall(r"loss (\d\.\d+)", out)]
    assert out.count("3 rounds, before: the same embeddings: True") == 2
    assert losses[0::2] == pytest.approx([0.693, 0.693], abs=0.01)
    assert max(losses[1::2]) < 0.1


@pytest.mark.parametrize(
    ("name", "plain_at_most", "full_at_least"),
    [("pairs.py", 60, 90), ("own_layer.py", 70, 85), ("in_a_dataloader.py", 60, 90), ("recommendation.py", 65, 95)],
)
def test_the_identity_aware_model_is_right_where_the_plain_one_is_not(name, plain_at_most, full_at_least, capsys):
    run(name)
    plain, full = percents(capsys.readouterr().out)
    assert plain <= plain_at_most
    assert full >= full_at_least


def test_strongly_regular_graphs_are_told_apart_by_two_colors_alone(tmp_path, capsys):
    picture = tmp_path / "graphs.svg"
    run("strongly_regular.py", str(picture))
    lines = dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())
    assert lines["isomorphic"] == lines["told apart by 3-WL"] == "False"
    for layers in (3, 6):
        plain, one, two = (
            lines[f"told apart by {layers} layers, {name}"].split()[0]
            for name in ("plain GNN", "one color", "two colors, neighbors")
        )
        assert (plain, one, two) == ("False", "False", "True")
    assert picture.read_text().startswith("<?xml")


def test_the_demo_runs_from_graphs_to_picture(tmp_path, monkeypatch, capsys):
    # One epoch of what `make demo` does; how well the networks do is tested elsewhere.
    spec = importlib.util.spec_from_file_location("demo", EXAMPLES / "demo.py")
    assert spec is not None and spec.loader is not None
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    monkeypatch.setattr(demo, "EPOCHS", 1)
    monkeypatch.chdir(tmp_path)
    demo.main()
    out = capsys.readouterr().out
    assert all(name in out for name in ("most frequent class", "plain GCN", "ID-GNN-Fast", "ID-GNN-Full"))
    assert (tmp_path / demo.PICTURE).stat().st_size > 0


def test_every_example_is_run():
    here = Path(__file__).read_text()
    assert [path.name for path in EXAMPLES.glob("*.py") if path.name not in here] == []
