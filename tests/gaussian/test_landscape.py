import pytest
import torch

from attnaudit.errors import NumericalError
from attnaudit.gaussian import Risk, critical_points, finite_prompt, infinite_prompt, principal_axes, spiked_scale
from tests.gaussian.setting import harmonic, seeded

SIGMA = harmonic(5)


def expected_curvatures(length, i):
    """The closed forms along each eigenvector at the i-th critical point (from 0)."""
    eigenvalues, _ = principal_axes(SIGMA)
    here, t = eigenvalues[i], eigenvalues.sum()
    if length is None:
        curvatures = 2 * eigenvalues * (here - eigenvalues)
        curvatures[i] = 8 * here**2
        return curvatures
    risk = finite_prompt(length)
    size = risk.optimal_size(float(here), float(t))
    curvatures = 2 * risk.gain(size) / size * eigenvalues * (eigenvalues - here)
    curvatures[i] = 8 * (t * here + (length + 1) * here**2) / length
    return curvatures


@pytest.mark.parametrize("length", [None, 1, 8, 128])
def test_a5_eigenvectors_are_critical_with_the_predicted_curvatures(length):
    risk = infinite_prompt() if length is None else finite_prompt(length)
    origin, *points = critical_points(risk, SIGMA)
    assert origin.signature == (5, 0, 0)
    assert origin.kind == "maximum"
    for i, point in enumerate(points):
        assert float(risk.gradient(point.point[:, None], SIGMA).abs().max()) < 1e-9
        hessian = torch.autograd.functional.hessian(lambda mu: risk(mu[:, None], SIGMA), point.point)
        _, vectors = principal_axes(SIGMA)
        along = (vectors.mT @ hessian @ vectors).diagonal()
        torch.testing.assert_close(along, expected_curvatures(length, i), atol=1e-9, rtol=0)
        assert point.signature == (i, 0, 5 - i)
        assert risk.steepest(point.eigenvalue, float(SIGMA.trace())) == pytest.approx(float(along[i]))
    assert [point.risk for point in points] == sorted(point.risk for point in points)


@pytest.mark.parametrize("length", [1, 8, 128])
def test_curvature_at_the_origin(length):
    expected = -4 / length * (SIGMA.trace() * SIGMA + (length + 1) * SIGMA @ SIGMA)
    torch.testing.assert_close(finite_prompt(length).hessian(torch.zeros(5, dtype=torch.float64), SIGMA), expected)


def test_the_infinite_prompt_at_its_minimum_is_the_pca_projector():
    minimum = critical_points(infinite_prompt(), SIGMA)[1]
    first = principal_axes(SIGMA)[1][:, 0]
    torch.testing.assert_close(torch.outer(SIGMA @ minimum.point, minimum.point), torch.outer(first, first))
    assert minimum.risk == pytest.approx(float(SIGMA.trace() - principal_axes(SIGMA)[0][0]))


@pytest.mark.parametrize("degrees", [1, 5, 50])
@pytest.mark.parametrize("theta", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("length", [None, 16])
def test_a13_the_critical_set_in_context(degrees, theta, length):
    dim, n = 6, degrees
    direction = torch.randn(dim, generator=seeded(2), dtype=torch.float64)
    scale = spiked_scale(direction, theta)
    inner = infinite_prompt() if length is None else finite_prompt(length)
    risk = inner.over_wishart(n)
    origin, aligned, orthogonal = critical_points(risk, scale)
    assert origin.signature == (dim, 0, 0)
    assert aligned.signature == (0, 0, dim)
    assert orthogonal.signature == (1, dim - 2, 1)
    assert orthogonal.multiplicity == dim - 1
    for point in (aligned, orthogonal):
        gradient = risk.gradient(point.point[:, None], scale)
        assert float(gradient.abs().max()) < 1e-10 * float(risk(0 * gradient, scale)) * n
    if length is None:
        lam, t = 1 + theta, dim + theta
        alpha2 = ((n + 1) * lam + t) / ((n + 2) * lam * ((n + 3) * lam + t))
        assert float(aligned.point.square().sum()) == pytest.approx(alpha2)
        radius2 = (n + 1 + t) / ((n + 2) * (n + 3 + t))
        assert float(orthogonal.point.square().sum()) == pytest.approx(radius2)
        along = 8 * n * lam * ((n + 1) * lam + t)
        assert float(aligned.curvatures.sort().values[-1]) == pytest.approx(along)
        inward = -2 * n * theta * lam * ((n + 1) * (n + 3) + (n - 1) * t) / (n + 3 + t)
        assert float(orthogonal.curvatures[0]) == pytest.approx(inward)
    else:
        lam, t, m = 1 + theta, dim + theta, length
        alpha2 = m * ((n + m + 1) * t + ((m + 1) * (n + 1) + 2) * lam)
        alpha2 /= (n + 2) * (m + 2) * lam * ((n + m + 3) * t + ((m + 3) * (n + 3) + 4) * lam)
        assert float(aligned.point.square().sum()) == pytest.approx(alpha2)


def test_isotropic_tokens_have_a_sphere_of_minima():
    _, sphere = critical_points(infinite_prompt(), torch.eye(4, dtype=torch.float64))
    assert sphere.multiplicity == 4
    assert sphere.signature == (0, 3, 1)


def test_a_risk_with_points_off_the_axes_is_not_listed():
    with pytest.raises(NumericalError, match="off the eigenvectors"):
        critical_points(Risk(t=1.0, tp=-2.0, c=-0.1, e=1.0, th=1.0), SIGMA)
