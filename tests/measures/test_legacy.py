"""The formula of Teo & Nguyen's code, against that code written out."""

import math
from dataclasses import replace

import pytest
import torch

from attnaudit.kernel import token_norms
from attnaudit.measures.legacy import LEGACY_LOG_PROJECTION_ERROR, legacy_log_phi, log_mean_excess
from tests.heads import make_heads
from tests.measures.case import input_of


def standardised(x):
    """Token by token over the channels, unbiased, without a guard, as in their forward pass."""
    return (x - x.mean(dim=-1, keepdim=True)) / x.std(dim=-1, keepdim=True)


def their_network(heads, dim, seed=0, tokens=197):
    generator = torch.Generator().manual_seed(seed)
    query, key, value = (torch.randn(heads, tokens, dim, generator=generator, dtype=torch.float64) for _ in range(3))
    return make_heads(standardised(query), standardised(key), value)


def as_coded(heads):
    """exp(q·q) over (exp(q·k_0) / attention_0)², less ‖h‖², of every token."""
    attention = torch.softmax(heads.query @ heads.key.mT / math.sqrt(heads.dim), dim=-1)
    first = (heads.query @ heads.key[:, :1].mT)[:, :, 0]
    phi = heads.query.square().sum(dim=-1).exp() / (first.exp() / attention[:, :, 0]) ** 2
    return phi - (attention @ heads.value).square().sum(dim=-1)


@pytest.mark.parametrize(("heads", "dim"), [(6, 32), (3, 64)])
def test_the_closed_form_is_what_the_code_computes(heads, dim):
    network = their_network(heads, dim)
    norms = token_norms(network)
    found = log_mean_excess(legacy_log_phi(network, norms.log_phi), norms.output)
    torch.testing.assert_close(found, as_coded(network).mean(dim=-1).log(), rtol=1e-12, atol=0)
    spelled_out = (
        (dim - 1)
        - 2 * (1 - 1 / math.sqrt(dim)) * (network.query @ network.key[:, :1].mT)[:, :, 0]
        - 2 * torch.logsumexp(network.query @ network.key.mT / math.sqrt(dim), dim=-1)
    )
    torch.testing.assert_close(legacy_log_phi(network, norms.log_phi), spelled_out, rtol=1e-12, atol=1e-10)


def test_at_the_temperature_1_that_it_takes_their_norm_is_the_true_one():
    network = their_network(3, 32)
    network = replace(network, scale=torch.ones_like(network.scale))
    log_phi = token_norms(network, scale=network.scale).log_phi
    torch.testing.assert_close(legacy_log_phi(network, log_phi), log_phi)


def test_it_is_a_number_where_their_float32_is_none():
    network = their_network(3, 64)
    network.query[0, 0] = -network.key[0, 0]
    assert not as_coded(network.to(torch.float32)).mean(dim=-1).isfinite().all()
    norms = token_norms(network)
    assert log_mean_excess(legacy_log_phi(network, norms.log_phi), norms.output).isfinite().all()


def test_a_negative_mean_has_no_logarithm():
    assert log_mean_excess(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 3.0]])).isnan().all()


def test_the_measure_is_the_closed_form_and_on_request_only():
    network = their_network(3, 64)
    found = LEGACY_LOG_PROJECTION_ERROR.function(input_of(network))
    torch.testing.assert_close(found, as_coded(network).mean(dim=-1).log(), rtol=1e-12, atol=0)
    assert not LEGACY_LOG_PROJECTION_ERROR.default
