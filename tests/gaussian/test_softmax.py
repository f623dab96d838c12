import math

import numpy as np
import pytest
import torch

from attnaudit.gaussian import (
    Estimate,
    GaussianTokens,
    Kernel,
    SoftmaxProfile,
    estimate,
    finite_prompt,
    held_out_concentration,
    optimum,
    reconstruction_loss,
)
from tests.gaussian.setting import harmonic, parameter, seeded

SIGMA, MU = harmonic(5), parameter(5, size=1.2)

#: Monte Carlo, jackknife error 0.002 to 0.005; t/λ₁ = 1.5, 2.5, 4.
TABLE = {
    4: (1.282, 1.303, 1.317),
    8: (1.093, 1.081, 1.070),
    16: (1.027, 1.000, 0.975),
    32: (1.000, 0.971, 0.942),
    64: (0.991, 0.965, 0.936),
    128: (0.992, 0.972, 0.947),
    256: (0.984, 0.969, 0.949),
}


@pytest.mark.parametrize("kernel", list(Kernel))
def test_a8_the_risk_is_one_dimensional(kernel):
    """tω + (b/a)g and the loss itself on the same prompts: their difference has mean 0."""
    length, differences = 16, []
    a, b, t = MU @ SIGMA @ MU, MU @ SIGMA @ SIGMA @ MU, SIGMA.trace()
    generator = seeded(9)
    for _ in range(8):
        tokens = GaussianTokens(SIGMA).draw(50_000, length, generator)
        u = tokens @ MU
        scores = u[:, :1] * u
        weights = torch.softmax(scores, dim=1) if kernel is Kernel.SOFTMAX else scores / length
        z = u / a.sqrt()
        omega = 1 - 2 * weights[:, 0] + weights.square().sum(dim=1)
        rho = (z[:, 0] - (weights * z).sum(dim=1)).square()
        predicted = t * omega + b / a * (rho - omega)
        differences.append(reconstruction_loss(kernel, tokens, MU[:, None], queries=1) - predicted)
    assert abs(estimate(torch.cat(differences)).z(0.0)) < 4


def test_the_profile_gives_the_risk_of_the_softmax():
    profile, quotient = SoftmaxProfile(16, 50_000, seeded(1)), float(MU @ SIGMA @ SIGMA @ MU / (MU @ SIGMA @ MU))
    predicted = estimate(profile.risk(float(MU @ SIGMA @ MU), float(SIGMA.trace()) / quotient))
    tokens = GaussianTokens(SIGMA).draw(100_000, 16, seeded(2))
    measured = estimate(reconstruction_loss(Kernel.SOFTMAX, tokens, MU[:, None], queries=2))
    assert abs(measured.z(quotient * predicted.mean, quotient * predicted.standard_error)) < 4


def test_a9_curvature_of_the_softmax_risk_at_the_origin():
    length = 16
    tokens = GaussianTokens(SIGMA).draw(40_000, length, seeded(3))

    def risk(mu):
        return reconstruction_loss(Kernel.SOFTMAX, tokens, mu[:, None], queries=4).mean()

    hessian = torch.autograd.functional.hessian(risk, torch.zeros(5, dtype=torch.float64))
    expected = -4 * (1 - 1 / length) * (SIGMA.trace() * SIGMA / length + SIGMA @ SIGMA)
    assert float((hessian - expected).norm() / expected.norm()) < 0.02


@pytest.mark.parametrize("length", TABLE)
def test_a10_optimal_sizes_of_the_softmax(length):
    profile = SoftmaxProfile(length, 2**18 // length, seeded(length))
    for ratio, expected in zip((1.5, 2.5, 4.0), TABLE[length], strict=True):
        found = profile.optimal_size(ratio)
        assert found.mean == pytest.approx(expected, abs=0.02)
        assert found.standard_error < 0.01
        assert float(profile.gain(found.mean).mean()) < 0


def test_comparing_the_softmax_with_1_would_be_wrong():
    """The check above has power: at L = 64 and t/λ₁ = 4 the size is far from the infinite prompt's."""
    found = SoftmaxProfile(64, 4096, seeded(0)).optimal_size(4.0)
    assert abs(found.z(1.0)) > 5


@pytest.mark.parametrize(("size", "low", "high"), [(0.5, 0.95, 1.05), (1.0, 0.55, 0.85)])
def test_a18_the_softmax_average_converges_slowly_at_the_optimum(size, low, high):
    lengths = (512, 2048, 8192, 32768)
    logs = [math.log(held_out_concentration(size, n, 2**19 // n, seeded(n)).mean) for n in lengths]
    slope, _ = np.polyfit(np.log(lengths), logs, 1)
    assert low < -slope < high


def test_the_optimum_of_linear_attention_is_exact():
    best = optimum(Kernel.LINEAR, SIGMA, 8, seeded())
    assert best.size.standard_error == 0
    assert float(best.point @ SIGMA @ best.point) == pytest.approx(best.size.mean)
    assert float(finite_prompt(8).gradient(best.point[:, None], SIGMA).norm()) < 1e-12


@pytest.mark.parametrize("size", [0.3, 1.5])
def test_a_single_token_has_all_of_the_weight_whatever_the_query(size):
    found = held_out_concentration(size, 1, 10, seeded())
    assert (found.mean, found.standard_error) == pytest.approx((1, 0), abs=1e-6)


def test_weights_that_are_all_equal_have_a_concentration_of_one_over_their_number():
    assert held_out_concentration(0.0, 5, 10, seeded()).mean == pytest.approx(1 / 5, abs=1e-6)


def test_how_far_a_simulation_is_from_theory_counts_the_errors_of_both():
    assert Estimate(2.0, 0.3).z(1.0) == pytest.approx(1 / 0.3)
    assert Estimate(2.0, 0.3).z(3.0, 0.4) == pytest.approx(-1 / 0.5)
