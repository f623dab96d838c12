"""Attention is captured in every form people write it, and refused otherwise."""

import math
import weakref

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.capture import Heads, capture
from attnaudit.capture.capture import capture_each
from attnaudit.errors import CaptureError, InputError, ShapeError


class OneLayer(nn.Module):
    """Projections around an attention function of (query, key, value), all (batch, heads, tokens, dim)."""

    def __init__(self, attend, width=12, heads=3):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads, self.attend = heads, attend

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width))


def softmax_product(q, k, v):
    return ((q @ k.transpose(-2, -1)) / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


def scores_times_a_matrix(q, k, v):
    return torch.matmul(q @ k.mT, torch.eye(k.shape[-2])).softmax(-1) @ v


def both_scaled(q, k, v):
    quarter = q.shape[-1] ** -0.25
    return F.softmax((q * quarter) @ (k * quarter).transpose(-1, -2), dim=-1) @ v


def einsum(q, k, v):
    scores = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    return torch.einsum("bhij,bhjd->bhid", F.softmax(scores, dim=-1), v)


def flattened_bmm(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, n, d) for x in (q, k, v))
    return torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)) / d**0.5, -1), v).reshape(b, h, n, d)


def causal(q, k, v):
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).triu(1)
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(mask, -torch.inf)
    return F.dropout(scores.softmax(-1), 0.1, training=False) @ v


def fused_causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def fused_boolean_mask(q, k, v):
    mask = torch.ones(q.shape[-2], q.shape[-2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.3)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True)


def softcapped(q, k, v):
    return (20 * torch.tanh(q @ k.mT / 20)).softmax(-1) @ v


def biased_in_the_product(q, k, v):
    b, h, n, d = q.shape
    q, k, v = (x.reshape(b * h, n, d) for x in (q, k, v))
    scores = torch.baddbmm(torch.linspace(0, 1, n).expand(b * h, n, n), q, k.mT, beta=0.5, alpha=d**-0.5)
    return (scores.softmax(-1) @ v).reshape(b, h, n, d)


def position_term(q, k, v):
    place = torch.arange(q.shape[-2])
    return torch.add(q @ k.mT, (place[:, None] - place).abs().float(), alpha=-0.5).softmax(-1) @ v


def values_on_the_left(q, k, v):
    return (v.mT @ (k @ q.mT).softmax(-2)).mT


def keys_of_one_head(q, k, v):
    return (torch.einsum("bhid,bjd->bhij", q, k[:, 0]) / 2).softmax(-1) @ v


def written_into_slices(q, k, v):
    scores = q @ k.mT
    scores[..., 1:, 1:] += torch.linspace(0, 1, q.shape[-2] - 1)
    scores[:, :, 0] = scores[:, :, 0] - 1.0
    return scores.softmax(-1) @ v


def with_a_sink(q, k, v):
    scores = torch.cat([q @ k.mT, torch.ones(*q.shape[:3], 1)], dim=-1)
    scores = scores - scores.max(dim=-1, keepdim=True).values
    return scores.softmax(-1)[..., :-1] @ v


def clamped_where_it_changes_nothing(q, k, v):
    return torch.clamp(q @ k.mT, min=-1e9).softmax(-1) @ v


GOOD = [
    softmax_product,
    both_scaled,
    einsum,
    flattened_bmm,
    causal,
    fused_causal,
    fused_boolean_mask,
    grouped,
    softcapped,
    biased_in_the_product,
    position_term,
    values_on_the_left,
    keys_of_one_head,
    written_into_slices,
    with_a_sink,
    clamped_where_it_changes_nothing,
]


def talking(q, k, v):
    mix = torch.eye(q.shape[1]) + 0.1
    scores = F.linear((q @ k.mT).permute(0, 2, 3, 1), mix).permute(0, 3, 1, 2)
    return scores.softmax(-1) @ v


def linear_attention(q, k, v):
    return F.elu(q) @ (F.elu(k).transpose(-2, -1) @ v)


def softmax_over_queries(q, k, v):
    return (q @ k.mT).softmax(dim=-2) @ v


def reweighted(q, k, v):
    return ((q @ k.mT).softmax(-1) * torch.rand(k.shape[-2])) @ v


def dropped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)


def two_products(q, k, v):
    return ((q @ k.mT + v @ q.mT) / 2).softmax(-1) @ v


def gated_by_its_scores(q, k, v):
    scores = q @ k.mT
    return (scores + torch.sigmoid(scores).cumsum(-1)).softmax(-1) @ v


def sigmoid_attention(q, k, v):
    return torch.sigmoid(q @ k.mT) @ v


def over_channels(q, k, v):
    return v @ (q.mT @ k).softmax(-1).mT


def additive_scores(q, k, v):
    return torch.tanh(q[..., :, None, :] + k[..., None, :, :]).sum(-1).softmax(-1) @ v


def across_inputs(q, k, v):
    q, k, v = (x.transpose(0, 2) for x in (q, k, v))
    return softmax_product(q, k, v).transpose(0, 2)


def fused_across_inputs(q, k, v):
    q, k, v = (x.transpose(0, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v).transpose(0, 2)


BAD = [
    (across_inputs, "across the inputs"),
    (fused_across_inputs, "across the inputs"),
    (talking, "talking heads"),
    (linear_attention, "linear attention"),
    (softmax_over_queries, "another axis"),
    (reweighted, "mul after"),
    (scores_times_a_matrix, "multiplied by a matrix"),
    (dropped, "dropout"),
    (two_products, "sum of two products"),
    (gated_by_its_scores, "own scores"),
    (sigmoid_attention, "sigmoid, without a softmax"),
    (over_channels, "channels instead of tokens"),
    (additive_scores, "no product of queries and keys"),
]

INPUTS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("attend", GOOD, ids=lambda f: f.__name__)
def test_softmax_attention_is_captured_however_it_is_written(attend):
    result = capture(OneLayer(attend), INPUTS)
    assert result.refusals == ()
    assert result.certificate.worst < 1e-5
    heads = result.heads
    assert heads.key.shape == (6, 7, 4)
    assert result.other_softmaxes == ()
    torch.testing.assert_close(heads.replayed(), heads.output, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("attend", GOOD[1:4], ids=lambda f: f.__name__)
def test_scales_folded_into_queries_or_keys_are_taken_out_again(attend):
    plain, other = capture(OneLayer(softmax_product), INPUTS).heads, capture(OneLayer(attend), INPUTS).heads
    for name in ("query", "key", "value", "scale"):
        torch.testing.assert_close(getattr(other, name), getattr(plain, name), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("attend", "reason"), BAD, ids=lambda x: getattr(x, "__name__", x))
def test_anything_else_is_refused_with_its_reason(attend, reason):
    with pytest.raises(CaptureError, match=reason):
        capture(OneLayer(attend), INPUTS)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("masks", ["none", "padding", "causal", "both"])
def test_multihead_attention_is_captured(need_weights, batch_first, masks):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, batch_first=batch_first)

        def forward(self, x):
            x = x if batch_first else x.transpose(0, 1)
            padding = torch.zeros(2, 7, dtype=torch.bool)
            padding[1, 5:] = True
            mask = torch.ones(7, 7, dtype=torch.bool).triu(1)
            return self.attention(
                x, x, x, need_weights=need_weights,
                key_padding_mask=padding if masks in ("padding", "both") else None,
                attn_mask=mask if masks in ("causal", "both") else None,
            )[0]  # fmt: skip

    torch.manual_seed(0)
    result = capture(Layer(), INPUTS)
    assert set(result.layer_names) == {"attention"}
    assert result.certificate.worst < 1e-5
    tokens = {entry.input: heads.tokens for heads in result.layers for entry in heads.index}
    assert tokens == {"input-0": 7, "input-1": 5 if masks in ("padding", "both") else 7}


def test_transformer_encoder_is_captured_although_it_has_a_fast_path():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(12, 3, dim_feedforward=16, batch_first=True)
    result = capture(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), INPUTS)
    assert result.layer_names == ("layers.0.self_attn", "layers.1.self_attn")


def test_tokens_that_a_layer_adds_to_the_sequence_are_keys_like_others():
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, add_zero_attn=True, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)[0]

    heads = capture(Layer(), INPUTS).heads
    assert heads.key.shape == (6, 8, 4)
    assert not heads.key[:, 7].any()
    assert heads.source is None


def test_shared_layers_are_counted_each_time_they_run():
    layer = OneLayer(softmax_product)

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(self.layer(x))

    result = capture(Twice(), INPUTS)
    assert [heads.index[0].layer for heads in result.layers] == [0, 1]
    assert len(result.certificate.errors) == 2


def test_a_model_without_attention_says_so():
    with pytest.raises(CaptureError, match="Linear"):
        capture(nn.Linear(12, 3), INPUTS)


def test_compiled_models_are_captured_through_the_module_they_wrap():
    model = OneLayer(softmax_product)
    assert len(capture(torch.compile(model), INPUTS).layers) == 1


def test_names_must_match_the_batch():
    with pytest.raises(InputError, match=r"3 names .* 2 inputs"):
        capture(OneLayer(softmax_product), INPUTS, names=["a", "b", "c"])


def test_the_package_is_callable():
    import attnaudit

    assert len(attnaudit.capture(OneLayer(softmax_product), INPUTS, names=["a", "b"]).heads) == 6
    assert attnaudit.capture.capture is capture
    assert attnaudit.capture.Heads is attnaudit.Heads


def test_layers_of_different_shape_do_not_join():
    small, large = OneLayer(softmax_product), OneLayer(softmax_product, heads=2)
    batches = [capture(model, INPUTS).heads for model in (small, large)]
    with pytest.raises(ShapeError, match="2 different shapes"):
        Heads.cat(batches)


def test_heads_that_do_not_fit_together_are_refused_with_their_shapes():
    heads = capture(OneLayer(softmax_product), INPUTS).heads
    with pytest.raises(ShapeError, match=r"Heads.key must have shape \(6, 7, 4\).* got \(6, 3, 4\)"):
        Heads(heads.query, heads.key[:, :3], heads.value, heads.output, heads.scale, heads.index)


def test_low_precision_models_are_captured_within_their_tolerance():
    model = OneLayer(softmax_product).to(torch.bfloat16)
    result = capture(model, INPUTS.to(torch.bfloat16))
    assert result.certificate.tolerance == 5e-2
    assert result.heads.key.dtype == torch.bfloat16


@pytest.mark.parametrize("attend", [softmax_product, fused_causal, flattened_bmm], ids=lambda f: f.__name__)
def test_activations_of_earlier_layers_are_not_kept_alive(attend):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([OneLayer(attend) for _ in range(4)])
            self.made = []
            self.alive = []

        def forward(self, x):
            for layer in self.layers:
                hidden = layer(x).reshape(2, 7, 3, 4).transpose(1, 2)
                self.made.append(weakref.ref(hidden))
                x = x + torch.relu(hidden).transpose(1, 2).reshape(2, 7, 12)
                del hidden
                self.alive.append(sum(reference() is not None for reference in self.made))
            return x

    model = Deep()
    capture_each(model.eval(), INPUTS, ["a", "b"], lambda heads: None, model_name="deep")
    assert model.alive == [0, 0, 0, 0]
