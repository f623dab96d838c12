"""Every eigensolver finds the same spectrum, and says how well."""

import pytest
import torch

from attnaudit.errors import AttnAuditError, ShapeError
from attnaudit.kernel import eigen, kernel_pca_values, krylov, normalised_gram, solvers, spectrum
from attnaudit.kernel.gram import centred, finite_heads
from attnaudit.kernel.implicit import BLOCK, implicit_gram
from attnaudit.measures import DEFAULT_MEASURES, MEASURES, MeasureInput, Scope, evaluate, pairs
from tests.heads import make_heads


def long_keys(tokens, heads=2, dim=8, seed=0):
    """Keys with a mean and a decaying covariance, as trained heads have."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.logspace(0.4, -0.6, dim, dtype=torch.float64)
    centre = torch.randn(heads, 1, dim, generator=generator, dtype=torch.float64)
    return centre + sizes * torch.randn(heads, tokens, dim, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("backend", ["subspace", "matrix-free"])
@pytest.mark.parametrize("tokens", [100, 400])
def test_krylov_solvers_find_the_dense_spectrum(backend, tokens):
    keys = long_keys(tokens)
    dense, found = spectrum(keys, backend="dense"), spectrum(keys, backend=backend)
    torch.testing.assert_close(found.eigenvalues, dense.eigenvalues, rtol=1e-9, atol=0)
    overlap = (found.eigenvectors.mT @ dense.eigenvectors).square().sum(dim=(1, 2)) / 8
    torch.testing.assert_close(overlap, torch.ones(2, dtype=torch.float64), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.log_mass, dense.log_mass)
    assert found.solvers == (backend,) * 2
    assert (found.residual < 1e-7).all()
    assert (found.numerical_rank > 8).all()


def test_keys_in_general_position_with_a_flat_spectrum():
    """Independent keys have no gap after the last eigenvalue: the hardest case, and a rank that is not the width."""
    keys = torch.randn(1, 300, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    dense, found = spectrum(keys, 10, backend="dense"), spectrum(keys, 10, backend="matrix-free")
    torch.testing.assert_close(found.eigenvalues, dense.eigenvalues, rtol=1e-8, atol=0)


def test_products_without_the_matrix_are_those_with_it(monkeypatch):
    monkeypatch.setitem(BLOCK, "cpu", 1000)  # several blocks
    keys = long_keys(150) * 4  # entries over many orders of magnitude
    scale = torch.tensor([0.3, 0.05], dtype=torch.float64)
    gram = normalised_gram(keys, scale)
    operator, log_scale, log_mass = implicit_gram(keys, scale)
    torch.testing.assert_close(log_scale, gram.log_scale, rtol=0, atol=1e-10)
    torch.testing.assert_close(log_mass, gram.log_mass, rtol=1e-12, atol=0)
    vectors = torch.randn(2, 150, 3, dtype=torch.float64)
    expected = centred(gram.matrix) @ vectors
    torch.testing.assert_close(operator @ vectors, expected, rtol=1e-9, atol=1e-11 * expected.abs().max().item())


def test_what_does_not_converge_is_solved_in_full_and_says_so(monkeypatch):
    monkeypatch.setattr(krylov, "CYCLES", 1)
    monkeypatch.setattr(krylov, "DEPTH", 1)
    keys = torch.randn(2, 200, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = spectrum(keys, backend="subspace")
    assert found.solvers == ("dense", "dense")
    torch.testing.assert_close(found.eigenvalues, spectrum(keys, backend="dense").eigenvalues)
    monkeypatch.setattr(eigen, "LARGEST_DENSE", 100)
    stopped = spectrum(keys, backend="matrix-free")
    assert stopped.solvers == ("not converged",) * 2
    assert stopped.eigenvalues.isnan().all()
    assert kernel_pca_values(stopped).problems == ("its eigenpairs did not converge",) * 2


def test_the_residual_is_what_it_says():
    found = spectrum(long_keys(60), backend="dense")
    error = found.times(found.eigenvectors) - found.eigenvectors * found.scaled_eigenvalues[:, None, :]
    share = torch.linalg.vector_norm(error, dim=1) / found.scaled_eigenvalues
    torch.testing.assert_close(found.residual, share.amax(dim=-1))


def test_the_solver_is_chosen_by_size():
    cpu = torch.device("cpu")
    assert solvers.chosen("auto", 197, 64, cpu) == "dense"
    assert solvers.chosen("auto", 1024, 64, cpu) == "subspace"
    assert solvers.chosen("auto", 4096, 64, cpu) == "matrix-free"
    assert solvers.chosen("auto", 4096, 1000, cpu) == "dense"
    assert spectrum(long_keys(solvers.LARGE + 1, heads=1)).solvers == ("matrix-free",)


def test_solvers_that_are_not_there_are_errors():
    with pytest.raises(AttnAuditError, match=r"'other'.*auto, dense, batched"):
        spectrum(long_keys(20), backend="other")
    if not torch.cuda.is_available():
        with pytest.raises(AttnAuditError, match="batched"):
            spectrum(long_keys(20), backend="batched")
    with pytest.raises(ShapeError, match="was not built"):
        _ = spectrum(long_keys(100), backend="matrix-free").matrix


def test_measures_of_long_heads_are_those_of_the_matrix(monkeypatch):
    """The same head measured with the matrix and without it; what needs all pairs is missing, with the reason."""
    generator = torch.Generator().manual_seed(1)
    keys = long_keys(300)
    query, value = (torch.randn(2, 300, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    heads = make_heads(query, keys, value)
    measures = [MEASURES[name] for name in DEFAULT_MEASURES]
    measures = [own for own in measures if own.scope is not Scope.PRIMAL and own.applies_to(heads)]
    with_matrix = evaluate(measures, MeasureInput.of(heads))
    monkeypatch.setattr(solvers, "LARGE", 100)
    monkeypatch.setattr(pairs, "MOST_TOKENS", 100)
    monkeypatch.setitem(BLOCK, "cpu", 5000)
    at = MeasureInput.of(heads)
    without = evaluate(measures, at)
    assert at.keys.spectrum.solvers == ("matrix-free",) * 2
    needs_pairs = {"matched_cosine_mean", "matched_cosine_max", "kernel_cka", "linear_cka_debiased"}
    signs = {"direct_cosine_mean", "direct_cosine_max"}  # hang on the arbitrary signs of eigenvectors
    for name, numbers in without.items():
        if name in needs_pairs:
            assert numbers.values.isnan().all(), name
            assert all("all pairs of tokens" in problem for problem in numbers.problems)
        elif name != "kernel_rank" and name not in signs:
            torch.testing.assert_close(numbers.values, with_matrix[name].values, rtol=2e-5, atol=1e-9, msg=name)


def test_heads_that_are_not_finite_are_lost_alone():
    keys = long_keys(200)
    keys[1, 5, 2] = torch.nan
    for backend in ("subspace", "matrix-free"):
        found = spectrum(keys, backend=backend)
        assert found.eigenvalues[1].isnan().all()
        torch.testing.assert_close(found.eigenvalues[0], spectrum(keys[:1], backend="dense").eigenvalues[0])
        assert found.numerical_rank[1] == 0


def exhausted_keys():
    """Kernels of few eigenvalues: padding, repeated tokens, tokens on a line, one far away, and nothing at all."""
    generator = torch.Generator().manual_seed(1)
    base = torch.randn(600, 8, generator=generator, dtype=torch.float64)
    zeros = torch.zeros_like(base)
    line = torch.linspace(-1, 1, 600, dtype=torch.float64)[:, None] * torch.ones(1, 8, dtype=torch.float64)
    far = base.clone()
    far[3] *= 30
    return {
        "padding": torch.cat([base[:12], zeros[12:]]),
        "40 tokens repeated": base[:40].repeat(15, 1),
        "4 tokens repeated": base[:4].repeat(150, 1),
        "on a line": line,
        "one far away": far,
        "all equal": torch.ones_like(base),
        "zero": zeros,
    }


@pytest.mark.parametrize("name", exhausted_keys())
@pytest.mark.parametrize("backend", ["subspace", "matrix-free"])
def test_kernels_with_few_eigenvalues(name, backend):
    keys = exhausted_keys()[name][None]
    dense, found = spectrum(keys, backend="dense"), spectrum(keys, backend=backend)
    above = min(int(dense.numerical_rank), 8)
    assert min(int(found.numerical_rank), 8) == above
    ours, theirs = (result.scaled_eigenvalues[:, :above] for result in (found, dense))
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-12)
    gram = found.eigenvectors[0].mT @ found.eigenvectors[0]
    torch.testing.assert_close(gram, torch.eye(8, dtype=torch.float64), rtol=0, atol=1e-10)


def test_a_head_does_not_suffer_from_its_neighbours():
    generator = torch.Generator().manual_seed(1)
    flat = torch.randn(1, 500, 16, generator=generator, dtype=torch.float64)
    alone = spectrum(flat, backend="matrix-free")
    lost = flat.clone()
    lost[0, 0, 0] = torch.nan
    for neighbour in (torch.ones_like(flat), lost):
        beside = spectrum(torch.cat([neighbour, flat]), backend="matrix-free")
        torch.testing.assert_close(beside.eigenvalues[1], alone.eigenvalues[0], rtol=1e-9, atol=0)


def test_odd_sizes():
    keys = torch.randn(1, 40, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for backend in ("subspace", "matrix-free"):
        wide = spectrum(keys, 20, backend=backend)
        torch.testing.assert_close(wide.eigenvalues, spectrum(keys, 20, backend="dense").eigenvalues, rtol=1e-8, atol=0)
        assert spectrum(keys[:0], backend=backend).eigenvalues.shape == (0, 4)


def test_what_is_not_finite_is_seen_and_large_sums_are_not_mistaken_for_it():
    large = torch.full((1, 3, 3), 1e308, dtype=torch.float64)
    assert finite_heads(large).all()
    for bad in (torch.inf, -torch.inf, torch.nan):
        mixed = torch.zeros(2, 3, 3)
        mixed[1, 0, 1], mixed[1, 2, 2] = bad, -bad
        assert finite_heads(mixed).tolist() == [True, False]
        assert solvers.singular_values(mixed)[1].isnan().all()


def with_singular_values(sizes, heads=3, seed=0):
    """Matrices of known singular values, and their right singular vectors as rows."""
    generator = torch.Generator().manual_seed(seed)
    left, right = (
        torch.linalg.qr(torch.randn(heads, len(sizes), len(sizes), generator=generator, dtype=torch.float64))[0]
        for _ in range(2)
    )
    return left * sizes @ right.mT, right.mT


@pytest.fixture
def like_a_gpu(monkeypatch):
    """What a GPU does, on a CPU; a full decomposition is an error."""
    monkeypatch.setattr(solvers.cusolver, "available", lambda matrix: True)
    monkeypatch.setattr(solvers.cusolver, "batched_eigh", torch.linalg.eigh)
    monkeypatch.setattr(solvers, "_decomposed", None)


@pytest.mark.usefixtures("like_a_gpu")
@pytest.mark.parametrize("orders", [2, 5, 9, 14])
def test_singular_vectors_of_a_gpu_are_accurate_over_many_orders_of_magnitude(orders):
    sizes = torch.logspace(0, -orders, 60, dtype=torch.float64)
    matrix, expected = with_singular_values(sizes)
    found, right = solvers.right_singular_vectors(matrix, 40)
    torch.testing.assert_close(found[:, :40], sizes[:40].expand(3, -1), rtol=1e-7, atol=0)
    cosines = (right * expected).sum(dim=-1).abs()[:, :40]
    torch.testing.assert_close(cosines, torch.ones_like(cosines), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("orders", "decomposed"), [(2, False), (6, False), (9, False), (11, True)])
def test_singular_vectors_of_a_cpu_are_accurate_and_few_matrices_are_decomposed(orders, decomposed, monkeypatch):
    calls, decompose = [], solvers._decomposed
    monkeypatch.setattr(solvers, "_decomposed", lambda matrix: calls.append(len(matrix)) or decompose(matrix))
    sizes = torch.logspace(0, -orders, 60, dtype=torch.float64)
    matrix, expected = with_singular_values(sizes)
    found, right = solvers.right_singular_vectors(matrix, 40)
    torch.testing.assert_close(found[:, :40], sizes[:40].expand(3, -1), rtol=1e-7, atol=0)
    cosines = (right * expected).sum(dim=-1).abs()[:, :40]
    torch.testing.assert_close(cosines, torch.ones_like(cosines), rtol=0, atol=1e-12)
    torch.testing.assert_close(right @ right.mT, torch.eye(60, dtype=torch.float64).expand(3, -1, -1))
    assert calls == ([3] if decomposed else [])


@pytest.mark.usefixtures("like_a_gpu")
def test_singular_values_below_rounding_are_zero_to_rounding_on_a_gpu():
    sizes = torch.cat([torch.logspace(0, -5, 10, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)])
    matrix, _ = with_singular_values(sizes)
    found, right = solvers.right_singular_vectors(matrix, 15)
    torch.testing.assert_close(found[:, :10], sizes[:10].expand(3, -1))
    assert (found[:, 10:] < 1e-13).all()
    torch.testing.assert_close(right @ right.mT, torch.eye(30, dtype=torch.float64).expand(3, -1, -1))


def test_vectors_that_are_not_singular_vectors_leave_a_residual():
    matrix, right = with_singular_values(torch.logspace(0, -6, 30, dtype=torch.float64))
    sizes = torch.logspace(0, -6, 30, dtype=torch.float64).expand(3, -1)
    assert (solvers._residual(matrix, sizes[:, :20], right[:, :20]) < 1e-13).all()
    mixed = right.clone()
    mixed[:, 18:21] = right[:, 18:21].roll(1, dims=1) * 0.6 + right[:, 18:21] * 0.8
    assert (solvers._residual(matrix, sizes[:, :20], mixed[:, :20]) > 1e-9).all()


@pytest.mark.parametrize("smallest", [1e-2, 1e-5, 1e-9, 0.0])
def test_sums_of_singular_values_are_those_of_a_decomposition(smallest):
    sizes = torch.linspace(1, 0, 20, dtype=torch.float64) ** 2 + smallest
    matrix, _ = with_singular_values(sizes)
    found = solvers.singular_values(matrix[:, :, :15])
    torch.testing.assert_close(found, torch.linalg.svdvals(matrix[:, :, :15]), rtol=1e-9, atol=1e-12)


def test_values_that_are_not_finite_have_no_singular_values():
    matrix = torch.randn(3, 5, 4, dtype=torch.float64)
    matrix[1, 2, 3] = torch.inf
    found = solvers.singular_values(matrix)
    assert found[1].isnan().all()
    assert found[[0, 2]].isfinite().all()
