"""The rules of the pursuit: published thresholds, and what its sign does to a true PCP."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.attention.functional import PRESETS
from tests.attention.case import heads


@given(st.floats(0.2, 5.0))
def test_the_papers_threshold_scales_with_the_keys_and_the_codes_against_them(factor):
    _, key, _ = heads()
    tau = {name: rule.tau(key, None, False) for name, rule in PRESETS.items()}
    scaled = {name: rule.tau(factor * key, None, False) for name, rule in PRESETS.items()}
    torch.testing.assert_close(scaled["paper"], factor * tau["paper"])
    torch.testing.assert_close(scaled["code"], tau["code"] / factor)


def test_thresholds_of_the_published_settings():
    _, key, _ = heads(batch=1, count=197, dim=64)
    mean = key.abs().mean(dim=(-2, -1), keepdim=True)
    torch.testing.assert_close(PRESETS["code"].tau(key, None, False), 3 / mean)
    torch.testing.assert_close(PRESETS["paper"].tau(key, None, False), 16 * mean)


def pursue_components(corrupted, sign, steps):
    """Principal component pursuit by ADMM with a true singular value thresholding (textbook values of λ and μ)."""
    rows, columns = corrupted.shape
    lam, mu = 1 / math.sqrt(rows), rows * columns / (4 * corrupted.abs().sum())
    low_rank, dual = torch.zeros_like(corrupted), torch.zeros_like(corrupted)
    for _ in range(steps):
        residual = corrupted - low_rank + dual
        sparse = residual - residual.clamp(-lam / mu, lam / mu)
        left, values, right = torch.linalg.svd(corrupted - sparse + sign * dual, full_matrices=False)
        low_rank = left @ torch.diag((values - 1 / mu).clamp_min(0)) @ right
        dual = dual + corrupted - low_rank - sparse
    return low_rank


def test_with_a_true_thresholding_plus_converges_and_the_published_minus_does_not():
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(*s, generator=generator, dtype=torch.float64) for s in ((120, 4), (4, 64)))
    truth = left @ right
    where = torch.rand(120, 64, generator=generator) < 0.05
    noise = 10 * torch.randn(120, 64, generator=generator, dtype=torch.float64)
    corrupted = truth + noise * where

    def error(sign, steps):
        return (torch.linalg.norm(pursue_components(corrupted, sign, steps) - truth) / torch.linalg.norm(truth)).item()

    assert error(+1, 300) < 1e-6
    assert error(-1, 100) > 1e3
