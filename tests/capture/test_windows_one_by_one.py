"""Windows that a layer attends in one after the other are windows of one layer; a second run is a layer of its own."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from attnaudit.capture import capture

HEADS, DIM, TOKENS = 2, 4, 12
X = torch.randn(2, TOKENS, HEADS * DIM, generator=torch.Generator().manual_seed(0))


class Windows(nn.Module):
    """Attention in windows of these lengths: one at a time, or all at once where they are equally long."""

    def __init__(self, lengths, way="split heads"):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.lengths, self.way = nn.Linear(HEADS * DIM, 3 * HEADS * DIM), lengths, way

    def attend(self, x):
        return self.heads(*self.parts(x))

    def parts(self, x):
        return [part.unflatten(-1, (HEADS, DIM)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1)]

    def heads(self, q, k, v):
        q = q * torch.linspace(1, 2, q.shape[2])[:, None]  # a position: no projection is what made them any more
        k = k * torch.linspace(1, 2, k.shape[2])[:, None]
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)

    def forward(self, x):
        if self.way == "split heads":
            parts = zip(*(part.split(self.lengths, 2) for part in self.parts(x)), strict=True)
            return torch.cat([self.heads(*own) for own in parts], 1)
        if self.way == "split tokens":
            return torch.cat([self.attend(own) for own in x.split(self.lengths, 1)], 1)
        if self.way == "inputs too":
            return torch.cat([
                torch.cat([self.attend(own) for own in one.split(self.lengths, 1)], 1) for one in x.split(1)
            ])  # fmt: skip
        whole = x.unflatten(1, (len(self.lengths), -1)).flatten(0, 1)
        return self.attend(whole).unflatten(0, (len(x), -1)).flatten(1, 2)


def by_head(result):
    """Queries, keys, values and outputs of every head."""
    return {
        entry[1:]: [part[place] for part in (heads.query, heads.key, heads.value, heads.output)]
        for heads in result.layers
        for place, entry in enumerate(heads.index)
    }


@pytest.mark.parametrize("way", ["split heads", "split tokens", "inputs too"])
def test_windows_one_by_one_are_those_of_one_layer(way):
    lengths = [4, 4, 4]
    result, whole = capture(Windows(lengths, way), X), capture(Windows(lengths, "at once"), X)
    assert set(result.layer_names) == {"Windows"}
    assert result.traits["Windows"].heads == HEADS
    ours, theirs = by_head(result), by_head(whole)
    assert len(ours) == sum(map(len, result.layers)) == 2 * 3 * HEADS
    assert ours.keys() == theirs.keys()
    for head, parts in ours.items():
        for part, other in zip(parts, theirs[head], strict=True):
            torch.testing.assert_close(part, other, atol=1e-6, rtol=1e-5)


def test_windows_of_other_lengths_are_counted_on():
    result = capture(Windows([5, 5, 2]), X)
    assert set(result.layer_names) == {"Windows"}
    assert [(heads.tokens, {entry.window for entry in heads.index}) for heads in result.layers] == [
        (5, {0}), (5, {1}), (2, {2}),
    ]  # fmt: skip


@pytest.mark.parametrize("way", ["split heads", "split tokens"])
def test_a_second_run_of_the_module_is_a_layer_of_its_own(way):
    layer = Windows([6, 6], way)
    result = capture(nn.Sequential(layer, nn.LayerNorm(HEADS * DIM), layer), X)
    assert list(dict.fromkeys(result.layer_names)) == ["0", "0'"]
    assert len(by_head(result)) == 2 * 2 * 2 * HEADS


class Chunks(Windows):
    """Queries in chunks, which all look at the same keys."""

    def forward(self, x):
        q, k, v = self.parts(x)
        return torch.cat([self.heads(own, k, v) for own in q.split(self.lengths, 2)], 1)


def test_chunks_of_queries_that_share_their_keys_are_no_windows():
    result = capture(Chunks([6, 6]), X)
    assert list(dict.fromkeys(result.layer_names)) == ["Chunks", "Chunks'"]


class TwoInOne(nn.Module):
    """Two layers that are no modules: the second one reads the tokens, or what the first one made of them."""

    def __init__(self, depends):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second, self.depends = Windows([TOKENS]), Windows([TOKENS]), depends

    def forward(self, x):
        made = Windows.attend(self.first, x)
        return made + Windows.attend(self.second, made if self.depends else x)


@pytest.mark.parametrize("depends", [True, False])
def test_layers_in_one_module_that_attend_to_the_same_tokens_stay_apart(depends):
    result = capture(TwoInOne(depends), X)
    assert list(dict.fromkeys(result.layer_names)) == ["TwoInOne", "TwoInOne'"]


class EncoderDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = TwoInOne(depends=False).children()

    def forward(self, encoded, decoded):
        return self.first.attend(encoded).sum() + self.second.attend(decoded)


def test_layers_in_one_module_of_different_inputs_stay_apart():
    result = capture(EncoderDecoder(), (X, X.flip(1)))
    assert list(dict.fromkeys(result.layer_names)) == ["EncoderDecoder", "EncoderDecoder'"]


def test_windows_of_qwens_vision_are_one_layer():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    size = {"hidden_size": 32, "intermediate_size": 40}
    vision = size | {
        "depth": 2, "num_heads": 4, "window_size": 16, "patch_size": 4, "spatial_merge_size": 2, "out_hidden_size": 32,
        "fullatt_block_indexes": [1], "temporal_patch_size": 1,
    }  # fmt: skip
    config = transformers.models.qwen2_5_vl.configuration_qwen2_5_vl.Qwen2_5_VLVisionConfig(**vision)
    model = transformers.models.qwen2_5_vl.modeling_qwen2_5_vl.Qwen2_5_VisionTransformerPretrainedModel(config)

    class Tower(nn.Module):
        def __init__(self):
            super().__init__()
            self.vision = model

        def forward(self, patches):
            return self.vision(patches[0], torch.tensor([[1, 8, 8]]))[0]

    result = capture(Tower(), torch.randn(1, 64, 48))
    assert list(dict.fromkeys(result.layer_names)) == ["vision.blocks.0.attn", "vision.blocks.1.attn"]
    assert sorted(head[2:] for head in by_head(result) if head[1] == 0) == [
        (head, window) for head in range(4) for window in range(4)
    ]
    assert len(by_head(result)) == 4 * 4 + 4
