"""RPC-Attention: closed forms, parity with the published loop, and what its sign does to a true PCP."""

import math

import pytest
import torch
from benchmarks import explicit_attention as explicit
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.attention import RPCAttention, diagnosing
from attnaudit.attention.functional import PRESETS, Pursuit, blocks, pursue, pursuit, rpc, softmax, symmetric
from attnaudit.errors import AttnAuditError, ShapeError
from tests.attention.case import TOKENS, AttentionTestCase, assert_same_with_gradients, heads, tokens

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


class TestRPCWithARandomSparsePart(AttentionTestCase):
    name = "rpc"
    options = {"iterations": 3, "lam": 0.4, "sparse": "random"}

    def test_places_are_drawn_anew_in_training_only(self):
        module, x = self.build(), tokens()
        assert torch.equal(module(x), module(x))
        module.train()
        assert not torch.equal(module(x), module(x))


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


def test_diagnoses_of_a_default_layer():
    """On layer-normed noise attention is nearly uniform at 2 iterations and nearly one-hot, to itself, at 6."""
    torch.manual_seed(0)
    layer = RPCAttention(192, 3, iterations=6, qkv_bias=True).double()
    x = torch.nn.functional.layer_norm(torch.randn(2, 197, 192, dtype=torch.float64), (192,))
    with diagnosing(layer) as found, torch.no_grad():
        layer(x)
    (steps,) = found.values()
    entropy, diagonal, nonzero, residual = (
        [getattr(step, name).mean().item() for step in steps] for name in ("entropy", "diagonal", "nonzero", "residual")
    )
    assert len(steps) == 6
    assert entropy[1] > 0.999 * math.log(197)
    assert entropy[5] < 0.01
    assert diagonal[0] < 0.1
    assert diagonal[5] > 0.99
    assert nonzero[0] == 0
    assert 0.05 < nonzero[5] < 0.2
    assert all(size > 0.9 for size in residual)
    assert layer.observe is None


def test_a_diagnosis_is_that_of_the_whole_matrix(monkeypatch):
    monkeypatch.setitem(blocks.BLOCK, "cpu", 100)  # so that there are several
    torch.manual_seed(0)
    layer, x = RPCAttention(12, 3, iterations=1, lam=0.4).double(), torch.randn(2, 7, 12, dtype=torch.float64)
    with diagnosing(layer) as found, torch.no_grad():
        layer(x, is_causal=True)
        parts = layer._projected(x)
    tau = layer.rule.tau(parts["k"], None, True)
    clipped = parts["k"].clamp(-tau, tau)
    attention = explicit.attention_matrix(clipped, clipped, torch.ones(7, 7, dtype=torch.bool).triu(1))
    (step,) = found[""]
    torch.testing.assert_close(step.entropy, torch.special.entr(attention).sum(-1).mean(-1))
    torch.testing.assert_close(step.diagonal, attention.diagonal(dim1=-2, dim2=-1).mean(-1))
    torch.testing.assert_close(step.nonzero, (parts["k"].abs() > tau).double().mean((-2, -1)))
    size = torch.linalg.matrix_norm(clipped - attention @ parts["v"]) / torch.linalg.matrix_norm(parts["k"])
    torch.testing.assert_close(step.residual, size)


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
        ({"iterations": 0}, "at least 1 iteration, not 0"),
        ({"lam": -1.0}, r"cannot be negative \(-1.0\)"),
        ({"lam": math.nan}, "cannot be negative"),
        ({"preset": "other"}, "no preset 'other'; there is code, paper, admm"),
        ({"threshold": "mu"}, "threshold is one of"),
        ({"dual_sign": 0}, "dual_sign is one of"),
        ({"sparse": "none"}, "sparse is one of"),
    ],
)
def test_settings_that_make_no_sense_are_errors(options, message):
    with pytest.raises(AttnAuditError, match=message):
        RPCAttention(12, 3, **options)


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


def test_values_of_another_width_are_an_error():
    _, key, value = heads()
    with pytest.raises(ShapeError, match="differ"):
        rpc(key, value[..., :2])
