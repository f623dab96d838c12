import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import KernelPCA

from attnaudit.errors import NumericalError, ShapeError
from attnaudit.kernel import eigen, kernel_pca_values, normalised_gram, spectrum
from attnaudit.kernel.graded import graded_eigenpairs
from tests.heads import fixture_heads, random_heads

sizes = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 3.0, 30.0, 1e3, 1e6])


def test_eigenpairs_equal_scikit_learns_kernel_pca():
    key = fixture_heads().key
    gram = normalised_gram(key)
    matrix = (gram.matrix * gram.log_scale.exp()[:, None, None])[0].numpy()
    oracle = KernelPCA(n_components=64, kernel="precomputed", eigen_solver="dense").fit(matrix)
    ours = spectrum(key)
    torch.testing.assert_close(ours.eigenvalues[0], torch.from_numpy(oracle.eigenvalues_), rtol=1e-10, atol=0)
    overlap = (ours.eigenvectors[0] * torch.from_numpy(oracle.eigenvectors_)).sum(0).abs()
    torch.testing.assert_close(overlap, torch.ones_like(overlap), rtol=1e-9, atol=0)


def test_projections_of_the_keys_equal_scikit_learns_transform():
    """With unit axes, φ̃(k_i)·u_m = √μ_m e_im is what kernel PCA returns for its own training points."""
    key = random_heads(3, heads=1, tokens=30, dim=4).key
    gram = normalised_gram(key)
    matrix = (gram.matrix * gram.log_scale.exp()[:, None, None])[0].numpy()
    oracle = torch.from_numpy(KernelPCA(n_components=4, kernel="precomputed").fit_transform(matrix))
    ours = spectrum(key)
    projections = (ours.matrix @ (ours.eigenvectors * ours.eigenvalues.rsqrt()[:, None, :]))[0]
    torch.testing.assert_close(projections.abs(), oracle.abs(), rtol=1e-8, atol=1e-12)


@given(st.integers(0, 10_000))
def test_eigenpairs_solve_the_eigenvalue_problem_and_are_orthonormal(seed):
    result = spectrum(random_heads(seed).key)
    product = result.times(result.eigenvectors)
    torch.testing.assert_close(product, result.eigenvectors * result.scaled_eigenvalues[:, None, :], rtol=0, atol=1e-13)
    identity = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    torch.testing.assert_close(result.eigenvectors.mT @ result.eigenvectors, identity, rtol=0, atol=1e-12)
    assert (result.scaled_eigenvalues.diff(dim=-1) <= 0).all()


@given(st.integers(0, 10_000))
def test_eigenvectors_of_nonzero_eigenvalues_are_orthogonal_to_ones(seed):
    result = spectrum(random_heads(seed).key)
    assert result.eigenvectors.sum(dim=1).abs().max() < 1e-10


@given(st.integers(0, 10_000), sizes, st.integers(0, 5))
def test_largest_eigenvalue_never_exceeds_its_bound(seed, size, duplicates):
    key = size * random_heads(seed, tokens=12).key
    key[:, :duplicates] = key[:, :1]
    result = spectrum(key)
    assert (result.bound_ratio <= 1 + 1e-9).all() or size == 0.0


def test_a_violated_bound_is_an_error_not_a_number(monkeypatch):
    honest = eigen.eigenpairs
    monkeypatch.setattr(eigen, "eigenpairs", lambda matrix, backend: (honest(matrix)[0] * 1e6, honest(matrix)[1]))
    with pytest.raises(NumericalError, match="bound"):
        spectrum(random_heads(0).key)


def log_eigenvalues_by_mpmath(key):
    """log μ, largest first, in 1200 digits."""
    mpmath.mp.dps = 1200
    n, dim = key.shape
    rows = [[mpmath.mpf(x) for x in row] for row in key.tolist()]
    kernel = mpmath.matrix(n, n)
    for i in range(n):
        for j in range(n):
            kernel[i, j] = mpmath.exp(sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) / mpmath.sqrt(dim))
    mass = [sum(kernel[i, j] for j in range(n)) for i in range(n)]
    for i in range(n):
        for j in range(n):
            kernel[i, j] /= mass[i] * mass[j]
    projection = mpmath.eye(n) - mpmath.ones(n, n) / n
    values = mpmath.eigsy(projection * kernel * projection, eigvals_only=True)
    return torch.tensor([float(mpmath.log(abs(v))) for v in sorted(values, reverse=True)], dtype=torch.float64)


@pytest.mark.parametrize("size", [0.5, 5.0, 15.0, 30.0])
def test_eigenvalues_equal_arbitrary_precision_however_long_the_keys(size):
    """At size 15 products of keys pass 88.7, where float32 `exp` overflows, at 30 those of float64, 709.8; the
    eigenvalues then span up to 400 orders of magnitude and every one is right."""
    generator = torch.Generator().manual_seed(0)
    key = size * torch.randn(1, 7, 3, generator=generator, dtype=torch.float64)
    ours = spectrum(key, rank=3)
    logs = ours.scaled_eigenvalues.log() + ours.log_scale[:, None]
    torch.testing.assert_close(logs[0], log_eigenvalues_by_mpmath(key[0])[:3], rtol=0, atol=1e-8)
    assert ours.numerical_rank.item() >= 3


@given(st.integers(0, 10_000))
def test_graded_solver_agrees_with_the_ordinary_one_where_both_work(seed):
    key = random_heads(seed, heads=1).key
    ordinary = spectrum(key, rank=6)
    values, vectors = graded_eigenpairs(key[0].numpy(), 0.5)
    torch.testing.assert_close(torch.from_numpy(values[:6]), ordinary.scaled_eigenvalues[0], rtol=1e-9, atol=0)
    overlap = (torch.from_numpy(vectors[:, :6]) * ordinary.eigenvectors[0]).sum(0).abs()
    torch.testing.assert_close(overlap, torch.ones_like(overlap), rtol=1e-6, atol=0)


@pytest.mark.parametrize("rank", [0, 15, -1])
def test_impossible_rank_is_refused(rank):
    with pytest.raises(ShapeError, match=f"got {rank}\\."):
        spectrum(random_heads(0).key, rank=rank)


def test_a_head_with_keys_that_are_not_finite_spoils_only_itself():
    key = random_heads(0, heads=3).key
    clean = spectrum(key)
    key[1, 0, 0] = torch.nan
    result = spectrum(key)
    assert result.eigenvalues[1].isnan().all()
    torch.testing.assert_close(result.eigenvalues[[0, 2]], clean.eigenvalues[[0, 2]])
    assert kernel_pca_values(result).problems[1] == result.problems[1]


@pytest.mark.parametrize("size", [1.0, 12.0])  # with the larger keys, an ordinary solver loses the small eigenvalues
@pytest.mark.parametrize("lost", [None, torch.nan])
def test_eigenvalues_are_the_same_without_eigenvectors(size, lost):
    keys = size * random_heads(0, heads=3, tokens=20, dim=4).key.double()
    if lost is not None:
        keys[1, 2, 3] = lost
    whole = spectrum(keys)
    values, problems = eigen.leading_eigenvalues(keys)
    torch.testing.assert_close(values, whole.eigenvalues, rtol=1e-8, atol=0, equal_nan=True)
    assert problems == whole.problems
    assert ("graded" in whole.solvers) == (size > 1)
