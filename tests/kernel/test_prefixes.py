"""Kernel PCA of what the tokens of a causal head see."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.kernel import kernel_pca_values, spectrum
from attnaudit.kernel.prefixes import centring_defects, determined_share, log_masses, uncentred_values
from tests.heads import causal, random_heads

seeds = st.integers(0, 10_000)


def masses_of(heads):
    return log_masses(heads.key, heads.seen, heads.scale)


@pytest.mark.parametrize("window", [None, 3])
def test_the_mass_of_a_key_is_its_kernel_with_the_keys_that_the_query_sees(window):
    heads = causal(random_heads(0), window)
    kernel = torch.exp(heads.key @ heads.key.mT * heads.scale[:, None, None])
    found = torch.exp(masses_of(heads))
    for query in range(heads.tokens):
        seen = heads.seen[0, query]
        expected = kernel[:, :, seen].sum(dim=-1) * seen
        torch.testing.assert_close(found[:, query], expected, rtol=1e-12, atol=1e-14)


def test_masses_of_keys_whose_kernel_overflows_are_finite():
    heads = causal(random_heads(0, key_size=80))
    assert masses_of(heads)[:, -1].isfinite().all()
    assert centring_defects(masses_of(heads), heads.value).isfinite().all()


@given(seeds, st.integers(0, 13))
def test_the_first_value_that_is_not_zero_has_a_defect_of_one(seed, first):
    heads = causal(random_heads(seed))
    heads.value[:, :first] = 0
    defects = centring_defects(masses_of(heads), heads.value)
    torch.testing.assert_close(defects[:, :first], torch.zeros_like(defects[:, :first]))
    torch.testing.assert_close(defects[:, first], torch.ones_like(defects[:, first]))


def test_zero_values_have_no_defect():
    heads = causal(random_heads(0))
    assert (centring_defects(masses_of(heads), 0 * heads.value) == 0).all()


@given(seeds)
def test_defects_do_not_depend_on_the_size_or_basis_of_values(seed):
    heads = causal(random_heads(seed))
    basis = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)).Q
    expected = centring_defects(masses_of(heads), heads.value)
    torch.testing.assert_close(centring_defects(masses_of(heads), 1e200 * heads.value @ basis), expected)


def test_kernel_pca_of_all_tokens_is_centred_for_the_last_query_and_for_no_other():
    heads = causal(random_heads(0))
    values = kernel_pca_values(spectrum(heads.key, scale=heads.scale)).values
    defects = centring_defects(masses_of(heads), values)
    assert (defects[:, -1] < 1e-12).all()
    assert (defects[:, :-1] > 1e-3).all()


@given(seeds, st.sampled_from([None, 2, 5]))
def test_only_zero_values_are_centred_over_all_prefixes(seed, window):
    """The system is triangular with positive diagonal; here its null space is computed."""
    heads = causal(random_heads(seed), window)
    system = torch.exp(masses_of(heads))
    assert (torch.linalg.matrix_rank(system) == heads.tokens).all()
    assert (determined_share(masses_of(heads)) == 1).all()


def test_a_token_that_does_not_see_itself_is_not_determined():
    heads = causal(random_heads(0))
    seen = heads.seen.clone()
    seen[:, 5, 5] = False
    assert (determined_share(log_masses(heads.key, seen, heads.scale)) == 13 / 14).all()


def test_without_centring_the_leading_vectors_are_those_of_the_normalised_kernel():
    heads = random_heads(0)
    kernel = torch.exp(heads.key @ heads.key.mT * heads.scale[:, None, None])
    mass = kernel.sum(dim=-1)
    normalised = kernel / mass[:, :, None] / mass[:, None, :]
    vectors = uncentred_values(heads.key, 3, heads.scale) * mass[:, :, None]
    image = normalised @ vectors
    sizes = image.norm(dim=1) / vectors.norm(dim=1)
    torch.testing.assert_close(image, vectors * sizes[:, None], rtol=1e-8, atol=1e-10)
    assert (sizes.diff(dim=-1) < 0).all()
