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
        (lambda: risk_infinite(MU, LOPSIDED), "not symmetric.* 0.5"),
        (lambda: risk_linear(MU, FLAT, 4), "not positive definite.* eigenvalue is 0"),
        (lambda: critical_points(infinite_prompt(), NEGATIVE), "not positive definite.* eigenvalue is -0.5"),
        (lambda: risk_infinite(MU, SIGMA * torch.nan), "not finite"),
        (lambda: risk_linear(MU, SIGMA, 1), "length .* got 1"),
        (lambda: simulated_risk(Kernel.LINEAR, MU, GaussianTokens(SIGMA), 1, 5, seeded()), "length .* got 1"),
        (lambda: minimise_on_data(Kernel.LINEAR, torch.ones(2, 1, 3), torch.ones(3, 1)), "length .* got 1"),
        (lambda: risk_in_context(MU, SIGMA, 3, length=0), "length .* got 0"),
        (lambda: risk_in_context(MU, SIGMA, 0), "n .* got 0"),
        (lambda: wishart(SIGMA, 0, 1, seeded()), "n .* got 0"),
        (lambda: WishartTokens(SIGMA, -1), "n .* got -1"),
        (lambda: spiked_scale(MU, -0.1), "θ .* got -0.1"),
        (lambda: spiked_scale(MU, float("nan")), "θ .* got nan"),
        (lambda: bbp_overlap(-1.0, 0.5), "θ .* got -1"),
        (lambda: harmonic_eigenvalues(1), "dimension .* got 1"),
        (lambda: random_covariance(torch.tensor([1.0, -1.0]), seeded()), "eigenvalues .* got -1"),
    ],
)
def test_bad_numbers_are_refused_on_one_line(call, message):
    with pytest.raises(UsageError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_shapes_that_do_not_fit_are_shown():
    from attnaudit.gaussian.checks import check_covariance, check_weights

    with pytest.raises(ShapeError, match=r"shape \(2, 3\)"):
        check_covariance(torch.ones(2, 3))
    with pytest.raises(ShapeError, match=r"\(4,\).*\(3, 3\)"):
        check_weights(torch.ones(4), SIGMA)
