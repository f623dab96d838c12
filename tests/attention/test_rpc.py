"""RPC-Attention: closed forms, parity with the published loop, masks, memory and precision."""

import math

import pytest
import torch
from benchmarks import explicit_attention as explicit

from attnaudit.attention import RPCAttention
from attnaudit.attention.functional import PRESETS, pursuit, rpc, softmax, symmetric
from attnaudit.errors import AttnAuditError, ShapeError
from tests.attention.case import TOKENS, AttentionTestCase, assert_same_with_gradients, heads

RULES = {
    name: {"threshold": p.threshold, "mu_width": p.mu_width, "dual_sign": p.dual_sign} for name, p in PRESETS.items()
}


class TestRPC(AttentionTestCase):
    name = "rpc"


class TestRPCThatClips(AttentionTestCase):
    name = "rpc"
    options = {"iterations": 3, "lam": 0.4, "preset": "paper"}


class TestAsymmetricRPC(AttentionTestCase):
    name = "rpc"
    options = {"iterations": 2, "asymmetric": True}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("lam", [0.1, 0.5, 4.0])
@pytest.mark.parametrize("iterations", [1, 2, 4, 6])
def test_equals_the_published_loop_in_value_and_gradient(preset, lam, iterations):
    _, key, value = heads(size=0.7)
    options = {"iterations": iterations, "lam": lam}
    assert_same_with_gradients(
        lambda k, v: rpc(k, v, preset=preset, **options),
        lambda k, v: explicit.rpc(k, v, **RULES[preset], **options),
        (key, value),
    )


def test_equals_the_published_loop_at_the_size_of_a_vision_model():
    _, key, value = heads(batch=2, count=197, dim=64, size=0.6)
    assert_same_with_gradients(rpc, explicit.rpc, (key, value))


@pytest.mark.parametrize("kind", ["causal", "padding", "both", "any"])
def test_masks_are_those_of_the_explicit_loop(kind):
    query, key, value = heads()
    later = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1).expand(2, 1, -1, -1)
    padded = torch.zeros(2, 1, TOKENS, TOKENS, dtype=torch.bool)
    padded[1, ..., -2:] = True
    some = torch.rand(2, 3, TOKENS, TOKENS, generator=torch.Generator().manual_seed(1)) < 0.4
    some = some & ~torch.eye(TOKENS, dtype=torch.bool)
    hidden = {"causal": later, "padding": padded, "both": later | padded, "any": some}[kind]
    mask = {"causal": None, "padding": ~padded[..., :1, :], "both": ~padded, "any": ~some}[kind]
    for asked in (None, query):
        assert_same_with_gradients(
            lambda k, v, q=asked: rpc(k, v, query=q, lam=0.3, mask=mask, is_causal=kind in ("causal", "both")),
            lambda k, v, q=asked: explicit.rpc(k, v, query=q, lam=0.3, hidden=hidden),
            (key, value),
        )


def test_one_iteration_is_symmetric_attention_on_clipped_keys():
    _, key, value = heads()
    tau = 0.4 * 3 / (4 * key.abs().mean(dim=(-2, -1), keepdim=True))
    assert (key.abs() > tau).double().mean() > 0.2
    expected = symmetric(key.clamp(-tau, tau), value)
    torch.testing.assert_close(rpc(key, value, iterations=1, lam=0.4), expected, rtol=0, atol=1e-14)


def test_a_threshold_of_zero_averages_the_values():
    _, key, value = heads()
    expected = value.mean(dim=-2, keepdim=True).expand_as(value)
    torch.testing.assert_close(rpc(key, value, iterations=1, lam=0.0), expected, rtol=0, atol=1e-15)


def test_without_clipping_the_closed_forms_hold():
    _, key, value = heads()

    def h(target):
        return symmetric(target, value)

    for sign, preset in ((-1, "code"), (1, "admm")):
        found = []
        for count in range(1, 5):
            target = count * key - sum(found) if sign > 0 else sum(found) - (count - 2) * key
            found.append(h(key if count == 1 else target))
            ours = rpc(key, value, iterations=count, lam=math.inf, preset=preset)
            torch.testing.assert_close(ours, found[-1], rtol=0, atol=1e-13)


def test_without_a_threshold_gradients_are_finite():
    _, key, value = heads()
    for lam in (math.inf, 1e300):
        gradients = torch.autograd.grad(rpc(key, value, lam=lam).square().sum(), (key, value))
        assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_scale_of_its_own_reaches_every_pass():
    _, key, value = heads()
    unscaled, halved = (rpc(key, value, lam=math.inf, scale=scale) for scale in (None, 0.25))
    found = [symmetric(key, value, scale=0.25)]
    for count in range(2, 5):
        found.append(symmetric(sum(found) - (count - 2) * key, value, scale=0.25))
    torch.testing.assert_close(halved, found[-1])
    assert not torch.allclose(unscaled, halved)


def test_dropout_acts_on_the_last_pass_only(monkeypatch):
    seen = []

    def noted(*args, **kwargs):
        seen.append(kwargs["dropout"])
        return softmax(*args, **kwargs)

    monkeypatch.setattr(pursuit, "softmax", noted)
    _, key, value = heads()
    rpc(key, value, iterations=3, dropout=0.25)
    assert seen == [0.0, 0.0, 0.25]


def test_a_mask_over_pairs_is_made_additive_once():
    """SDPA would keep one of its own per pass: the tensors kept for the gradient must not grow with the iterations."""
    _, key, value = heads()
    mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()

    def kept(iterations):
        shapes = set()

        def note(tensor):
            if tensor.shape[-2:] == (TOKENS, TOKENS):
                shapes.add(tensor.data_ptr())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            rpc(key, value, iterations=iterations, mask=mask)
        return len(shapes)

    assert kept(5) <= max(1, kept(1))


def test_memory_grows_linearly_with_tokens():
    """What is kept for the gradient, in numbers per token, does not depend on how many tokens there are."""

    def kept(count):
        _, key, value = heads(batch=1, number=1, count=count)
        sizes = {}

        def note(tensor):
            sizes[tensor.data_ptr()] = tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            rpc(key, value)
        return sum(sizes.values()) / count

    assert kept(400) < 1.1 * kept(100)


def test_mixed_precision_carries_the_loop_in_float32():
    """Without clipping Z₄ = L₁ + L₂ + L₃ - 2K: summed in float32, and rounded once."""
    key, value = (part.detach().bfloat16() for part in heads(count=64, dim=16)[1:])
    found = [symmetric(key, value)]
    for count in range(2, 5):
        found.append(symmetric((sum(f.float() for f in found) - (count - 2) * key.float()).bfloat16(), value))
    torch.testing.assert_close(rpc(key, value, lam=math.inf), found[-1], rtol=0.01, atol=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"iterations": 0}, "iterations .* got 0"),
        ({"lam": -1.0}, "lam .* got -1.0"),
        ({"lam": math.nan}, "lam .* got nan"),
        ({"preset": "other"}, "preset 'other'.* code, paper, admm"),
        ({"threshold": "mu"}, "threshold 'mu'"),
        ({"dual_sign": 0}, "dual_sign 0"),
        ({"sparse": "none"}, "sparse 'none'"),
    ],
)
def test_settings_that_make_no_sense_are_errors(options, message):
    with pytest.raises(AttnAuditError, match=message):
        RPCAttention(12, 3, **options)


def test_values_of_another_width_are_an_error():
    _, key, value = heads()
    with pytest.raises(ShapeError, match=r"values \(.* 2\) and keys \(.* 4\)"):
        rpc(key, value[..., :2])
