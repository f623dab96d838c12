"""Scaled Attention: the exact S has rank one and vanishes on the kernel-PCA solution."""

import pytest
import torch
from benchmarks import explicit_attention as explicit
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.attention import ScaledAttention, SoftmaxAttention
from attnaudit.attention.functional import blocks, rescaled_values, scaled, softmax
from attnaudit.errors import AttnAuditError, ShapeError
from attnaudit.kernel import kernel_pca_values, spectrum
from tests.attention.case import TOKENS, AttentionTestCase, assert_same_with_gradients, heads, tokens


class TestAlpha(AttentionTestCase):
    name = "scaled"


class TestLearned(AttentionTestCase):
    name = "scaled"
    options = {"form": "learned", "tokens": TOKENS}


class TestExact(AttentionTestCase):
    name = "scaled"
    options = {"form": "exact"}


@given(st.integers(0, 1000), st.floats(0.1, 3.0))
def test_the_exact_matrix_has_rank_one_and_is_a_projection(seed, size):
    _, key, _ = heads(seed, size=size)
    matrix = explicit.exact_matrix(key.detach())
    scale = matrix.abs().amax()
    torch.testing.assert_close(matrix @ matrix, matrix, rtol=1e-9, atol=1e-12 * scale.item())
    values = torch.linalg.svdvals(matrix)
    assert (values[..., 1] <= 1e-10 * values[..., 0]).all()


@pytest.mark.parametrize("block", [1 << 20, 60])
@pytest.mark.parametrize("kind", ["none", "causal", "padding", "any"])
def test_the_rank_one_path_equals_the_dense_one(kind, block, monkeypatch):
    monkeypatch.setitem(blocks.BLOCK, "cpu", block)
    query, key, value = heads()
    padded = torch.zeros(2, 1, 1, TOKENS, dtype=torch.bool)
    padded[1, ..., -2:] = True
    some = torch.rand(2, 3, TOKENS, TOKENS, generator=torch.Generator().manual_seed(1)) < 0.4
    some = some & ~torch.eye(TOKENS, dtype=torch.bool)
    later = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    hidden = {"none": None, "causal": later, "padding": padded, "any": some}[kind]
    mask = None if kind in ("none", "causal") else ~hidden
    assert_same_with_gradients(
        lambda q, k, v: scaled(q, k, v, mask=mask, is_causal=kind == "causal"),
        lambda q, k, v: explicit.scaled(q, k, v, explicit.exact_matrix(k, hidden), hidden),
        (query, key, value),
    )


def test_learned_and_alpha_equal_the_dense_form():
    query, key, value = heads()
    matrix = torch.randn(3, TOKENS, TOKENS, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    assert_same_with_gradients(
        lambda q, k, v, s: scaled(q, k, v, matrix=s), explicit.scaled, (query, key, value, matrix)
    )
    assert_same_with_gradients(
        lambda q, k, v, a: scaled(q, k, v, alpha=a),
        lambda q, k, v, a: explicit.scaled(q, k, v, a * explicit.attention_matrix(k, k)),
        (query, key, value, torch.tensor(0.3, dtype=torch.float64)),
    )


def test_at_zero_it_is_softmax_attention():
    query, key, value = heads()
    expected = softmax(query, key, value)
    for options in ({"alpha": 0.0}, {"matrix": torch.zeros(3, TOKENS, TOKENS, dtype=torch.float64)}):
        torch.testing.assert_close(scaled(query, key, value, **options), expected, rtol=0, atol=1e-15)
    for options in ({"form": "alpha"}, {"form": "learned", "tokens": TOKENS}):
        layer, reference = ScaledAttention(12, 3, **options).double(), SoftmaxAttention(12, 3).double()
        reference.load_state_dict(layer.state_dict(), strict=False)
        torch.testing.assert_close(layer(tokens()), reference(tokens()), rtol=0, atol=1e-14)


def test_the_kernel_pca_solution_is_left_alone():
    """S V = 0 for V = G A: at the solution of the theory Scaled Attention is softmax attention."""
    _, key, _ = heads(count=20)
    flat = key.detach().flatten(0, 1)
    values = kernel_pca_values(spectrum(flat, 4)).values.view_as(key)
    moved = rescaled_values(key.detach(), values)
    assert (moved - values).abs().max() < 1e-12 * values.abs().max()
    assert (rescaled_values(key.detach(), torch.randn_like(values)) - values).abs().max() > 0.1


def test_a_huge_key_to_come_does_not_matter():
    _, key, value = (part.detach() for part in heads())
    key[..., 5, :] = 40.0  # its row sum is e^3200
    for dtype in (torch.float64, torch.float32):
        causal = rescaled_values(key.to(dtype), value.to(dtype), is_causal=True)
        cut = rescaled_values(key[..., :5, :].to(dtype), value[..., :5, :].to(dtype), is_causal=True)
        torch.testing.assert_close(causal[..., :5, :], cut)
        shown = torch.ones(2, 1, 1, TOKENS, dtype=torch.bool)  # no padding, in so many words
        masked = rescaled_values(key.to(dtype), value.to(dtype), mask=shown, is_causal=True)
        torch.testing.assert_close(masked[..., :5, :], cut)


@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_a_causal_text_changes_nothing_of_its_words(side):
    """Whatever the padding holds, on either side; and its own rows stay finite."""
    query, key, value = heads()
    words = slice(3, None) if side == "left" else slice(None, TOKENS - 3)
    real = torch.zeros(TOKENS, dtype=torch.bool)
    real[words] = True
    padded = [part.detach().masked_fill(~real[:, None], 30.0) for part in (query, key, value)]
    found = scaled(*padded, mask=real.expand(2, 1, 1, TOKENS), is_causal=True)
    alone = scaled(*(part.detach()[..., words, :] for part in (query, key, value)), is_causal=True)
    torch.testing.assert_close(found[..., words, :], alone)
    moved = rescaled_values(*padded[1:], mask=real.expand(2, 1, 1, TOKENS), is_causal=True)
    assert moved.isfinite().all()


def test_a_scale_of_its_own_reaches_every_part():
    query, key, value = heads()
    ours = scaled(2 * query, 2 * key, value, scale=0.125)  # 4 / √4 · 0.125 · 2
    torch.testing.assert_close(ours, scaled(query, key, value, scale=0.5))
    assert not torch.allclose(ours, scaled(query, key, value, scale=0.25))


def test_rows_that_see_nothing_have_the_right_gradient():
    _, key, value = heads(count=5, batch=1, number=1)
    mask = torch.ones(5, 5, dtype=torch.bool)
    mask[2] = False
    assert torch.autograd.gradcheck(lambda k, v: rescaled_values(k, v, mask=mask), (key, value))


def test_a_learned_mask_is_refused():
    query, key, value = heads()
    with pytest.raises(AttnAuditError, match="learned mask"):
        scaled(query, key, value, mask=torch.zeros(TOKENS, TOKENS, dtype=torch.float64, requires_grad=True))


def test_a_learned_matrix_of_another_size_is_an_error():
    layer = ScaledAttention(12, 3, form="learned", tokens=5)
    with pytest.raises(ShapeError, match=r"3 heads and 5 tokens.*3 heads and 7 tokens"):
        layer(torch.randn(1, 7, 12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "learned"}, "tokens=None"),
        ({"form": "other"}, "'other'"),
    ],
)
def test_settings_that_make_no_sense_are_errors(options, message):
    with pytest.raises(AttnAuditError, match=message):
        ScaledAttention(12, 3, **options)


def test_a_matrix_and_a_factor_are_an_error():
    query, key, value = heads()
    with pytest.raises(AttnAuditError, match="matrix S or a factor alpha"):
        scaled(query, key, value, alpha=1.0, matrix=torch.zeros(3, TOKENS, TOKENS))
