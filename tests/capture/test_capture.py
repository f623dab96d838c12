"""Attention is captured in every form people write it, and refused otherwise."""

import weakref

import pytest
import torch
from torch import nn

from attnaudit.capture import Heads, capture, collector
from attnaudit.capture.capture import capture_each
from attnaudit.errors import CaptureError, InputError, ShapeError
from tests.capture.ways import BAD, GOOD, INPUTS, OneLayer, flattened_bmm, fused_causal, softmax_product


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


def test_no_names_at_all_do_not_match_either():
    with pytest.raises(InputError, match="Got no names for a batch of 2 inputs"):
        capture(nn.MultiheadAttention(8, 2), torch.ones(2, 5, 8), names=[])


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


class TwoLayers(nn.Module):
    """Two layers of one form; each adds its own mask to its scores."""

    def __init__(self, masks):
        super().__init__()
        self.masks = masks
        self.layers = nn.ModuleList(OneLayer(self.attend) for _ in masks)

    def attend(self, q, k, v):
        return (q @ k.mT + self.mask.expand(len(q), 1, -1, -1).clone()).softmax(-1) @ v

    def forward(self, x):
        for mask, layer in zip(self.masks, self.layers, strict=True):
            self.mask = mask
            x = x + layer(x)
        return x


def test_layers_with_one_mask_keep_one_copy_of_it():
    mask = torch.zeros(7, 7).masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), -torch.inf)
    first, second = capture(TwoLayers([mask, mask.clone()]), INPUTS).layers
    assert first.bias.data_ptr() == second.bias.data_ptr()
    assert first.bias.untyped_storage().nbytes() == mask.untyped_storage().nbytes()
    torch.testing.assert_close(second.bias, mask.expand(6, 7, 7))


def test_layers_with_different_masks_keep_their_own():
    masks = [torch.zeros(7, 7), torch.arange(49.0).view(7, 7)]
    for heads, mask in zip(capture(TwoLayers(masks), INPUTS).layers, masks, strict=True):
        torch.testing.assert_close(heads.bias, mask.expand(6, 7, 7))


def test_a_number_that_is_not_finite_in_one_of_several_lengths_is_refused(monkeypatch):
    errors = iter([1e-9, float("nan")])
    monkeypatch.setattr(collector, "_replay_error", lambda heads: next(errors))

    class Padded(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(12, 3, batch_first=True)

        def forward(self, x):
            padding = torch.zeros(2, 7, dtype=torch.bool)
            padding[1, 5:] = True
            return self.attention(x, x, x, key_padding_mask=padding)[0]

    with pytest.raises(CaptureError, match="computes NaN or infinite numbers"):
        capture(Padded(), INPUTS)


def test_layers_with_different_numbers_of_heads_may_have_the_same_mask():
    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = nn.ModuleList(nn.Linear(16, 48) for _ in range(3))

        def forward(self, x):
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
            for heads, project in zip((4, 2, 8), self.project, strict=True):
                query, key, value = project(x).view(len(x), x.shape[1], 3, heads, -1).permute(2, 0, 3, 1, 4)
                attended = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
                x = x + attended.transpose(1, 2).flatten(2)
            return x

    torch.manual_seed(0)
    captured = capture(Layers(), torch.randn(2, 6, 16))
    assert [len(heads) for heads in captured.layers] == [8, 4, 16]
    assert all(heads.causal for heads in captured.layers)


class Drawing(nn.MultiheadAttention):
    """Draws random numbers in every pass."""

    def forward(self, x):
        return super().forward(x + 0 * torch.randn_like(x), x, x)[0]


def test_random_states_are_as_before():
    model, before = Drawing(8, 2, batch_first=True), torch.get_rng_state()
    capture(model, torch.ones(2, 5, 8))
    assert torch.equal(torch.get_rng_state(), before)
    model(torch.ones(2, 5, 8))
    assert not torch.equal(torch.get_rng_state(), before)


class Looped(nn.Module):
    """Two layers, run on one input after the other."""

    def __init__(self, whole):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList(nn.MultiheadAttention(8, 2, batch_first=True) for _ in range(2))
        self.whole = whole

    def forward(self, x):
        return self.run(x) if self.whole else torch.cat([self.run(one[None]) for one in x])

    def run(self, x):
        for layer in self.layers:
            x = layer(x, x, x, need_weights=False)[0]
        return x


def test_a_loop_over_the_inputs_has_the_layers_of_the_whole_batch():
    inputs = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(0))
    whole, looped = (capture(Looped(how), inputs) for how in (True, False))
    assert set(looped.layer_names) == {"layers.0", "layers.1"} == set(looped.certificate.errors)
    assert len(looped.layers) == 6
    expected = {place: heads.value[own] for heads in whole.layers for own, place in enumerate(heads.index)}
    found = {place: heads.value[own] for heads in looped.layers for own, place in enumerate(heads.index)}
    assert {place[1:] for place in found} == {place[1:] for place in expected}
    for place, value in found.items():
        torch.testing.assert_close(value, expected[place])
