"""Networks that segment, and fully attentional ones: shapes, closed forms, capture, swapped attention."""

import pytest
import torch

import attnaudit
from attnaudit.attention import swap
from attnaudit.errors import SettingError
from attnaudit.records.architecture import Architecture
from attnaudit.records.json_file import plain
from attnaudit.sources.fan import ChannelAttention
from attnaudit.sources.vision_transformer import build_vision_transformer

pytest.importorskip("timm")
SMALL = {"patch_size": 8, "width": 24, "depth": 2, "heads": 2}
SEGMENTS = Architecture(image_size=16, image_width=32, classes=3, decoder="linear", **SMALL)
FAN = Architecture(image_size=16, blocks="fan", **SMALL)


def images(architecture, count=2):
    return torch.randn(count, 3, *architecture.image_shape, generator=torch.Generator().manual_seed(0))


def test_every_pixel_has_a_score_for_every_class():
    model = build_vision_transformer(SEGMENTS, 0)
    assert SEGMENTS.tokens == 2 * 4 + 1
    assert model(images(SEGMENTS)).shape == (2, 16, 32, 3)


def test_patches_are_in_their_places():
    """The decoder alone, on patches whose first channel is their number: its scores at the middle of each patch."""
    model = build_vision_transformer(SEGMENTS, 0)
    tokens = torch.zeros(1, 9, 24)
    tokens[0, 1:, 0] = torch.arange(8.0)
    model.backbone.forward_features = lambda images: tokens
    with torch.no_grad():
        model.decoder.weight.copy_(torch.eye(24)[:3])
        found = model(images(SEGMENTS, 1))[0, :, :, 0]
    middles = found.unfold(0, 8, 8).unfold(1, 8, 8)[..., 3:5, 3:5].mean(dim=(2, 3))
    assert torch.equal(middles.round(), torch.arange(8.0).view(2, 4))  # beside others a little of them


@pytest.mark.parametrize("architecture", [SEGMENTS, FAN], ids=["segments", "fan"])
def test_attention_variants_are_installed_and_captured(architecture):
    chosen = {"attention": "rpc", "attention_layers": (0,), "other_attention": "symmetric"}
    model = build_vision_transformer(Architecture(**plain(architecture) | chosen), 0)
    found = attnaudit.capture(model, images(architecture))
    assert [name.rpartition("blocks")[2] for name in dict.fromkeys(found.layer_names)] == [".0.attn", ".1.attn"]
    assert found.certificate.worst < 1e-4


def test_token_attention_of_a_fan_is_captured_and_channel_attention_refused_by_name():
    found = attnaudit.capture(build_vision_transformer(FAN, 0), images(FAN))
    assert sorted(set(found.layer_names)) == ["blocks.0.attn", "blocks.1.attn"]
    assert [refusal.layer for refusal in found.refusals] == ["blocks.0.mlp", "blocks.1.mlp"]
    assert all("attends over channels instead of tokens" in refusal.reason for refusal in found.refusals)


@pytest.mark.parametrize("variant", ["symmetric", "rpc"])
def test_a_variant_is_swapped_into_the_token_mixer_of_a_fan_and_out_again(variant):
    model = build_vision_transformer(FAN, 0)
    before, channels = model(images(FAN)), [block.mlp for block in model.blocks]
    with swap(model, variant) as swapped:
        assert [layer.name for layer in swapped.layers] == ["blocks.0.attn", "blocks.1.attn"]
        assert [block.mlp for block in model.blocks] == channels
        assert not torch.allclose(model(images(FAN)), before)
    assert torch.equal(model(images(FAN)), before)


def test_channel_attention_is_its_formula():
    torch.manual_seed(0)
    layer, z = ChannelAttention(6, 12).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    with torch.no_grad():
        layer.temperature.fill_(1.7)
        found, values, queries = layer(z), layer.norm(layer.values(z)), layer.query(z)
    for b in range(2):
        mean = sum(torch.softmax(z[b, :, c], 0) for c in range(6)) / 6
        for c in range(6):
            weight = 1.7 * torch.sigmoid(torch.softmax(queries[b, :, c], 0) @ mean)
            torch.testing.assert_close(found[b, :, c], weight * values[b, :, c])


def test_channel_attention_does_not_know_the_order_of_tokens():
    layer, z = ChannelAttention(6, 12), torch.randn(1, 5, 6)
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(layer(z[:, order]), layer(z)[:, order])


def test_both_sides_must_split_into_patches():
    with pytest.raises(SettingError, match="images of 30 pixels do not split into patches of 8"):
        Architecture(image_size=16, image_width=30, **SMALL)


def test_an_architecture_without_what_is_new_is_stored_as_before():
    assert not {"image_width", "blocks", "decoder"} & plain(Architecture()).keys()
    assert plain(SEGMENTS)["decoder"] == "linear"
    assert plain(FAN)["blocks"] == "fan"
