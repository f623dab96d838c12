import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.kernel import paper
from attnaudit.measures.assignment import _reduced, matched
from attnaudit.measures.cosine import (
    DIRECT_COSINE_MAX,
    DIRECT_COSINE_MEAN,
    MATCHED_COSINE_MAX,
    MATCHED_COSINE_MEAN,
)
from attnaudit.protocol import Protocol
from tests.heads import fixture_heads
from tests.measures.case import MeasureTestCase, input_of


class TestDirectCosine(MeasureTestCase):
    measures = (DIRECT_COSINE_MEAN, DIRECT_COSINE_MAX)
    ignores_prediction_signs = False
    ignores_value_rotation = False


class TestMatchedCosine(MeasureTestCase):
    measures = (MATCHED_COSINE_MEAN, MATCHED_COSINE_MAX)
    ignores_prediction_signs = False
    ignores_value_rotation = False
    ignores_shuffled_values = True  # the assignment puts any shuffle right again: it does not know which token is which


def test_reference_head_is_near_the_published_fixture():
    """Both numbers hang on eigenvector signs, so only their size is tested."""
    heads = fixture_heads()
    at = input_of(heads, protocol=Protocol.PAPER)
    assert abs(DIRECT_COSINE_MEAN.function(at).item()) < 0.03
    assert MATCHED_COSINE_MEAN.function(at).item() == pytest.approx(0.32, abs=0.01)


@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([1e-6, 1.0, 1e6]))
def test_assignment_equals_brute_force(seed, n, size):
    scores = size * torch.randn(2, n, n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    for matrix, picked in zip(scores, matched(scores), strict=True):
        best = max(sum(matrix[i, p[i]].item() for i in range(n)) for p in itertools.permutations(range(n)))
        assert picked.sum().item() == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_assignment_equals_plain_scipy_on_large_matrices(seed):
    from scipy.optimize import linear_sum_assignment

    scores = torch.rand(1, 150, 150, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    rows, columns = linear_sum_assignment(scores[0].numpy(), maximize=True)
    assert matched(scores).sum().item() == pytest.approx(scores[0, rows, columns].sum().item(), rel=1e-13)


@pytest.mark.parametrize("spread", [1.0, 1e-9])
def test_a_large_matrix_is_reduced_by_numbers_of_rows_and_columns_to_the_last_digits(spread):
    matrix = spread * np.random.default_rng(0).random((150, 150))
    taken = _reduced(matrix) - matrix
    assert np.ptp(taken) > 0.1 * spread
    mixed = taken - taken[:1] - taken[:, :1] + taken[0, 0]
    assert np.abs(mixed).max() < 1e-14 * spread


@pytest.mark.parametrize("shape", [(2, 5), (5, 2)])
def test_assignment_of_a_long_matrix_pairs_its_shorter_side(shape):
    scores = torch.rand(1, *shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    wide = scores[0] if shape[0] < shape[1] else scores[0].mT
    best = max((wide[0, i] + wide[1, j]).item() for i in range(5) for j in range(5) if i != j)
    assert matched(scores).shape == (1, 2)
    assert matched(scores).sum().item() == pytest.approx(best)


def test_assignment_of_a_constant_matrix():
    assert matched(torch.full((1, 3, 3), 0.5)).tolist() == [[0.5, 0.5, 0.5]]


def test_a_zero_value_is_missing_without_epsilon_and_zero_with_it():
    heads = fixture_heads()
    prediction = paper.kernel_pca_values(paper.spectrum(heads.key))
    value = heads.value.clone()
    value[:, 0] = 0
    from dataclasses import replace

    zeroed = replace(heads, value=value)
    assert DIRECT_COSINE_MEAN.function(input_of(zeroed, prediction)).isnan().all()
    assert DIRECT_COSINE_MEAN.function(input_of(zeroed, prediction, Protocol.PAPER)).isfinite().all()
