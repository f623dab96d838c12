import pytest
import torch

from attnaudit.kernel import token_norms
from tests.heads import fixture_heads, random_heads


def test_reference_norms():
    norms = token_norms(fixture_heads())
    assert norms.phi.mean().item() == pytest.approx(1.8733e-4, rel=5e-5)
    assert norms.phi.median().item() == pytest.approx(1.73421e-4, rel=6e-6)
    assert norms.output.mean().item() == pytest.approx(0.361854, rel=2e-6)


def test_feature_norm_equals_the_plain_quotient():
    heads = random_heads(0)
    kernel = torch.exp(heads.query @ heads.key.mT / 2)
    plain = torch.exp(heads.query.square().sum(-1) / 2) / kernel.sum(-1).square()
    torch.testing.assert_close(token_norms(heads).phi, plain, rtol=1e-12, atol=0)


def test_feature_norm_of_a_key_is_the_diagonal_of_the_gram_matrix():
    heads = random_heads(1)
    from attnaudit.kernel import normalised_gram

    gram = normalised_gram(heads.key)
    diagonal = (gram.matrix * gram.log_scale.exp()[:, None, None]).diagonal(dim1=1, dim2=2)
    from dataclasses import replace

    torch.testing.assert_close(token_norms(replace(heads, query=heads.key)).phi, diagonal, rtol=1e-12, atol=0)
