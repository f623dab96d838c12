import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.kernel.gram import centred, normalised_gram, standardised
from tests.heads import random_heads

seeds = st.integers(0, 10_000)


@given(seeds)
def test_log_domain_gram_equals_the_plain_quotient(seed):
    key = random_heads(seed).key
    kernel = torch.exp(key @ key.mT / key.shape[-1] ** 0.5)
    mass = kernel.sum(-1)
    gram = normalised_gram(key)
    plain = kernel / (mass[:, :, None] * mass[:, None, :])
    torch.testing.assert_close(gram.matrix * gram.log_scale.exp()[:, None, None], plain, rtol=1e-12, atol=0)
    torch.testing.assert_close(gram.log_mass.exp(), mass, rtol=1e-12, atol=0)


@given(seeds)
def test_centring_by_means_equals_dense_projection(seed):
    matrix = normalised_gram(random_heads(seed).key).matrix
    n = matrix.shape[-1]
    projection = torch.eye(n, dtype=matrix.dtype) - torch.full((n, n), 1 / n, dtype=matrix.dtype)
    torch.testing.assert_close(centred(matrix), projection @ matrix @ projection, rtol=1e-10, atol=1e-14)


def test_standardised_tokens_have_squared_length_d_minus_1():
    keys = standardised(random_heads(0, dim=16).key)
    torch.testing.assert_close(
        keys.square().sum(-1), torch.full(keys.shape[:2], 15.0, dtype=keys.dtype), rtol=1e-6, atol=0
    )
    torch.testing.assert_close(keys.mean(-1), torch.zeros(keys.shape[:2], dtype=keys.dtype), rtol=0, atol=1e-14)


def test_temperature_is_the_models_own_where_given():
    key = random_heads(1).key
    own = normalised_gram(key, scale=torch.full((2,), 1.0, dtype=key.dtype))
    default = normalised_gram(2 * key)  # √d = 2, so doubling the keys and dividing by √d is the factor 2
    torch.testing.assert_close(normalised_gram(key * 2**0.5).log_mass, own.log_mass)
    assert not torch.allclose(default.log_mass, own.log_mass)
