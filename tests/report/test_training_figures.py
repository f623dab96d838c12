"""Curves of trainings: means and intervals over seeds, scores by epoch, drawn the same way every time."""

import numpy as np
import pytest
import torch
from scipy import stats

from attnaudit.records.training import open_trainings
from attnaudit.report.training_figures import accuracy_figure, accuracy_records, score_figure, score_records
from attnaudit.training.loop import train
from attnaudit.training.recipe_file import read_recipe
from tests.training.conftest import data_set, halves, recipe_file  # noqa: F401
from tests.training_runs import write_course


@pytest.fixture
def watched(tmp_path, recipe_file, halves):  # noqa: F811
    plain = ["model.patch_size=1", "model.heads=4", "model.depth=1", "epochs=2"]
    torch.manual_seed(0)
    return open_trainings([train(read_recipe(str(recipe_file), plain), halves, tmp_path / "run").path])


def test_accuracy_is_a_mean_over_seeds_with_students_interval(tmp_path):
    paths = [write_course(tmp_path / str(seed), [0.5 + seed / 10], seed=seed) for seed in range(3)]
    (record,) = accuracy_records(open_trainings(paths))
    expected = stats.t.interval(0.95, 2, loc=0.6, scale=np.std([0.5, 0.6, 0.7], ddof=1) / np.sqrt(3))
    assert (record.mean, record.low, record.high) == pytest.approx((0.6, *expected))
    assert record.seeds == 3


@pytest.mark.parametrize("examples", [100, None])
def test_equal_accuracies_are_known_to_one_test_example_and_no_better(tmp_path, examples):
    paths = [write_course(tmp_path / str(seed), [0.2], seed=seed, examples=examples) for seed in range(3)]
    (record,) = accuracy_records(open_trainings(paths))
    one_example = stats.t.interval(0.95, 2, loc=0.2, scale=0.01 / np.sqrt(12) / np.sqrt(3))
    assert (record.low, record.high) == ((None, None) if examples is None else pytest.approx(one_example))


def test_one_seed_has_no_interval(tmp_path):
    (record,) = accuracy_records(open_trainings([write_course(tmp_path / "run", [0.2])]))
    assert (record.low, record.high, record.seeds) == (None, None, 1)


def test_a_watched_training_has_scores_at_every_epoch(watched):
    records = score_records(watched)
    assert sorted({record.epoch for record in records}) == [0.0, 1.0, 2.0]
    assert {record.measure for record in records} == {"column_cosine_matched", "value_subspace_overlap", "procrustes"}
    assert all(record.heads == 2 * 4 for record in records)  # batches, heads
    assert all(record.low <= record.score <= record.high for record in records)


def test_images_are_the_same_every_time(tmp_path, watched):
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        accuracy_figure(accuracy_records(watched), [tmp_path / place / "accuracy.svg"])
        score_figure(score_records(watched), [tmp_path / place / "scores.svg"])
    for name in ("accuracy.svg", "scores.svg"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert "kernel PCA" in (tmp_path / "one" / "scores.svg").read_text()
