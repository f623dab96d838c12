"""Padding is no token of a head: each input of a padded batch is as it is alone, with queries of its own."""

from itertools import product

import pytest
import torch
from torch import nn

from attnaudit.capture import capture

pytest.importorskip("transformers")
from tests.capture.tiny_transformers import BOTH_WAYS, batch, build

REAL = torch.tensor([[True] * 9, [True] * 6 + [False] * 3])
HEADS, DIM = 2, 4
X = torch.randn(2, 9, HEADS * DIM, generator=torch.Generator().manual_seed(0))


def of_input(result, name):
    """(layer, heads of an input), in the order the layers ran."""
    rows = [
        (heads.index[0].layer, heads, [i for i, at in enumerate(heads.index) if at.input == name])
        for heads in result.layers
    ]
    return [(layer, heads, chosen) for layer, heads, chosen in rows if chosen]


def assert_same_alone(batched, alone):
    """Input 1 of a batch has the heads that it has alone, up to rounding."""
    pairs = list(zip(of_input(batched, "input-1"), of_input(alone, "input-0"), strict=True))
    assert pairs
    for (layer, padded, here), (other, plain, there) in pairs:
        assert layer == other
        for part in ("query", "key", "value", "output"):
            torch.testing.assert_close(getattr(padded, part)[here], getattr(plain, part)[there], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("way", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["bart", "t5"])
@pytest.mark.parametrize("length", [7, 9])
def test_queries_of_a_decoder_are_not_taken_for_padding_of_the_encoder(kind, way, length):
    decoder = torch.randint(5, 90, (2, length), generator=torch.Generator().manual_seed(1))
    inputs = batch(kind, REAL) | {"decoder_input_ids": decoder}
    alone = {"input_ids": inputs["input_ids"][1:, :6], "decoder_input_ids": decoder[1:]}
    assert_same_alone(capture(build(kind, way), inputs), capture(build(kind, way), alone))


def test_queries_of_a_decoder_that_makes_its_own_tokens_are_all_kept():
    result = capture(build("bart"), {"input_ids": batch("bart")["input_ids"], "attention_mask": REAL.long()})
    crossing = [name for name in result.layer_names if "encoder_attn" in name]
    assert crossing
    sizes = {
        (h.query.shape[1], h.tokens) for n, h in zip(result.layer_names, result.layers, strict=True) if n in crossing
    }
    assert sizes == {(9, 9), (9, 6)}


@pytest.mark.parametrize("left", [False, True])
def test_padding_that_sees_itself_is_none_of_the_tokens_of_xlnet(left):
    real = REAL.flip(1) if left else REAL
    inputs = batch("xlnet", real)
    result = capture(build("xlnet"), inputs)
    assert [h.tokens for _, h, _ in of_input(result, "input-1")] == [6, 6]
    if not left:  # positions are relative to the length of the batch on the other side
        assert_same_alone(result, capture(build("xlnet"), {"input_ids": inputs["input_ids"][1:, :6]}))


class Masked(nn.Module):
    """Attention under a mask made by `see`, (batch, tokens) to (batch, queries, keys); all heads share it."""

    def __init__(self, see, pooled=0, causal=False):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.see, self.pooled, self.causal = nn.Linear(HEADS * DIM, 3 * HEADS * DIM), see, pooled, causal

    def forward(self, x, real=None, attention_mask=None):
        real = attention_mask.bool() if real is None else real
        q, k, v = (part.unflatten(-1, (HEADS, DIM)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        seen = self.see(real)[:, None]
        if self.pooled:  # keys and values of blocks of tokens, beside those of the tokens
            whole = real[:, None, :, None].float()
            k, v = (torch.cat([part, (part * whole)[:, :, : self.pooled] * 0.5], 2) for part in (k, v))
            seen = torch.cat([seen, seen.new_ones(*seen.shape[:-1], self.pooled)], -1)
        if self.causal:
            seen = seen & torch.ones(seen.shape[-2:], dtype=torch.bool).tril()
        scores = (q @ k.mT * 0.5).masked_fill(~seen, -torch.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def keys_or_self(real):
    return real[:, None, :] | torch.eye(real.shape[1], dtype=torch.bool)


def pairs_or_self(real):
    return (real[:, None, :] & real[:, :, None]) | torch.eye(real.shape[1], dtype=torch.bool)


def keys(real):
    return real[:, None, :].expand(-1, real.shape[1], -1)


@pytest.mark.parametrize(
    ("see", "named", "count"),
    # One real token that no padding sees is like padding, unless the inputs have a mask.
    [
        *product([keys_or_self, pairs_or_self], [True, False], [6, 8]),
        (keys_or_self, False, 1),
        (pairs_or_self, True, 1),
    ],
)
def test_tokens_that_only_themselves_see_are_padding(see, named, count):
    real = torch.tensor([[True] * 9, [True] * count + [False] * (9 - count)])
    result = capture(Masked(see), {"x": X, "attention_mask": real.long()} if named else (X, real))
    assert_same_alone(result, capture(Masked(see), (X[1:, :count], real[1:, :count])))
    assert [h.tokens for _, h, _ in of_input(result, "input-0")] == [9]


def prefix(real):
    """A prefix that all tokens see, and causal attention after it."""
    return torch.ones(9, 9, dtype=torch.bool).tril().index_fill(1, torch.arange(4), True).expand(2, -1, -1)


@pytest.mark.parametrize(
    ("see", "tokens"),
    [
        (prefix, {9}),
        (lambda real: prefix(real) & real[:, None], {9, 6}),
        (lambda real: prefix(real) | torch.tensor([False, True])[:, None, None], {9}),
    ],
)
def test_the_last_token_of_a_causal_part_is_none(see, tokens):
    assert {heads.tokens for heads in capture(Masked(see), (X, REAL)).layers} == tokens


def test_tokens_that_see_nothing_else_are_none_where_no_token_sees_another():
    def see(real):
        return torch.eye(9, dtype=torch.bool).expand(2, -1, -1)

    assert {heads.tokens for heads in capture(Masked(see), (X, REAL)).layers} == {9}


def test_further_keys_beside_those_of_the_tokens_do_not_bring_back_padded_queries():
    model = Masked(keys, pooled=3)
    result = capture(model, {"x": X, "attention_mask": REAL.long()})
    assert_same_alone(result, capture(model, (X[1:, :6], REAL[1:, :6])))


@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.float32])
def test_causal_layers_take_padding_from_the_mask_of_the_inputs(dtype):
    model = Masked(lambda real: torch.ones(len(real), *[real.shape[1]] * 2, dtype=torch.bool), causal=True)
    result = capture(model, {"x": X, "attention_mask": REAL.to(dtype)})
    assert_same_alone(result, capture(model, (X[1:, :6], REAL[1:, :6])))


def test_masked_tokens_that_others_see_after_all_are_tokens():
    model = Masked(lambda real: torch.ones(len(real), *[real.shape[1]] * 2, dtype=torch.bool))
    assert {heads.tokens for heads in capture(model, {"x": X, "attention_mask": REAL.long()}).layers} == {9}


@pytest.mark.parametrize("kind", ["bert", "llama", "gpt2", "mixtral", "deberta-v2"])
def test_every_family_has_padded_inputs_as_they_are_alone(kind):
    for way in ("eager", "sdpa") if kind in BOTH_WAYS else ("eager",):
        inputs = batch(kind, REAL)
        assert_same_alone(
            capture(build(kind, way), inputs), capture(build(kind, way), {"input_ids": inputs["input_ids"][1:, :6]})
        )
