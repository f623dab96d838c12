"""RPC-Attention with a random sparse part: as dense as its own, at places that know nothing of the outliers."""

import math

import pytest
import torch

from attnaudit.attention.functional import Pursuit, pursue, rpc
from tests.attention.case import AttentionTestCase, heads, tokens


class TestRPCWithARandomSparsePart(AttentionTestCase):
    name = "rpc"
    options = {"iterations": 3, "lam": 0.4, "sparse": "random"}

    def test_places_are_drawn_anew_in_training_only(self):
        module, x = self.build(), tokens()
        assert torch.equal(module(x), module(x))
        module.train()
        assert not torch.equal(module(x), module(x))


def split(key, value, seed, **options):
    """R, S of the first step, with S at random places and as RPC-Attention has it."""
    found = []
    for sparse in ("random", "outliers"):
        passes = []
        rule = Pursuit(iterations=1, sparse=sparse, **options)
        pursue(key, value, rule, seed=seed, observe=lambda seen, kept=passes: kept.append(seen.sparse))
        found.append(passes[0])
    return found


@pytest.mark.parametrize("seed", [0, 1, None])
def test_a_random_sparse_part_is_as_dense_and_holds_whole_entries(seed):
    torch.manual_seed(0)
    _, key, value = heads(count=200, dim=16)
    scattered, own = split(key, value, seed, lam=0.8)
    share, expected = ((part != 0).double().mean((-2, -1)) for part in (scattered, own))
    assert expected.min() > 0.05
    torch.testing.assert_close(share, expected, rtol=0, atol=0.03)  # 3,200 entries of each head: deviation 0.01
    assert torch.equal(scattered[scattered != 0], key[scattered != 0])
    both = ((scattered != 0) & (own != 0)).double().mean((-2, -1))
    torch.testing.assert_close(both, share * expected, rtol=0, atol=0.02)  # the places know nothing of the outliers


def test_random_places_follow_their_seed_and_differ_between_heads_and_tokens():
    _, key, value = heads(count=50, dim=16)
    first, again, other = (split(key, value, seed, lam=0.4)[0] != 0 for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[:, 0], first[:, 1])
    assert not torch.equal(first[:, :, 0], first[:, :, 1])


def test_without_outliers_a_random_sparse_part_is_empty():
    _, key, value = heads()
    assert torch.equal(rpc(key, value, lam=math.inf, sparse="random"), rpc(key, value, lam=math.inf))
