"""The study's float32 pipeline on the specification's reference head, to the digits given there."""

import math

import pytest
import torch

from attnaudit.kernel import paper, spectrum, standardised
from tests.heads import fixture_heads


def six_digits(value):
    return pytest.approx(value, rel=6e-6)


RAW_MU = {0: 5.53984e-4, 1: 4.78905e-4, 31: 2.55229e-4, 63: 1.59173e-4}
STANDARDISED_MU = {0: 3.16889e-4, 1: 3.15266e-4, 31: 3.09236e-4, 63: 3.05448e-4}


@pytest.mark.parametrize("pipeline", [paper.spectrum, spectrum], ids=["float32", "float64"])
@pytest.mark.parametrize(
    ("prepare", "eigenvalues", "mass"),
    [
        (lambda key: key, RAW_MU, (198.305, 209.255, 240.303)),
        (standardised, STANDARDISED_MU, (2884.04, 2951.5, 3065.18)),
    ],
    ids=["raw", "standardised"],
)
def test_reference_masses_and_eigenvalues(pipeline, prepare, eigenvalues, mass):
    result = pipeline(prepare(fixture_heads().key))
    g = result.log_mass.exp()[0]
    assert (g.min().item(), g.median().item(), g.max().item()) == pytest.approx(mass, rel=3e-6)
    for rank, value in eigenvalues.items():
        assert result.eigenvalues[0, rank].item() == six_digits(value)


def test_order_by_magnitude_differs_from_order_by_value_only_for_noise():
    key = fixture_heads().key
    by_value, by_magnitude = paper.spectrum(key, rank=197), paper.spectrum(key, rank=197, by_magnitude=True)
    assert (by_magnitude.eigenvalues.abs().diff(dim=-1) <= 0).all()
    torch.testing.assert_close(by_value.eigenvalues[:, :64], by_magnitude.eigenvalues[:, :64], rtol=0, atol=0)


def test_overflowing_keys_give_the_nan_the_study_saw_and_a_reason():
    key = torch.cat([fixture_heads().key, 14 * fixture_heads().key, 8 * fixture_heads().key])
    result = paper.spectrum(key)
    assert result.eigenvalues[0].isfinite().all()
    assert result.eigenvalues[1].isnan().all()
    assert paper.problems(result)[0] is None
    assert paper.problems(result)[1] == "float32 exp overflows in the kernel"
    prediction = paper.kernel_pca_values(result)
    assert prediction.values[1].isnan().all()
    assert prediction.values[0].isfinite().all()


def test_exact_eigenvalues_are_finite_where_the_study_overflows():
    key = 14 * fixture_heads().key
    assert paper.spectrum(key).eigenvalues.isnan().all()
    exact = spectrum(key, rank=8)
    assert exact.eigenvalues.isfinite().all()
    assert (exact.eigenvalues > 0).all()


def test_vanishing_kernel_entries_are_named():
    """log g above 44.4: g_i g_j overflows float32, the entry becomes 0, and nothing is NaN."""
    key = fixture_heads().key
    key = key * math.sqrt(70 / (key.square().sum(-1).max().item() / 8))
    assert paper.problems(paper.spectrum(key)) == ("g·g overflows in float32, which zeroes kernel entries",)
