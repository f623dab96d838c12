from dataclasses import replace

import pytest
import torch

import attnaudit
from attnaudit.errors import UsageError
from attnaudit.kernel import Prediction, spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories import THEORIES, Theory, theory_named
from attnaudit.theories.base import guard_of, is_fitted
from tests.heads import causal, make_heads, random_heads


@pytest.mark.parametrize("theory", [own for own in THEORIES.values() if not is_fitted(own)], ids=lambda t: t.name)
def test_every_theory_that_is_not_fitted_predicts_values_for_every_head(theory):
    heads = random_heads(0)
    heads = replace(heads, source=torch.cat([heads.key, heads.value], dim=-1))
    prediction = theory.predict(heads, spectrum(heads.key), Protocol.EXACT)
    assert isinstance(theory, Theory)
    assert prediction.values.shape == heads.value.shape
    assert prediction.values.isfinite().all()
    assert prediction.problems == (None, None)


def test_kernel_svd_predicts_right_singular_vectors_of_the_attention_matrix():
    heads = random_heads(0)
    values = theory_named("ksvd").predict(heads, spectrum(heads.key), Protocol.EXACT).values
    attention = heads.attention()
    products = attention.mT @ attention @ values
    sizes = products.norm(dim=1)
    torch.testing.assert_close(products, values * sizes[:, None, :], rtol=1e-8, atol=1e-10)
    assert (sizes.diff(dim=-1) <= 1e-12).all()


def test_pca_predicts_the_span_of_the_centred_keys():
    heads = random_heads(0)
    values = theory_named("pca").predict(heads, spectrum(heads.key), Protocol.EXACT).values
    centred = heads.key - heads.key.mean(dim=1, keepdim=True)
    torch.testing.assert_close(values @ (values.mT @ centred), centred, rtol=1e-10, atol=1e-12)


def test_theories_without_enough_components_say_so():
    heads = random_heads(0)
    heads.key[0] = heads.key[0, :1]
    prediction = theory_named("pca").predict(heads, spectrum(heads.key), Protocol.EXACT)
    assert prediction.values[0].isnan().all()
    assert "of 4 components" in prediction.problems[0]
    assert prediction.problems[1] is None


def test_pca_of_the_inputs_is_exact_for_values_made_from_their_leading_components():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(1, 30, 8, generator=generator, dtype=torch.float64)
    inputs = inputs * torch.tensor([9, 8, 7, 6, 0.1, 0.1, 0.1, 0.1], dtype=torch.float64)
    heads = replace(random_heads(0, tokens=30), source=inputs)
    values = theory_named("pca-inputs").predict(heads, spectrum(heads.key), Protocol.EXACT).values
    assert torch.equal(values[0], values[1])  # two heads of one input
    centred = (inputs - inputs.mean(dim=1, keepdim=True))[0, :, :4]
    assert ((values[0] @ (values[0].mT @ centred)) - centred).norm() < 0.05 * centred.norm()


def test_pca_of_unknown_inputs_is_missing():
    heads = random_heads(0)
    prediction = theory_named("pca-inputs").predict(heads, spectrum(heads.key), Protocol.EXACT)
    assert prediction.values.isnan().all()
    assert prediction.problems[0] == "the inputs of this layer are not known"


def test_an_unknown_theory_is_refused():
    with pytest.raises(UsageError, match="theory 'astrology'"):
        theory_named("astrology")


class ValuesAreKeys:
    """A theory of a user's own."""

    name = "keys"
    text = "values equal keys"

    def predict(self, heads, spectrum, protocol):
        return Prediction(heads.key.double(), torch.zeros(len(heads), dtype=torch.float64), (None,) * len(heads))


class TiedAttention(torch.nn.Module):
    """Values are the keys, so that theory is exactly true of it."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.query, self.key = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)

    def forward(self, x):
        q, k = (layer(x).unflatten(-1, (2, 8)).transpose(1, 2) for layer in (self.query, self.key))
        return torch.nn.functional.scaled_dot_product_attention(q, k, k)


def test_a_users_own_theory_is_ranked_first_where_it_is_true():
    inputs = torch.randn(8, 40, 16, generator=torch.Generator().manual_seed(0))
    references = ["random_projection", "rotated", "planted"]
    run = attnaudit.audit(
        TiedAttention(), inputs, theories=[ValuesAreKeys()], claims=["kpca-values"], references=references
    )
    assert [entry.theory for entry in run.ranking] == ["keys", "kpca"]
    assert run.ranking[0].word.value == "supported"
    assert run.ranking[0].mean == pytest.approx(1.0)
    assert run.verdicts[0].word.value == "refuted"


def test_kernel_pca_is_not_told_from_chance_by_a_kernel_of_no_more_rank_than_columns():
    heads = random_heads(0)
    few = heads.key[:, torch.arange(heads.tokens) % 5]  # five keys that differ make four components
    for keys, problem in ((few, "its kernel has rank 4, not above d = 4"), (heads.key, None)):
        same = replace(heads, key=keys)
        assert theory_named("kpca").guard.problems(same, spectrum(keys)) == (problem,) * len(heads)


@pytest.mark.parametrize(("width", "problem"), [(3, None), (7, None), (8, "N = 14 tokens are fewer than 2d = 16")])
def test_enough_tokens_are_twice_the_columns_of_the_values_and_not_of_the_keys(width, problem):
    heads = random_heads(0)  # 14 tokens with keys of four channels
    value = torch.randn(len(heads), heads.tokens, width, dtype=torch.float64)
    heads = make_heads(heads.query, heads.key, value)
    for name in ("kpca", "pca"):
        theory = theory_named(name)
        assert guard_of(theory).problems(heads, spectrum(heads.key)) == (problem,) * len(heads)


def test_the_rank_of_a_kernel_must_be_above_the_columns_of_the_values():
    heads = random_heads(0)
    few = heads.key[:, torch.arange(heads.tokens) % 7]  # seven keys that differ make six components
    for width, problem in ((5, None), (6, "its kernel has rank 6, not above d = 6")):
        value = torch.randn(len(heads), heads.tokens, width, dtype=torch.float64)
        same = make_heads(heads.query, few, value)
        assert theory_named("kpca").guard.problems(same, spectrum(few)) == (problem,) * len(heads)


def far_apart(lengths, tokens=64, width=8):
    """Keys of these lengths in random directions, so long that a token's kernel with itself outweighs all others."""
    directions = torch.randn(1, tokens, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    key = directions / directions.norm(dim=-1, keepdim=True) * lengths
    return make_heads(key, key, torch.randn(1, tokens, width, dtype=torch.float64))


def test_kernel_pca_predicts_no_columns_where_eigenvalues_tie():
    """Rounding the keys to float32 then changes the predicted columns; keys of different lengths keep theirs."""
    tied, apart = far_apart(15.0), far_apart(torch.linspace(4, 8, 64)[:, None])
    problem = "8 of its 8 leading eigenvalues are equal up to rounding, and their vectors arbitrary"
    for heads, words, alike in ((tied, problem, False), (apart, None, True)):
        assert theory_named("kpca").guard.problems(heads, spectrum(heads.key, 8)) == (words,)
        first, second = (
            theory_named("kpca").predict(heads, spectrum(key, 8), Protocol.EXACT).values[0]
            for key in (heads.key, heads.key.float().double())
        )
        first, second = first / first.norm(dim=0), second / second.norm(dim=0)
        assert bool(((first * second).sum(dim=0).abs() > 0.999).all()) is alike


@pytest.mark.parametrize(("sharpness", "tied"), [(40.0, True), (1.0, False)])
def test_kernel_svd_and_pca_predict_no_columns_where_singular_values_tie(sharpness, tied):
    """Each token attends to itself alone where keys are long and orthogonal: P is the identity, and so is PPᵀ."""
    key = torch.eye(16, dtype=torch.float64)[None] * sharpness
    if not tied:
        key = key * torch.linspace(1, 3, 16, dtype=torch.float64)[:, None]
    heads = make_heads(key, key, torch.randn(1, 16, 4, dtype=torch.float64))
    problem = "4 of its 4 leading singular values are equal up to rounding, and their vectors arbitrary"
    for name in ("ksvd", "pca"):
        predicted = theory_named(name).predict(heads, spectrum(heads.key), Protocol.EXACT)
        assert predicted.problems == (problem if tied else None,)
        assert bool(predicted.values.isnan().all()) is tied
        assert bool(predicted.values.isnan().any()) is tied


def test_one_tie_among_many_eigenvalues_is_no_reason_to_leave_a_head_out():
    heads = far_apart(torch.linspace(4, 8, 64)[:, None], width=24)
    found = spectrum(heads.key, 24)
    words = "3 of its 24 leading eigenvalues are equal up to rounding, and their vectors arbitrary"
    for equal, problem in ((2, None), (3, words)):
        values = found.scaled_eigenvalues.clone()
        values[:, 20 : 20 + equal] = values[:, 20:21]
        assert theory_named("kpca").guard.problems(heads, replace(found, scaled_eigenvalues=values)) == (problem,)


def test_the_theorem_on_causal_heads_needs_tokens_that_see_themselves():
    heads = causal(random_heads(0))
    own = torch.eye(heads.tokens, dtype=torch.bool)
    theory = theory_named("kpca")
    assert theory.impossible(heads) is not None
    for bias in (heads.bias.masked_fill(own, -torch.inf), torch.zeros_like(heads.bias)):
        assert theory.impossible(replace(heads, bias=bias)) is None
