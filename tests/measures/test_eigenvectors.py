from dataclasses import replace

import pytest
import torch
from hypothesis import given

from attnaudit.kernel import kernel_pca_values, spectrum
from attnaudit.measures.eigenvectors import (
    CENTERING_DEFECT,
    EIGENVECTOR_RESIDUAL,
    GAMMA_ABS,
    GAMMA_REL,
    SUBSPACE_OVERLAP,
    weighted_values,
)
from attnaudit.measures.measure_input import MeasureInput
from tests.heads import random_heads
from tests.measures.case import input_of, predict, random_orthogonal, seeds

MEASURES = (EIGENVECTOR_RESIDUAL, CENTERING_DEFECT, SUBSPACE_OVERLAP)


def measured(heads, measures=MEASURES):
    at = input_of(heads)
    return {measure.name: measure.function(at) for measure in measures}


@given(seeds)
def test_planted_values_pass_every_test(seed):
    heads = random_heads(seed)
    result = spectrum(heads.key)
    planted = replace(heads, value=kernel_pca_values(result).values)
    numbers = measured(planted, (*MEASURES, GAMMA_ABS, GAMMA_REL))
    for name in ("eigenvector_residual", "centering_defect", "gamma_rel"):
        assert numbers[name].max().item() < 1e-6
    assert numbers["subspace_overlap"].tolist() == pytest.approx([1.0, 1.0])


def test_implied_coefficients_solve_the_least_squares_problem():
    """The study calls  infeasible because I - 1_N is singular; its pseudo-inverse is itself."""
    heads = random_heads(0, heads=1)
    result = spectrum(heads.key)
    n = heads.tokens
    centring = torch.eye(n, dtype=torch.float64) - 1 / n
    mass = result.log_mass[0].exp()
    implied = torch.linalg.lstsq(torch.diag(1 / mass) @ centring, heads.value[0], driver="gelsd").solution
    ours = weighted_values(MeasureInput.of(heads))[0]
    ours = ours - ours.mean(dim=0)
    # Least squares in the metric of G⁻¹ is  itself; directions agree column by column after centring.
    weighted = torch.diag(mass) @ heads.value[0]
    expected = torch.linalg.pinv(centring) @ weighted
    torch.testing.assert_close(ours / ours.norm(), expected / expected.norm(), rtol=1e-10, atol=1e-12)
    assert implied.shape == ours.shape


@given(seeds)
def test_residual_and_overlap_lie_between_zero_and_one(seed):
    heads = random_heads(seed)
    numbers = measured(heads)
    for value in numbers.values():
        assert ((value >= 0) & (value <= 1 + 1e-12)).all()


def test_overlap_ignores_rotation_and_residual_does_not():
    heads = random_heads(0)
    result = spectrum(heads.key)
    planted = kernel_pca_values(result).values
    turned = replace(heads, value=planted @ random_orthogonal(0, 4))
    numbers = measured(turned)
    assert numbers["subspace_overlap"].tolist() == pytest.approx([1.0, 1.0])
    assert (numbers["eigenvector_residual"] > 0.01).all()


def test_token_order_does_not_matter():
    heads = random_heads(0)
    order = torch.randperm(heads.tokens, generator=torch.Generator().manual_seed(0))
    moved = replace(heads, key=heads.key[:, order], value=heads.value[:, order])
    before = measured(heads)
    after = measured(moved)
    for name in before:
        torch.testing.assert_close(after[name], before[name], rtol=1e-8, atol=1e-10)
    assert predict(heads).problems == (None, None)


def test_the_mean_of_weighted_values_is_no_part_of_what_they_imply():
    heads = random_heads(0)
    inverse_mass = torch.exp(-spectrum(heads.key).log_mass)[:, :, None]
    moved = replace(heads, value=heads.value + 20 * inverse_mass * torch.arange(1.0, 5.0, dtype=torch.float64))
    before, after = measured(heads), measured(moved)
    for name in ("subspace_overlap", "eigenvector_residual"):
        torch.testing.assert_close(after[name], before[name])
    assert (after["centering_defect"] > before["centering_defect"]).all()
