"""Softmax and symmetric attention."""

import pytest
import torch
from benchmarks import explicit_attention as explicit

from attnaudit.attention import SoftmaxAttention
from attnaudit.attention.functional import softmax, symmetric
from tests.attention.case import HEADS, TOKENS, WIDTH, AttentionTestCase, assert_same_with_gradients, heads, tokens


class TestSoftmax(AttentionTestCase):
    name = "softmax"


class TestSymmetric(AttentionTestCase):
    name = "symmetric"

    def test_has_no_queries(self):
        assert self.build().kv.weight.shape == (2 * WIDTH, WIDTH)


class TestSharpSoftmax(AttentionTestCase):
    name = "softmax"
    options = {"temperature": 0.5}


class TestEvenSymmetric(AttentionTestCase):
    name = "symmetric"
    options = {"temperature": 4.0}


def test_equals_the_explicit_product():
    assert_same_with_gradients(softmax, explicit.softmax, heads())
    assert_same_with_gradients(symmetric, explicit.symmetric, heads()[1:])


def test_a_mask_and_causality_can_go_together():
    padded = torch.zeros(2, 1, 1, TOKENS, dtype=torch.bool)
    padded[1, ..., 3:] = True
    later = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
    for mask in (~padded, torch.zeros(padded.shape, dtype=torch.float64).masked_fill(padded, -torch.inf)):
        assert_same_with_gradients(
            lambda k, v, mask=mask: symmetric(k, v, mask=mask, is_causal=True),
            lambda k, v: explicit.symmetric(k, v, padded | later),
            heads()[1:],
        )


def test_weights_of_timm_fit():
    timm = pytest.importorskip("timm.layers")
    theirs = timm.Attention(WIDTH, HEADS, qkv_bias=True).double()
    ours = SoftmaxAttention(WIDTH, HEADS, qkv_bias=True).double()
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(tokens()), theirs(tokens()), rtol=0, atol=1e-14)
