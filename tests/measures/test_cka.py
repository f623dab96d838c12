import itertools

import pytest
import torch
from hypothesis import given

from attnaudit.kernel import kernel_pca_values, paper, spectrum, standardised
from attnaudit.measures.cka import KERNEL_CKA, LINEAR_CKA, LINEAR_CKA_DEBIASED, unbiased_hsic
from attnaudit.protocol import Protocol
from tests.heads import fixture_heads, random_heads
from tests.measures.case import MeasureTestCase, changed_prediction, changed_values, input_of, predict, seeds

MEASURES = (LINEAR_CKA, LINEAR_CKA_DEBIASED, KERNEL_CKA)


def measured(heads, prediction, protocol=Protocol.EXACT):
    at = input_of(heads, prediction, protocol)
    return {measure.name: measure.function(at) for measure in MEASURES}


def cka(heads):
    """Between keys and values."""
    return measured(changed_values(heads, heads.key), changed_prediction(predict(heads), heads.value))


class TestAlignment(MeasureTestCase):
    measures = MEASURES


@pytest.mark.parametrize(
    ("prepare", "linear", "kernel", "digits"),
    [(lambda key: key, 0.289867, 0.380559, 2e-6), (standardised, 0.27948, 0.25298, 4e-5)],
    ids=["raw", "standardised"],
)
def test_reference_values(prepare, linear, kernel, digits):
    """Section 7 of the specification: the same digits in float32 with guards and in float64 without."""
    heads = fixture_heads()
    key = prepare(heads.key)
    for result in (
        measured(heads, paper.kernel_pca_values(paper.spectrum(key, by_magnitude=True)), Protocol.PAPER),
        measured(heads, kernel_pca_values(spectrum(key), unit_axes=False)),
    ):
        assert result["linear_cka"].item() == pytest.approx(linear, rel=digits)
        assert result["kernel_cka"].item() == pytest.approx(kernel, rel=digits)


@given(seeds)
def test_linear_cka_equals_kornblith_et_al_equation_14(seed):
    """Σ_ij λ_i^X λ_j^Y ⟨u_i, v_j⟩² / (√Σ(λ^X)² √Σ(λ^Y)²), over the principal components of X and Y (ICML 2019)."""
    heads = random_heads(seed)
    x, y = (m - m.mean(1, keepdim=True) for m in (heads.key, heads.value))
    ux, sx, _ = torch.linalg.svd(x, full_matrices=False)
    uy, sy, _ = torch.linalg.svd(y, full_matrices=False)
    lx, ly = sx.square(), sy.square()
    numerator = (lx[:, :, None] * ly[:, None, :] * (ux.mT @ uy).square()).sum((1, 2))
    closed_form = numerator / (lx.square().sum(-1).sqrt() * ly.square().sum(-1).sqrt())
    torch.testing.assert_close(cka(heads)["linear_cka"], closed_form, rtol=1e-10, atol=0)


@given(seeds)
def test_kernel_cka_equals_the_dense_definition(seed):
    heads = random_heads(seed, heads=1)
    n = heads.tokens

    def centred_kernel(x):
        squares = torch.cdist(x, x).square()
        sigma = squares[squares > 1e-12].median()
        projection = torch.eye(n, dtype=x.dtype) - 1 / n
        return projection @ torch.exp(-squares / (2 * sigma)) @ projection

    k, l = centred_kernel(heads.key[0]), centred_kernel(heads.value[0])
    dense = torch.trace(k @ l) / (torch.trace(k @ k) * torch.trace(l @ l)).sqrt()
    assert cka(heads)["kernel_cka"].item() == pytest.approx(dense.item(), rel=1e-9)


def test_unbiased_hsic_equals_the_average_over_distinct_quadruples():
    """Song et al. (2012): mean of K_ij (L_ij + L_qr - 2 L_iq) over all i, j, q, r that differ."""
    generator = torch.Generator().manual_seed(0)
    k, l = (torch.randn(1, 6, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    k, l = ((m + m.mT) * (1 - torch.eye(6, dtype=m.dtype)) for m in (k, l))
    terms = [
        k[0, i, j] * (l[0, i, j] + l[0, q, r] - 2 * l[0, i, q]) for i, j, q, r in itertools.permutations(range(6), 4)
    ]
    assert unbiased_hsic(k, l).item() == pytest.approx((sum(terms) / len(terms)).item(), rel=1e-12)


def test_independent_values_have_debiased_cka_near_zero_where_the_biased_one_is_far_above():
    heads = random_heads(0, heads=200, tokens=40, dim=16)
    result = cka(heads)
    debiased, biased = result["linear_cka_debiased"], result["linear_cka"]
    assert abs(debiased.mean().item()) < 4 * debiased.std().item() / 200**0.5
    assert biased.mean().item() > 0.2


def test_duplicate_tokens_do_not_count_in_the_bandwidth():
    x = torch.tensor([[[0.0], [0.0], [0.0], [1.0], [3.0]]], dtype=torch.float64)
    # Non-zero squared distances: 1 (three times), 9 (three times), 4; lower median 4.
    kernel = torch.exp(-torch.tensor([1.0, 9.0, 4.0], dtype=torch.float64) / 8)
    from attnaudit.measures.cka import _radial_basis

    torch.testing.assert_close(_radial_basis(x @ x.mT)[0, 3:, 0], kernel[:2])
