import pytest
import torch

from attnaudit.gaussian import GaussianTokens, estimate, gaussian_moments, wishart, wishart_moments
from attnaudit.gaussian.checks import check_covariance
from tests.gaussian.setting import harmonic, parameter, seeded

SIGMA, MU = harmonic(5), parameter(5)


def test_a1_gaussian_moments_agree_with_two_million_draws():
    x, y = GaussianTokens(SIGMA).draw(2, 2_000_000, seeded(3))
    u, v, inner, norm = x @ MU, y @ MU, (x * y).sum(dim=1), x.square().sum(dim=1)
    drawn = {
        "⟨x,μ⟩²": u**2,
        "⟨x,y⟩⟨x,μ⟩⟨y,μ⟩": inner * u * v,
        "⟨x,y⟩⟨x,μ⟩³⟨y,μ⟩": inner * u**3 * v,
        "⟨x,μ⟩²|x|²": u**2 * norm,
        "⟨x,μ⟩⁴|x|²": u**4 * norm,
    }
    for name, theory in gaussian_moments(MU, SIGMA).items():
        assert abs(estimate(drawn[name]).z(theory)) < 4, name


@pytest.fixture(scope="module")
def wishart_draws():
    sigma = wishart(SIGMA, 5, 400_000, seeded(4))
    once = sigma @ MU
    trace, a, b = sigma.diagonal(dim1=1, dim2=2).sum(dim=1), once @ MU, once.square().sum(dim=1)
    return {
        "tr Σ": trace,
        "μᵀΣ²μ": b,
        "(μᵀΣμ)(μᵀΣ²μ)": a * b,
        "tr(Σ)·μᵀΣμ": trace * a,
        "tr(Σ)·(μᵀΣμ)²": trace * a**2,
    }


def test_a1_wishart_moments_agree_with_draws(wishart_draws):
    for name, theory in wishart_moments(MU, SIGMA, 5).items():
        assert abs(estimate(wishart_draws[name]).z(theory)) < 4, name


def test_the_third_wishart_moment_as_printed_is_rejected(wishart_draws):
    printed = wishart_moments(MU, SIGMA, 5)["(μᵀΣμ)(μᵀΣ²μ)"]
    assert abs(estimate(wishart_draws["μᵀΣ²μ"] ** 2).z(printed)) > 90


def test_wishart_draws_are_covariances():
    for sigma in wishart(SIGMA, 50, 3, seeded()):
        check_covariance(sigma)
    assert torch.linalg.matrix_rank(wishart(SIGMA, 2, 1, seeded())[0]) == 2
