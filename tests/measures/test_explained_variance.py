"""Shares of variance, of predictions made by hand."""

import pytest
import torch

from attnaudit.kernel.prediction import Prediction
from attnaudit.measures.explained_variance import explained_variance, output_explained_variance, rank_needed
from tests.heads import random_heads
from tests.measures.case import input_of


def predicted(heads, values, **more):
    nothing = torch.zeros(len(heads), dtype=torch.float64)
    return input_of(heads, Prediction(values, nothing, (None,) * len(heads), **more))


def test_a_prediction_that_is_worse_than_the_mean_explains_nothing():
    heads = random_heads(0)
    at = predicted(heads, -heads.value, outputs=-heads.output)
    assert explained_variance(at).tolist() == [0, 0]
    assert output_explained_variance(at).tolist() == [0, 0]


def test_variance_is_counted_from_what_would_be_predicted_without_the_theory():
    heads = random_heads(0)
    halfway = heads.value / 2
    of_zero = predicted(heads, halfway, baseline=torch.zeros_like(heads.value[:, :1]))
    assert explained_variance(of_zero).tolist() == pytest.approx([0.75, 0.75])
    total = (heads.value - heads.value.mean(dim=1, keepdim=True)).square().sum(dim=(1, 2))
    expected = 1 - halfway.square().sum(dim=(1, 2)) / total
    torch.testing.assert_close(explained_variance(predicted(heads, halfway)), expected)


@pytest.mark.parametrize(("share", "rank"), [(1.0, 0.25), (0.5, 1.0)])
def test_the_rank_that_is_needed_counts_what_is_left_unexplained(share, rank):
    heads = random_heads(0)
    heads.value[:, :, 1:] = 0  # one column, and a prediction of this share of it
    axes = torch.eye(4, dtype=torch.float64).expand(2, -1, -1)
    at = predicted(heads, share * heads.value, baseline=torch.zeros_like(heads.value[:, :1]), axes=axes)
    assert rank_needed(at).tolist() == [rank, rank]
