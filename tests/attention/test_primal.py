"""Primal-Attention: its objective vanishes at a singular value decomposition, and nowhere does N x N appear."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.attention import PrimalAttention, ksvd_loss, swap
from attnaudit.attention.base import Attention
from attnaudit.attention.functional import ScorePair, combined_weight, kkt_residual, ksvd_objective, primal
from attnaudit.errors import AttnAuditError, ShapeError
from tests.attention.case import HEADS, TOKENS, WIDTH, AttentionTestCase, heads, tokens


class TestDataDependent(AttentionTestCase):
    name = "primal"
    options = {"rank": 3, "row_factor": 2}
    causal_options = {"data_dependent": False}
    takes_any_mask = False
    narrow = 9  # a rank of 3 needs heads of at least 3 columns


class TestDataIndependent(AttentionTestCase):
    name = "primal"
    options = {"rank": 3, "data_dependent": False}
    takes_any_mask = False
    mixes_tokens = False  # but for running means each token goes its own way
    narrow = 9


def stationary_point(query, key, rank):
    """Weights and singular values at which the conditions of the kernel SVD of <φ(q_i), φ(k_j)> hold."""
    left, values, right = torch.linalg.svd(F.normalize(query, dim=-1) @ F.normalize(key, dim=-1).mT)
    # K H_r = H_e Σ and Λ = Σ⁻¹; scaled so that e = W_eᵀφ(q) with W_e = Φ(K)ᵀ H_r gives Λ e = H_e.
    weight_e = F.normalize(key, dim=-1).mT @ right.mT[..., :rank]
    weight_r = F.normalize(query, dim=-1).mT @ left[..., :rank]
    return weight_e, weight_r, 1 / values[..., :rank]


def test_the_objective_vanishes_at_a_singular_value_decomposition():
    query, key, _ = (part.detach() for part in heads(batch=1, count=40, dim=8))
    weight_e, weight_r, singular = (part[0] for part in stationary_point(query, key, 5))
    scores = primal(query, key, weight_e, weight_r)
    objective = ksvd_objective(scores, singular, weight_e, weight_r, reduction="sum")
    size = (scores.e.square() * singular[:, None]).sum(dim=(-2, -1))
    assert (objective.abs() < 1e-12 * size).all()
    assert (kkt_residual(scores, query, key, singular, weight_e, weight_r, reduction="sum") < 1e-12).all()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_residual_vanishes_where_the_gradient_of_the_objective_does(reduction):
    query, key, _ = (part.detach() for part in heads(batch=1, count=40, dim=8))
    weight_e, weight_r, singular = (part[0] for part in stationary_point(query, key, 5))
    singular = singular * (40 if reduction == "mean" else 1)
    weights = weight_e.requires_grad_(), weight_r.requires_grad_()
    scores = primal(query, key, *weights)
    ksvd_objective(scores, singular, *weights, reduction=reduction).sum().backward()
    assert all(weight.grad.abs().max() < 1e-12 for weight in weights)
    assert (kkt_residual(scores, query, key, singular, *weights, reduction=reduction) < 1e-12).all()
    other = "sum" if reduction == "mean" else "mean"
    assert (kkt_residual(scores, query, key, singular, *weights, reduction=other) > 0.5).all()


def test_the_objective_vanishes_elsewhere_too_and_the_residual_does_not():
    query, key, _ = (part.detach() for part in heads(batch=1, count=40, dim=8))
    weight_e, weight_r, singular = (part[0] for part in stationary_point(query, key, 5))
    turned = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).Q
    scores = primal(query, key, weight_e @ turned, weight_r @ turned)
    flat = torch.full_like(singular, singular.mean().item())
    assert (kkt_residual(scores, query, key, flat, weight_e @ turned, weight_r @ turned, reduction="sum") > 0.05).all()
    zero = torch.zeros_like(weight_e)
    assert (ksvd_objective(primal(query, key, zero, zero), singular, zero, zero) == 0).all()


def test_the_objective_is_that_of_the_published_code():
    """½ mean‖λe‖² + ½ mean‖λr‖² - mean_h Tr(W_eᵀW_r), squared, with λ learned and entering squared."""
    layer = PrimalAttention(WIDTH, HEADS, rank=3, data_dependent=False).double()
    x = tokens()
    layer(x)
    parts = layer._projected(x)
    e, r = F.normalize(parts["q"], dim=-1) @ layer.weight_e, F.normalize(parts["k"], dim=-1) @ layer.weight_r
    root = layer.root_singular[:, None]
    trace = torch.stack([torch.trace(e.T @ r) for e, r in zip(layer.weight_e, layer.weight_r, strict=True)]).mean()
    half = ((root * e).square().sum(-1).mean() + (root * r).square().sum(-1).mean()) / 2
    torch.testing.assert_close(layer.ksvd_loss(), (half - trace).square())
    other = PrimalAttention(WIDTH, HEADS, rank=2).double()
    other(x)
    both, losses = torch.nn.ModuleList([layer, other]), torch.stack([layer.ksvd_loss(), other.ksvd_loss()])
    torch.testing.assert_close(ksvd_loss(both, reduction="sum"), losses.sum())
    torch.testing.assert_close(ksvd_loss(both), losses.mean())
    per_sample = ((root * e).square().sum(-1).mean((-2, -1)) + (root * r).square().sum(-1).mean((-2, -1))) / 2 - trace
    torch.testing.assert_close(layer.ksvd_loss("sample"), per_sample.square().mean())


def test_the_loss_reaches_the_parameters():
    layer = PrimalAttention(WIDTH, HEADS, rank=3).double()
    layer(tokens())
    ksvd_loss(layer).backward()
    assert all(p.grad.abs().max() > 0 for p in (layer.weight_e, layer.weight_r, layer.root_singular, layer.qk.weight))


def test_orthogonal_start_gives_every_head_norm_one():
    layer = PrimalAttention(64, 4, rank=8)
    torch.testing.assert_close(layer.weight_e.square().sum(dim=(-2, -1)), torch.ones(4))


@pytest.mark.parametrize("count", [4, 6, 7, 23])
def test_rows_of_the_input_are_evenly_spaced_or_all(count):
    source = heads(count=count)[0].detach()
    weight = torch.randn(HEADS, 6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    places = list(range(count)) if count <= 6 else [i * (count - 1) // 5 for i in range(6)]
    expected = torch.einsum("bhnd,hns->bhds", source[..., places, :], weight[:, : len(places)])
    torch.testing.assert_close(combined_weight(source, weight), expected)
    assert places[0] == 0
    assert places[-1] == count - 1


def test_causal_scores_are_those_of_running_means():
    query, key, _ = (part.detach() for part in heads())
    weight = torch.randn(HEADS, 4, 3, dtype=torch.float64)
    scores = primal(query, key, weight, weight, is_causal=True)
    expected = F.normalize(query[..., :3, :].mean(dim=-2), dim=-1)[..., None, :] @ weight
    torch.testing.assert_close(scores.e[..., 2:3, :], expected)


def test_padded_tokens_do_not_enter_running_means():
    query, key, _ = (part.detach() for part in heads())
    weight = torch.randn(HEADS, 4, 3, dtype=torch.float64)
    seen = torch.ones(2, 1, 1, TOKENS, dtype=torch.bool)
    seen[..., :2] = False  # padded on the left
    scores = primal(query, key, weight, weight, mask=seen, is_causal=True)
    cut = primal(query[..., 2:, :], key[..., 2:, :], weight, weight, is_causal=True)
    torch.testing.assert_close(scores.e[..., 2:, :], cut.e)
    assert primal(query.half(), key.half(), weight.half(), weight.half(), mask=seen, is_causal=True).e.isfinite().all()


@pytest.mark.parametrize(
    ("options", "count"), [({}, TOKENS), ({"row_factor": 10}, TOKENS), ({"data_dependent": False}, TOKENS), ({}, 4)]
)
def test_scores_are_the_kernel_factors_times_the_weights(options, count):
    """Inputs with more tokens than rows of W, with fewer, and weights that do not depend on the input."""
    layer, x = PrimalAttention(WIDTH, HEADS, rank=3, **{"row_factor": 2, **options}).double(), tokens()[:, :count]
    factors, shown = layer.kernel_factors(x), []
    layer.combine.register_forward_pre_hook(lambda module, args: shown.append(args[0]))
    layer(x)
    e = factors.query @ factors.rows.mT @ layer.weight_e
    r = factors.key @ factors.rows.mT @ layer.weight_r
    torch.testing.assert_close(torch.cat([e, r], dim=-1), shown[0])


def test_a_pass_without_gradient_has_no_loss():
    layer = PrimalAttention(WIDTH, HEADS, rank=3).double()
    with torch.no_grad():
        layer(tokens())
    with pytest.raises(AttnAuditError, match="no gradient"):
        layer.ksvd_loss()


def test_padding_does_not_enter_the_objective():
    singular, weight = torch.rand(HEADS, 3, dtype=torch.float64), torch.rand(HEADS, 4, 3, dtype=torch.float64)
    query, key, _ = (part.detach() for part in heads())
    seen = torch.ones(2, 1, 1, TOKENS, dtype=torch.bool)
    seen[..., 5:] = False
    whole = ksvd_objective(primal(query, key, weight, weight), singular, weight, weight, mask=seen)
    cut = primal(query[..., :5, :], key[..., :5, :], weight, weight)
    torch.testing.assert_close(whole, ksvd_objective(ScorePair(*cut), singular, weight, weight))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 5}, "head dimension 4, got 5"),
        ({"rank": 0}, "got 0"),
        ({"rank": 2, "row_factor": 0}, "row_factor=0"),
        ({"rank": 2, "tokens": -3}, "tokens=-3"),
        ({"rank": 2, "attn_head_dim": 8}, "width 12 .* 3 x 8"),
    ],
)
def test_settings_that_make_no_sense_are_errors(options, message):
    with pytest.raises(AttnAuditError, match=message):
        PrimalAttention(WIDTH, HEADS, **options)
    assert PrimalAttention(WIDTH, HEADS, rank=5, overcomplete=True).rank == 5


def test_what_it_cannot_do_is_an_error():
    layer = PrimalAttention(WIDTH, HEADS, rank=3).double()
    with pytest.raises(AttnAuditError, match="first forward pass"):
        layer.ksvd_loss()
    with pytest.raises(AttnAuditError, match="Unknown value 'batches' of per: did you mean batch"):
        layer.ksvd_loss("batches")
    with pytest.raises(AttnAuditError, match="Unknown value 'avg' of reduction"):
        ksvd_loss(layer, reduction="avg")
    with pytest.raises(AttnAuditError, match="Identity"):
        ksvd_loss(torch.nn.Identity())
    with pytest.raises(AttnAuditError, match="data_dependent"):
        layer(tokens(), is_causal=True)
    with pytest.raises(ShapeError, match=rf"\({TOKENS}, {TOKENS}\)"):
        layer(tokens(), torch.ones(TOKENS, TOKENS, dtype=torch.bool))


@pytest.mark.parametrize("real", [3, 4, 7, 11])
def test_rows_are_chosen_among_real_tokens_as_if_there_were_no_others(real):
    generator = torch.Generator().manual_seed(0)
    source, weight = torch.randn(1, 2, 12, 3, generator=generator), torch.randn(2, 4, 2, generator=generator)
    mask = (torch.arange(12) < real)[None, None, None]
    found = combined_weight(source, weight, mask=mask)
    torch.testing.assert_close(found, combined_weight(source[:, :, :real], weight))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_layer_of_half_precision_begins_with_the_weights_of_one_in_float32(dtype):
    """torch has no QR decomposition of half precision."""
    half, single = seeded_layer(dtype), seeded_layer(torch.float32)
    assert half.weight_e.dtype == dtype
    assert torch.equal(half.weight_e, single.weight_e.to(dtype))
    assert torch.equal(half.weight_r, single.weight_r.to(dtype))


def test_it_is_swapped_into_a_model_of_half_precision():
    timm = pytest.importorskip("timm.models.vision_transformer")
    model = timm.VisionTransformer(img_size=8, patch_size=4, embed_dim=24, depth=1, num_heads=2).half()
    with swap(model, "primal", rank=2):
        assert model.blocks[0].attn.weight_e.dtype == torch.float16
        assert model(torch.randn(2, 3, 8, 8).half()).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_weights_begin_as_torchs_orthogonal_ones_to_the_last_bit(dtype):
    torch.manual_seed(0)
    Attention(WIDTH, HEADS, projections="qk", dtype=dtype)
    nn.Linear(2 * 3, WIDTH // HEADS, dtype=dtype)
    expected = [nn.init.orthogonal_(torch.empty(HEADS, 6, 3, dtype=dtype)) for _ in range(2)]
    layer = seeded_layer(dtype)
    assert torch.equal(layer.weight_e, expected[0])
    assert torch.equal(layer.weight_r, expected[1])


def seeded_layer(dtype):
    torch.manual_seed(0)
    return PrimalAttention(WIDTH, HEADS, rank=3, row_factor=2, dtype=dtype)
