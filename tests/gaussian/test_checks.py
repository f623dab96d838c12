import pytest
import torch

from attnaudit.errors import ShapeError, UsageError
from attnaudit.gaussian import (
    GaussianTokens,
    Kernel,
    WishartTokens,
    bbp_overlap,
    critical_points,
    harmonic_eigenvalues,
    infinite_prompt,
    minimise_on_data,
    random_covariance,
    risk_in_context,
    risk_infinite,
    risk_linear,
    simulated_risk,
    spiked_scale,
    wishart,
)
from tests.gaussian.setting import harmonic, parameter, seeded

SIGMA, MU = harmonic(3), parameter(3)
LOPSIDED = SIGMA + torch.tensor([[0, 0.5, 0], [0, 0, 0], [0, 0, 0]], dtype=torch.float64)
FLAT = torch.diag(torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64))
NEGATIVE = torch.diag(torch.tensor([1.0, 1.0, -0.5], dtype=torch.float64))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: risk_infinite(MU, LOPSIDED), "not symmetric: it differs from its transpose by up to 0.5"),
        (lambda: risk_linear(MU, FLAT, 4), "not positive definite: its smallest eigenvalue is 0"),
        (
            lambda: critical_points(infinite_prompt(), NEGATIVE),
            "its smallest eigenvalue is -0.5",
        ),
        (lambda: risk_infinite(MU, SIGMA * torch.nan), "not finite numbers"),
        (lambda: risk_linear(MU, SIGMA, 1), "A prompt of 1 tokens"),
        (lambda: simulated_risk(Kernel.LINEAR, MU, GaussianTokens(SIGMA), 1, 5, seeded()), "A prompt of 1 tokens"),
        (lambda: minimise_on_data(Kernel.LINEAR, torch.ones(2, 1, 3), torch.ones(3, 1)), "A prompt of 1 tokens"),
        (lambda: risk_in_context(MU, SIGMA, 3, length=0), "A prompt of 0 tokens"),
        (lambda: risk_in_context(MU, SIGMA, 0), "n = 0 vectors does not exist"),
        (lambda: wishart(SIGMA, 0, 1, seeded()), "n = 0 vectors does not exist"),
        (lambda: WishartTokens(SIGMA, -1), "n = -1 vectors does not exist"),
        (lambda: spiked_scale(MU, -0.1), "θ = -0.1, but"),
        (lambda: spiked_scale(MU, float("nan")), "θ = nan, but"),
        (lambda: bbp_overlap(-1.0, 0.5), "θ = -1, but"),
        (lambda: harmonic_eigenvalues(1), "no direction to find"),
        (lambda: random_covariance(torch.tensor([1.0, -1.0]), seeded()), "the smallest here is -1"),
    ],
)
def test_bad_numbers_are_refused_in_one_sentence(call, message):
    with pytest.raises(UsageError, match=message.replace("(", r"\(")) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_shapes_that_do_not_fit_are_shown():
    from attnaudit.gaussian.checks import check_covariance, check_weights

    with pytest.raises(ShapeError, match=r"shape \(2, 3\)"):
        check_covariance(torch.ones(2, 3))
    with pytest.raises(ShapeError, match=r"\(4,\) does not fit a covariance of shape \(3, 3\)"):
        check_weights(torch.ones(4), SIGMA)
