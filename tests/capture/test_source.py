"""`source` is what the value projection was applied to: W_v(source) = V."""

import pytest
import torch
from torch import nn

from attnaudit.capture import capture

TOKENS = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(0))
MEMORY = torch.randn(2, 5, 12, generator=torch.Generator().manual_seed(1))


def assert_values_come_from_source(result, projections):
    """Every head's values are those that its layer's projection makes of the row of `source` that belongs to it.

    A projection returns (…, heads of values · dim); a head of values may serve several heads of queries.
    """
    numbers = sorted({entry.layer for heads in result.layers for entry in heads.index})
    assert len(numbers) == len(projections)
    for heads in result.layers:
        assert heads.source is not None
        assert heads.source.shape[1] == heads.tokens
        assert len(heads) % len(heads.source) == 0
        per_row = len(heads) // len(heads.source)
        count = 1 + max(entry.head for entry in heads.index)
        project = projections[numbers.index(heads.index[0].layer)]
        with torch.no_grad():
            projected = project(heads.source)
        values = projected.unflatten(-1, (-1, heads.value.shape[-1])).repeat_interleave(
            count * heads.value.shape[-1] // projected.shape[-1], dim=2
        )
        for place, entry in enumerate(heads.index):
            first = heads.index[place // per_row * per_row]
            assert (entry.input, entry.window) == (first.input, first.window)
            expected = values[place // per_row, :, entry.head]
            torch.testing.assert_close(
                heads.value[place], expected, rtol=1e-5, atol=1e-5, msg=lambda m, e=entry: f"{e}: {m}"
            )


def last_third(module):
    """The values of a projection that makes queries, keys and values at once."""
    return lambda source: module(source).chunk(3, dim=-1)[2]


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["bert", "llama", "qwen3", "opt", "gpt2", "bart", "t5", "vit", "swin"])
def test_values_of_transformers_models_come_from_source(kind, way):
    pytest.importorskip("transformers")
    from tests.capture.tiny_transformers import batch, build

    model = build(kind, way)
    modules = dict(model.named_modules())
    ends = {"gpt2": ".c_attn", "t5": ".v"}.get(kind, (".v_proj", ".value"))
    projections = [module for name, module in modules.items() if name.endswith(ends)]
    result = capture(model, batch(kind))
    assert_values_come_from_source(result, [last_third(p) for p in projections] if kind == "gpt2" else projections)


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize(("kind", "left"), [("llama", True), ("bert", False), ("bart", False)])
def test_source_has_the_tokens_of_the_keys_in_padded_batches(kind, left, way):
    pytest.importorskip("transformers")
    from tests.capture.tiny_transformers import batch, build

    model, real = build(kind, way), torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
    projections = [module for name, module in model.named_modules() if name.endswith((".v_proj", ".value"))]
    result = capture(model, batch(kind, real.flip(1) if left else real))
    assert_values_come_from_source(result, projections)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["vit", "swin", "davit", "nest", "hiera", "maxvit"])
def test_values_of_timm_models_come_from_source(name, fused):
    pytest.importorskip("timm")
    from tests.capture.tiny_timm import build

    model, images = build(name, fused)
    attention = [m for m in model.modules() if hasattr(m, "qkv") and type(m).__name__ != "ChannelAttention"]
    if name == "maxvit":  # queries, keys and values of a head lie side by side
        projections = [
            lambda source, m=m: m.qkv(source).unflatten(-1, (m.num_heads, -1)).chunk(3, dim=-1)[2].flatten(-2)
            for m in attention
        ]
    else:
        projections = [last_third(m.qkv) for m in attention]
    assert_values_come_from_source(capture(model, images), projections)


class Multihead(nn.Module):
    """torch's own layer: self-attention, or the tokens attend to a memory."""

    def __init__(self, batch_first, cross, **options):
        super().__init__()
        torch.manual_seed(0)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=batch_first, **options)
        self.cross, self.batch_first = cross, batch_first

    def forward(self, tokens, memory):
        memory = memory if self.cross else tokens
        if not self.batch_first:
            tokens, memory = tokens.transpose(0, 1), memory.transpose(0, 1)
        key = memory[..., : self.attention.kdim]
        return self.attention(query=tokens, key=key, value=memory, need_weights=False)[0]


@pytest.mark.parametrize("options", [{}, {"kdim": 10}], ids=["one weight", "three weights"])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("cross", [True, False])
def test_values_of_multihead_attention_come_from_source(batch_first, cross, options):
    model = Multihead(batch_first, cross, **options)
    attention = model.attention
    weight = attention.in_proj_weight.chunk(3)[2] if attention.in_proj_weight is not None else attention.v_proj_weight
    bias = attention.in_proj_bias.chunk(3)[2]
    result = capture(model, (TOKENS, MEMORY))
    assert_values_come_from_source(result, [lambda source: nn.functional.linear(source, weight, bias)])
    expected = MEMORY if cross else TOKENS
    assert torch.equal(result.layers[0].source, expected)


class Layer(nn.Module):
    """Attention behind a norm, called with keywords; `change` is applied to what the value projection makes."""

    def __init__(self, change):
        super().__init__()
        torch.manual_seed(0)
        self.norm, self.inner = nn.LayerNorm(12), nn.Module()
        self.inner.q, self.inner.k, self.inner.v = (nn.Linear(12, 12) for _ in range(3))
        self.change = change

    def forward(self, x):
        return self.attend(hidden=self.norm(x))

    def attend(self, *, hidden):
        q, k, v = (layer(hidden).unflatten(-1, (3, 4)).transpose(1, 2) for layer in self.inner.children())
        return nn.functional.scaled_dot_product_attention(q, k, self.change(v))


def test_source_is_after_the_norm_also_where_the_layer_is_no_module():
    model = Layer(lambda v: v)
    result = capture(model, TOKENS)
    assert_values_come_from_source(result, [model.inner.v])
    torch.testing.assert_close(result.layers[0].source, model.norm(TOKENS).detach())


@pytest.mark.parametrize("change", [torch.relu, torch.exp], ids=lambda f: f.__name__)
def test_source_is_unknown_where_no_linear_layer_made_the_values(change):
    assert capture(Layer(change), TOKENS).layers[0].source is None


TABLE = torch.randn(7, 4, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v + TABLE,
        lambda v: v.clone().add_(TABLE),
        lambda v: v.masked_fill(torch.arange(7)[:, None] > 4, -1e4),
        lambda v: v * (torch.arange(7)[:, None] < 5),
    ],
    ids=["positions", "positions in place", "a mask", "a factor of 0"],
)
def test_source_is_unknown_where_values_have_a_term_of_their_token(change):
    (heads,) = capture(Layer(change), TOKENS).layers
    assert heads.source is None


def test_a_bias_of_the_channel_that_is_added_later_is_one_of_the_layer():
    assert capture(Layer(lambda v: v + TABLE[0]), TOKENS).layers[0].source is not None


class Overwriting(Layer):
    """Reuses the memory of what the values were made from, before they are attended to."""

    def attend(self, *, hidden):
        q, k, v = (layer(hidden).unflatten(-1, (3, 4)).transpose(1, 2) for layer in self.inner.children())
        hidden.zero_()
        return nn.functional.scaled_dot_product_attention(q, k, v)


def test_a_source_that_was_overwritten_is_unknown():
    assert capture(Overwriting(None), TOKENS).layers[0].source is None
