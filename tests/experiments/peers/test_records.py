"""A job of a peer from its settings to the cells of Table 6."""

from dataclasses import replace

import pytest

from idgnn.experiments.execute import attempt
from idgnn.experiments.peers.settings import peer_settings
from idgnn.experiments.readings import best_mean, last
from idgnn.experiments.spec import PeerJob, Spec, key_of


@pytest.mark.filterwarnings("ignore")
def test_every_fold_of_a_record_reads_like_a_run_of_its_own(data_dir):
    settings = replace(peer_settings("gsn-v", "MUTAG-folds"), epochs=3, steps=2, folds=2, pattern_size=6)
    specs = [Spec("table6", "class-MUTAG-folds", "gsn-v", "text", 0, PeerJob(settings, fold)) for fold in range(3)]
    assert len({spec.key for spec in specs}) == 1
    record = attempt(specs[0].job, "cpu", "here")
    assert record.error is None and record.result is not None and record.key == specs[1].key
    records = {record.key: record}
    found = [spec.record(records) for spec in specs]
    assert found[2] is None  # two folds were trained
    for fold in range(2):
        result = found[fold].result
        assert result["curve"] == record.result["folds"][fold]["curve"] and result["num_parameters"] > 0
    assert last("accuracy")(specs[:2], found[:2]) == [each["valid"]["accuracy"] for each in record.result["folds"]]
    curves = [{epoch: score for epoch, _, score in each["curve"]} for each in record.result["folds"]]
    best = max(curves[0], key=lambda epoch: curves[0][epoch] + curves[1][epoch])
    assert best_mean("accuracy")(specs[:2], found[:2]) == [each[best] for each in curves]
    assert specs[0].record({}) is None


def test_the_key_of_a_job_depends_on_all_settings_but_not_on_the_fold():
    settings = peer_settings("ppgn", "MUTAG-folds")
    key = key_of(PeerJob(settings))
    assert key == key_of(PeerJob(settings, fold=3))
    changes = {"epochs": 501, "lr": 1e-3, "width": 401, "precision": "float32", "decay": 0.9}
    for name, value in changes.items():
        assert key_of(PeerJob(replace(settings, **{name: value}))) != key
    assert key_of(PeerJob(settings, seed=1)) != key
