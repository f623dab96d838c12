from itertools import combinations

import pytest
import torch
from hypothesis import given

from attnaudit.kernel import paper, spectrum
from attnaudit.measures.gamma import (
    GAMMA_OF_EIGENVECTORS,
    gammas,
    mean_absolute_difference,
    mean_relative_difference,
    perturbed,
)
from tests.heads import fixture_heads, random_heads
from tests.measures.case import input_of, seeds


def test_reference_gamma_of_true_eigenvectors():
    single, double = (
        gammas(found.image(found.eigenvectors), found.eigenvectors)
        for found in (paper.spectrum(fixture_heads().key), spectrum(fixture_heads().key))
    )
    assert double[0, 0, 0].item() == pytest.approx(2.8121e-6, rel=2e-5)
    assert 5e-12 < mean_absolute_difference(single).mean().item() < 5e-11
    assert mean_absolute_difference(double).mean().item() < 1e-19


@given(seeds)
def test_differences_equal_loops_over_pairs(seed):
    result = spectrum(random_heads(seed, heads=1, tokens=7, dim=2).key)
    vectors = perturbed(result.eigenvectors, seed)
    values = gammas(result.image(vectors), vectors)
    ours = torch.stack([mean_absolute_difference(values)[0], mean_relative_difference(values)[0]])
    for m in range(2):
        assert ours[:, m].tolist() == pytest.approx(_by_pairs(values[0, :, m].tolist()), rel=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_differences_of_nearly_equal_gamma_are_not_lost_in_rounding(sign):
    values = [sign * (2.0 + place * 1e-14) for place in range(5)]
    column = torch.tensor(values, dtype=torch.float64)[None, :, None]
    found = [mean_absolute_difference(column).item(), mean_relative_difference(column).item()]
    assert found == pytest.approx(_by_pairs(values), rel=1e-9, abs=0)


def _by_pairs(values):
    pairs = list(combinations(values, 2))
    absolute = [abs(a - b) for a, b in pairs]
    relative = [abs(a - b) / (max(abs(a), abs(b)) + 1e-10) for a, b in pairs]
    return [sum(absolute) / len(pairs), sum(relative) / len(pairs)]


def test_perturbed_vectors_are_orthonormal_and_far_from_the_true_ones():
    vectors = spectrum(fixture_heads().key).eigenvectors
    noisy = perturbed(vectors, 0)
    torch.testing.assert_close(noisy.mT @ noisy, torch.eye(64, dtype=torch.float64)[None], rtol=0, atol=1e-12)
    # Signal has column norm 1, noise 0.1·√197 = 1.4: the first column keeps a cosine of about 1/√(1 + 1.97) = 0.58.
    assert (vectors[0, :, 0] * noisy[0, :, 0]).sum().abs().item() == pytest.approx(0.58, abs=0.1)
    assert torch.equal(perturbed(vectors, 0), noisy)
    assert not torch.equal(perturbed(vectors, 1), noisy)


def test_perturbed_eigenvectors_stand_out_by_orders_of_magnitude():
    at = input_of(random_heads(0, tokens=40, dim=8))
    numbers = {measure.name: measure.function(at) for measure in GAMMA_OF_EIGENVECTORS}
    assert (numbers["gamma_rel_perturbed"] > 1e6 * numbers["gamma_rel_true"]).all()
