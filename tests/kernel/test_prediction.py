import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.kernel import kernel_pca_values, spectrum
from tests.heads import fixture_heads, random_heads

seeds = st.integers(0, 10_000)


def dense_values(result, unit_axes):
    """G A - G 1_N A, written out."""
    vectors = result.eigenvectors * (result.eigenvalues.rsqrt()[:, None, :] if unit_axes else 1)
    inverse = torch.diag_embed(torch.exp(-result.log_mass))
    n = vectors.shape[1]
    return inverse @ vectors - inverse @ torch.full((n, n), 1 / n, dtype=vectors.dtype) @ vectors


@given(seeds, st.booleans())
def test_values_equal_the_dense_formula(seed, unit_axes):
    result = spectrum(random_heads(seed).key)
    prediction = kernel_pca_values(result, unit_axes=unit_axes)
    ours = prediction.values * prediction.log_scale.exp()[:, None, None]
    torch.testing.assert_close(ours, dense_values(result, unit_axes), rtol=1e-7, atol=1e-12)


@given(seeds)
def test_unit_axes_have_length_one_in_feature_space(seed):
    """‖u_m‖² = a_mᵀ K̃ a_m with a_m = e_m/√μ_m."""
    result = spectrum(random_heads(seed).key)
    coefficients = result.eigenvectors * result.eigenvalues.rsqrt()[:, None, :]
    lengths = torch.einsum("hnm,hnk,hkm->hm", coefficients, result.matrix, coefficients)
    torch.testing.assert_close(lengths, torch.ones_like(lengths), rtol=1e-9, atol=0)


def test_too_few_components_are_missing_with_the_reason():
    key = random_heads(0, heads=2, tokens=14, dim=4).key
    key[0] = key[0, :1]  # all tokens alike: nothing is left after centring
    key[1, 2:] = key[1, 2:3]  # three different tokens: two components
    prediction = kernel_pca_values(spectrum(key))
    assert prediction.values.isnan().all()
    assert prediction.problems[1] == "only 2 of 4 kernel components are above rounding error"
    assert prediction.problems[0] is not None


def test_keys_beyond_float32_have_finite_values():
    key = 7 * fixture_heads().key
    assert (key.square().sum(-1) / 8).max() > 88.8  # where float32 exp overflows
    prediction = kernel_pca_values(spectrum(key))
    assert prediction.values.isfinite().all()
    assert prediction.log_scale.isfinite().all()


def test_tokens_that_are_alike_are_missing_rather_than_noise():
    key = 40 * random_heads(2, tokens=30).key
    key[:, 3:] = key[:, :1]
    prediction = kernel_pca_values(spectrum(key))
    assert prediction.values.isnan().all()
    assert all("above rounding" in problem for problem in prediction.problems)
