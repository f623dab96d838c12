import math
from dataclasses import fields, replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.gaussian import (
    GaussianTokens,
    Kernel,
    Risk,
    WishartTokens,
    estimate,
    finite_prompt,
    infinite_prompt,
    risk_in_context,
    risk_infinite,
    risk_linear,
    simulated_risk,
    wishart,
)
from attnaudit.gaussian.experiments.findings import TheoryCheck
from tests.gaussian.setting import harmonic, parameter, seeded

SIGMA, MU = harmonic(5), parameter(5)
LENGTHS = (2, 4, 8, 32)


@pytest.fixture(scope="module")
def simulations():
    """The linear risk at each length, every token a query."""
    numbers = {2: 200_000, 4: 200_000, 8: 100_000, 32: 50_000}
    return {
        length: simulated_risk(Kernel.LINEAR, MU, GaussianTokens(SIGMA), length, numbers[length], seeded(length))
        for length in LENGTHS
    }


@pytest.mark.parametrize("length", LENGTHS)
def test_a2_linear_risk_agrees_with_simulation(simulations, length):
    assert abs(simulations[length].z(float(risk_linear(MU, SIGMA, length)))) < 4


def _with_a_wrong_factor(n):
    """(L+3) → (L+2) in front of ab."""
    return Risk(t=1.0, tp=-2 / n, c=-2 * (n + 1) / n, e=(n + 2) * (n + 2) / n**2, th=(n + 2) / n**2)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: finite_prompt(n, held_out=True),
        _with_a_wrong_factor,
        lambda n: replace(finite_prompt(n), tp=0.0),
        lambda n: infinite_prompt(),
    ],
    ids=["query held out", "L+2 for L+3", "2ta/L dropped", "infinite prompt"],
)
def test_a3_the_same_simulations_reject_wrong_formulas(simulations, wrong):
    scores = [abs(simulations[n].z(float(wrong(n)(MU[:, None], SIGMA)))) for n in LENGTHS]
    assert max(scores) > 8


@pytest.mark.parametrize("length", [1, 2, 8, 64])
@pytest.mark.parametrize("rank", [1, 3])
def test_a4_finite_prompts_are_wishart_tasks(length, rank):
    """R_L(W; Σ) = E R∞(W; Ŝ), Ŝ ~ Wishart(Σ, L)/L: the two formulas were derived apart."""
    dual = infinite_prompt().over_wishart(length)
    weights = parameter(5, rank)
    expected = dual(weights / math.sqrt(length), SIGMA) / length
    assert float(finite_prompt(length)(weights, SIGMA)) == pytest.approx(float(expected), rel=1e-12)


def test_a4_long_prompts_reach_the_infinite_one():
    limit = float(risk_infinite(MU, SIGMA))
    assert float(risk_linear(MU, SIGMA, 10**7)) == pytest.approx(limit, rel=1e-5)
    in_context = float(risk_in_context(MU / 3, SIGMA, 5))
    assert float(risk_in_context(MU / 3, SIGMA, 5, length=10**8)) == pytest.approx(in_context, rel=1e-6)


def scalars(mu, sigma):
    return float(sigma.trace()), float(mu @ sigma @ mu), float(mu @ sigma @ sigma @ mu)


def test_the_published_forms_of_rank_one():
    t, a, b = scalars(MU, SIGMA)
    assert float(risk_infinite(MU, SIGMA)) == pytest.approx(t - 2 * b + a * b)
    for n in (2, 7, 100):
        finite = t - 2 / n * (t * a + (n + 1) * b) + (n + 2) / n**2 * (t * a * a + (n + 3) * a * b)
        assert float(risk_linear(MU, SIGMA, n)) == pytest.approx(finite)
        task = n * t - 2 * n * ((n + 1) * b + t * a) + n * (n + 2) * ((n + 3) * a * b + t * a * a)
        assert float(risk_in_context(MU, SIGMA, n)) == pytest.approx(task)
    n, m = 6, 9
    both = n * t - 2 * n / m * ((n + m + 1) * t * a + ((m + 1) * (n + 1) + 2) * b)
    both += n * (n + 2) * (m + 2) / m**2 * ((n + m + 3) * t * a * a + ((m + 3) * (n + 3) + 4) * a * b)
    assert float(risk_in_context(MU, SIGMA, n, length=m)) == pytest.approx(both)


@pytest.mark.parametrize("weights", [MU[:, None], parameter(5, rank=2)], ids=["rank one", "rank two"])
def test_the_held_out_query_agrees_with_simulation(weights):
    length, generator = 6, seeded(8)
    tokens = GaussianTokens(SIGMA).draw(100_000, length + 1, generator)
    query, prompt = tokens[:, :1], tokens[:, 1:]
    output = (query @ weights) @ (prompt @ weights).mT @ prompt / length
    losses = (query - output)[:, 0].square().sum(dim=1)
    assert abs(estimate(losses).z(float(finite_prompt(length, held_out=True)(weights, SIGMA)))) < 4


@pytest.mark.parametrize("length", [2, 8])
def test_a16_linear_risk_of_rank_two_agrees_with_simulation(length):
    weights = parameter(5, rank=2)
    found = simulated_risk(Kernel.LINEAR, weights, GaussianTokens(SIGMA), length, 100_000, seeded(5))
    assert abs(found.z(float(risk_linear(weights, SIGMA, length)))) < 4
    assert abs(found.z(float(finite_prompt(length, held_out=True)(weights, SIGMA)))) > 8


def test_in_context_risk_of_rank_two_agrees_with_simulation():
    """Every Wishart moment of rank k at once: tasks of n = 4 vectors, prompts of 3 tokens."""
    weights, degrees, length = parameter(5, rank=2, size=0.6), 4, 3
    source = WishartTokens(SIGMA, degrees)
    found = simulated_risk(Kernel.LINEAR, weights, source, length, 400_000, seeded(6))
    # Tasks are drawn divided by n: R(√n·W; Σ/n) = R(W; Σ)/n.
    theory = float(risk_in_context(weights / math.sqrt(degrees), SIGMA, degrees, length)) / degrees
    assert abs(found.z(theory)) < 4
    infinite = infinite_prompt()(weights, source.covariances(400_000, seeded(7)))
    assert abs(estimate(infinite).z(float(risk_in_context(weights / 2, SIGMA, 4)) / 4)) < 4


@pytest.mark.parametrize("product", [f.name for f in fields(Risk)])
def test_each_wishart_moment_agrees_with_draws(product):
    risk, weights = Risk(**{product: 1.0}), parameter(4, rank=2)
    sigma = harmonic(4)
    drawn = risk(weights, wishart(sigma, 3, 200_000, seeded(11)))
    assert abs(estimate(drawn).z(float(risk.over_wishart(3)(weights, sigma)))) < 4


@given(
    rank=st.integers(1, 3),
    seed=st.integers(0, 100),
    risk=st.sampled_from([infinite_prompt(), finite_prompt(3), finite_prompt(50), finite_prompt(4).over_wishart(3)]),
)
def test_the_gradient_is_that_of_autograd(rank, seed, risk):
    sigma = harmonic(4, seed)
    weights = parameter(4, rank, seed).requires_grad_()
    (expected,) = torch.autograd.grad(risk(weights, sigma), weights)
    torch.testing.assert_close(risk.gradient(weights.detach(), sigma), expected)


@given(seed=st.integers(0, 100), risk=st.sampled_from([infinite_prompt(), finite_prompt(5)]))
def test_the_hessian_is_that_of_autograd(seed, risk):
    sigma, mu = harmonic(4, seed), parameter(4, seed=seed)
    expected = torch.autograd.functional.hessian(lambda x: risk(x[:, None], sigma), mu)
    torch.testing.assert_close(risk.hessian(mu, sigma), expected)


@given(seed=st.integers(0, 1000), rank=st.integers(1, 3))
def test_risks_do_not_depend_on_the_basis_of_the_data_or_of_the_heads(seed, rank):
    sigma, weights = harmonic(4), parameter(4, rank, seed)
    rotation, _ = torch.linalg.qr(torch.randn(4, 4, generator=seeded(seed), dtype=torch.float64))
    heads, _ = torch.linalg.qr(torch.randn(rank, rank, generator=seeded(seed + 1), dtype=torch.float64))
    for risk in (infinite_prompt(), finite_prompt(6), finite_prompt(6).over_wishart(2)):
        here = risk(weights, sigma)
        torch.testing.assert_close(risk(rotation @ weights, rotation @ sigma @ rotation.mT), here)
        torch.testing.assert_close(risk(weights @ heads, sigma), here)


@given(length=st.integers(1, 5000), degrees=st.integers(1, 500))
def test_nothing_is_critical_off_the_axes(length, degrees):
    for risk in (infinite_prompt(), finite_prompt(length), finite_prompt(length, held_out=True)):
        assert risk.critical_only_on_axes
        assert risk.over_wishart(degrees).critical_only_on_axes


@given(size=st.floats(0.1, 2), length=st.integers(1, 100))
def test_the_risk_is_t_omega_plus_q_gain(size, length):
    risk = finite_prompt(length)
    mu = MU * math.sqrt(size / float(MU @ SIGMA @ MU))
    t, a, b = scalars(mu, SIGMA)
    assert float(risk(mu[:, None], SIGMA)) == pytest.approx(t * risk.omega(a) + b / a * risk.gain(a))


def test_a_check_without_sampling_has_no_z():
    assert TheoryCheck("x", 1.0, 1.1).z is None
    assert TheoryCheck("x", None, 1.1, 0.1).z is None
    assert TheoryCheck("x", 1.0, 1.2, 0.1).z == pytest.approx(2)
