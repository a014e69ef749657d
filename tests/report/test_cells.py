from dataclasses import replace
from statistics import stdev

import pytest

from idgnn.experiments.readings import last
from idgnn.experiments.table import Column, Published
from idgnn.report.cells import best_cell, compare, make_cell
from tests.report.made import COLUMN, record, runs

SPECS = runs("table2")["text", "gcn", COLUMN]
HEADING = Column(COLUMN, "ScaleFree", last("accuracy"), metric="accuracy")
ERRORS = replace(HEADING, lower_is_better=True)


def of(*values: float, number: Published | None = None, errors: int = 0):
    made = [record(spec, value) for spec, value in zip(SPECS, values, strict=False)]
    made += [record(spec, 0, error="RuntimeError: no") for spec in SPECS[len(values) : len(values) + errors]]
    return make_cell(SPECS, {each.key: each for each in made}, number, HEADING)


def test_mean_and_standard_deviation_are_those_of_the_seeds():
    found = of(0.6, 0.7, 0.8, number=Published(0.7))
    assert (found.mean, found.std) == (pytest.approx(0.7), pytest.approx(stdev([0.6, 0.7, 0.8])))
    assert (found.n, found.total, found.count, found.number) == (3, 3, "", "0.700 ± 0.100")
    assert found.text == found.number


@pytest.mark.parametrize(
    ("mean", "std", "theirs", "status"),
    [
        (0.70, 0.01, Published(0.70, 0.0), "within"),
        (0.71, 0.01, Published(0.70, 0.0), "within"),  # as far away as our deviation
        (0.72, 0.01, Published(0.70, 0.02), "within"),  # as far away as theirs
        (0.722, 0.01, Published(0.70, 0.02), "better"),
        (0.678, 0.01, Published(0.70, 0.02), "worse"),
        (0.9996, 0.0, Published(1.0, 0.0), "within"),  # the same as printed
        (0.7, None, Published(0.6, None), "better"),
        (0.7, 0.1, None, "alone"),
    ],
)
def test_better_within_worse(mean, std, theirs, status):
    assert compare(mean, std, theirs, HEADING) == status
    swapped = {"better": "worse", "worse": "better"}
    assert compare(mean, std, theirs, ERRORS) == swapped.get(status, status)
    assert compare(mean, std, theirs, replace(HEADING, judged=False)) == "alone"


def test_without_records_a_cell_is_not_run():
    found = of()
    assert (found.status, found.number, found.n, found.total) == ("missing", "not run", 0, 3)


def test_a_cell_with_some_records_has_their_number():
    found = of(0.6, 0.8, number=Published(0.7, 0.0), errors=1)
    assert (found.n, found.count, found.status) == (2, "2 of 3", "within")
    assert found.text == found.number
    assert of(0.6).number == "0.600"


def test_a_cell_with_seeds_beyond_those_of_the_paper_says_how_many():
    specs = [*SPECS, replace(SPECS[0], seed=7)]
    records = {spec.key: record(spec, 0.7) for spec in SPECS}
    found = make_cell(specs, records, None, HEADING)
    assert (found.count, found.text) == ("4 seeds", "0.700 ± 0.000 (4 seeds)")


def test_a_cell_with_only_errors_has_failed():
    found = of(errors=2)
    assert (found.status, found.number) == ("failed", "failed")


def test_a_record_without_the_metric_of_the_table_has_no_number():
    made = [record(spec, 0.9, metric="roc_auc") for spec in SPECS]
    assert make_cell(SPECS, {each.key: each for each in made}, None, HEADING).mean is None


def test_the_best_of_errors_is_the_lowest():
    cells = [of(value) for value in (0.3, 0.1, 0.2)]
    assert best_cell(cells, HEADING) is cells[0] and best_cell(cells, ERRORS) is cells[1]
