"""A small database in which a user visits again what was visited before, and nothing else tells."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import HeteroData

from idgnn.choices import Identity
from idgnn.graphs.relational.graph import aged_channels, aged_snapshot
from idgnn.graphs.relational.task_tables import ItemLists, TimedQueries
from idgnn.graphs.relational.times import YEAR
from idgnn.models.relational_predictor import Moment, RelationalPredictor
from idgnn.tasks.relational import RelationalProblem
from idgnn.training.relational import Moments, RelationalSettings, predict_relational, train_relational

USERS, ITEMS, PER_USER = 24, 30, 3


def database(years: int = 6) -> tuple[HeteroData, dict[int, list[int]]]:
    """Every user visits the same three items each year."""
    generator = torch.Generator().manual_seed(0)
    favorites = {user: torch.randperm(ITEMS, generator=generator)[:PER_USER].tolist() for user in range(USERS)}
    rows = [(user, item, year) for year in range(years) for user in range(USERS) for item in favorites[user]]
    user, item, year = torch.tensor(rows).t()
    graph = HeteroData()
    graph["users"].x, graph["items"].x = torch.ones(USERS, 1), torch.ones(ITEMS, 1)
    graph["visits"].x, graph["visits"].time = torch.ones(len(rows), 1), (year * YEAR).long()
    for kind, ends in (("user", user), ("item", item)):
        edges = torch.stack([torch.arange(len(rows)), ends])
        graph["visits", kind, f"{kind}s"].edge_index = edges
        graph[f"{kind}s", f"rev_{kind}", "visits"].edge_index = edges.flip(0)
    return graph, favorites


def recommendation(k: int = 3) -> RelationalProblem:
    graph, favorites = database()

    def queries(years: list[int]) -> TimedQueries:
        entity = torch.arange(USERS).repeat(len(years))
        time = torch.tensor([int(year * YEAR) for year in years]).repeat_interleave(USERS)
        lists = ItemLists.of([favorites[user] for user in entity.tolist()])
        return TimedQueries("users", entity, time, item_type="items", items=lists)

    parts = {"train": queries([1, 2, 3]), "valid": queries([4]), "test": queries([5])}
    return RelationalProblem("recommendation", graph, parts, k=k)


def quick(identity: Identity, num_layers: int) -> RelationalSettings:
    return RelationalSettings(
        identity=identity, num_layers=num_layers, hidden_channels=8, epochs=25, lr=0.03, snapshots_per_step=1
    )


def test_full_finds_what_two_towers_cannot():
    problem = recommendation()
    found = {}
    for identity in ("full", "none"):
        settings = quick(identity, num_layers=2)
        found[identity] = train_relational(problem, settings).metrics["test"]["map"]
    assert found["full"] > 0.95
    assert found["none"] < 0.5  # users are alike without their color
    assert problem.heuristics("test")["past visits, 5 years"]["map"] == 1.0


def test_fast_finds_it_by_walk_counts():
    assert train_relational(recommendation(), quick("fast", num_layers=1)).metrics["test"]["map"] > 0.95


def test_what_comes_later_changes_no_answer():
    problem = recommendation()
    model = _predictor(problem, "full")
    queries = problem.queries["valid"]
    before = predict_relational(model, Moments(problem.graph, None), queries, queries.time)
    later = problem.graph.clone()
    late = later["visits"].time >= int(queries.time.max())
    later["visits"].x[late] = 100.0
    for kind in ("user", "item"):
        edges = later["visits", kind, f"{kind}s"].edge_index
        edges[1, late] = 0
        later[f"{kind}s", f"rev_{kind}", "visits"].edge_index = edges.flip(0)
    after = predict_relational(model, Moments(later, None), queries, queries.time)
    assert torch.equal(before, after)
    assert not torch.equal(
        aged_snapshot(problem.graph, 6 * YEAR)["visits"].x, aged_snapshot(later, 6 * YEAR)["visits"].x
    )


@pytest.mark.parametrize("identity", ["full", "fast", "none"])
def test_predictions_keep_the_order_of_the_queries(identity):
    problem = recommendation()
    model = _predictor(problem, identity)
    queries = problem.queries["train"]
    order = torch.randperm(len(queries), generator=torch.Generator().manual_seed(0))
    moments = Moments(problem.graph, None)
    whole = predict_relational(model, moments, queries, queries.time)
    shuffled = predict_relational(model, moments, queries.take(order), queries.time[order])
    torch.testing.assert_close(whole[order], shuffled)


def test_items_out_of_reach_have_their_plain_score():
    problem = recommendation()
    model = _predictor(problem, "full")
    data = aged_snapshot(problem.graph, 2 * YEAR)
    with torch.no_grad():
        for layer in model.encoder.layers:  # the color maps start at the plain ones: make them differ
            for parameter in layer.parameters():
                parameter += 0.1 * torch.randn_like(parameter)
    score = model(Moment(data), torch.arange(USERS), torch.zeros(USERS))
    _, favorites = database()
    for item in range(ITEMS):
        others = [user for user in range(USERS) if item not in favorites[user]]
        assert score[others, item].std() < 1e-6
        near = [user for user in range(USERS) if item in favorites[user]]
        assert all((score[user, item] - score[others[0], item]).abs() > 1e-6 for user in near)


def entities(kind: str, lag: bool = False) -> RelationalProblem:
    """How many visits a user had in the last year, or whether they were many."""
    graph, _ = database()
    keep = torch.rand(graph["visits"].num_nodes, generator=torch.Generator().manual_seed(3)) < 0.5
    for other in ("user", "item"):
        edges = graph["visits", other, f"{other}s"].edge_index[:, keep]
        graph["visits", other, f"{other}s"].edge_index = edges
        graph[f"{other}s", f"rev_{other}", "visits"].edge_index = edges.flip(0)
    visit, user = graph["visits", "user", "users"].edge_index

    def queries(years: list[int]) -> TimedQueries:
        entity = torch.arange(USERS).repeat(len(years))
        time = torch.tensor([int(year * YEAR) for year in years]).repeat_interleave(USERS)
        seen = [torch.bincount(user[graph["visits"].time[visit] < year * YEAR], minlength=USERS) for year in years]
        target = torch.cat(seen).float()
        return TimedQueries("users", entity, time, (target > 6).float() if kind == "entity-classification" else target)

    parts = {"train": queries([1, 2, 4, 5]), "valid": queries([3]), "test": queries([6])}
    return RelationalProblem(kind, graph, parts, upto={"test": int(5 * YEAR)} if lag else {})  # type: ignore[arg-type]


def test_a_number_of_an_entity_is_learned():
    problem = entities("entity-regression")
    run = train_relational(problem, quick("full", num_layers=1))
    assert run.metrics["valid"]["mae"] < 0.4 * problem.heuristics("valid")["median"]["mae"]


def test_a_class_of_an_entity_is_learned():
    run = train_relational(entities("entity-classification"), quick("full", num_layers=1))
    assert run.metrics["valid"]["roc_auc"] > 0.95


@pytest.mark.parametrize("select", ["best", "last"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(select, tmp_path):
    problem, path = entities("entity-regression"), tmp_path / "checkpoint.safetensors"
    settings = RelationalSettings(num_layers=1, hidden_channels=8, epochs=4, lr=0.03, dropout=0.3, select=select)
    whole = train_relational(problem, settings)

    class StoppedError(Exception):
        pass

    def stop(epoch):
        if epoch["epoch"] == 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_relational(problem, settings, show=stop, checkpoint=path)
    told = []
    resumed = train_relational(problem, settings, show=told.append, checkpoint=path)
    assert [epoch["epoch"] for epoch in told] == [2, 3] and len(resumed.epochs) == 4
    assert (resumed.metrics, resumed.best_epoch) == (whole.metrics, whole.best_epoch)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name


def test_one_of_several_classes_of_an_entity_is_learned():
    problem = entities("entity-regression")
    parts = {
        name: replace(queries, target=torch.bucketize(queries.target, torch.tensor([2.5, 6.5])))
        for name, queries in problem.queries.items()
    }
    problem = RelationalProblem("entity-classification", problem.graph, parts, classes=("few", "some", "many"))
    run = train_relational(problem, quick("full", num_layers=1))
    heuristics = problem.heuristics("valid")
    assert run.metrics["valid"]["accuracy"] > heuristics["most frequent class"]["accuracy"]
    train, valid = problem.queries["train"], problem.queries["valid"]
    common = int(train.target.mode().values)
    assert heuristics["most frequent class"]["accuracy"] == pytest.approx(
        float((valid.target == common).float().mean())
    )
    own = [int(train.target[train.entity == entity].mode().values) for entity in valid.entity.tolist()]
    assert heuristics["most frequent of the entity"]["accuracy"] == pytest.approx(
        sum(a == b for a, b in zip(own, valid.target.tolist(), strict=True)) / len(own)
    )


def test_queries_later_than_the_data_see_its_end():
    problem = entities("entity-regression", lag=True)
    assert problem.longest_lag == int(6 * YEAR) - int(5 * YEAR)
    assert problem.seen_until("test").unique().tolist() == [int(5 * YEAR)]


def test_bad_problems_are_refused():
    problem = entities("entity-regression")
    late = problem.queries["test"]
    late = TimedQueries("users", late.entity, late.time + int(9 * YEAR), late.target)
    with pytest.raises(ValueError, match="in the future of the data"):
        RelationalProblem("entity-regression", problem.graph, {**problem.queries, "test": late})
    numbers = RelationalProblem("entity-classification", problem.graph, problem.queries)
    with pytest.raises(ValueError, match="expected 0 and 1"):
        numbers.objective()
    with pytest.raises(ValueError, match="Use at least 2 layers"):
        train_relational(recommendation(), quick("full", num_layers=1))


def _predictor(problem: RelationalProblem, identity: Identity) -> RelationalPredictor:
    torch.manual_seed(0)
    channels = aged_channels(problem.graph)
    return RelationalPredictor(
        problem.graph.metadata(),
        channels,
        entity_type="users",
        item_type="items",
        identity=identity,
        num_layers=2,
        hidden_channels=8,
    ).eval()
