"""Networks of timm from packages: whole numbers become weights, names become timm's, and random weights are noticed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas import timm_networks
from attnaudit.sources.atlas.deit_tiny import DEIT_TINY
from attnaudit.sources.atlas.dinov2_focus import DINOV2_FOCUS
from attnaudit.sources.atlas.timm_networks import build, timm_names, write_network
from attnaudit.sources.atlas.vit_base import VIT_BASE, dequantised
from tests.sources.atlas.archives import converted
from tests.sources.atlas.test_onnx_weights import FLOAT, onnx_file, raw, tensor

pytest.importorskip("timm")
WIDTH, LAYERS = 192, 12


def transformers_vit(generator: torch.Generator) -> dict[str, Tensor]:
    """The weights of a ViT as transformers names them, in the size of DeiT-Tiny."""

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator) * 0.02

    def module(name: str, *shape: int) -> dict[str, Tensor]:
        return {f"{name}.weight": draw(*shape), f"{name}.bias": draw(shape[0])}

    found = {
        "embeddings.cls_token": draw(1, 1, WIDTH),
        "embeddings.position_embeddings": draw(1, 197, WIDTH),
        **module("embeddings.patch_embeddings.projection", WIDTH, 3, 16, 16),
        **module("layernorm", WIDTH),
    }
    for layer in range(LAYERS):
        base = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            found |= module(f"{base}.attention.attention.{name}", WIDTH, WIDTH)
        found |= module(f"{base}.attention.output.dense", WIDTH, WIDTH)
        found |= module(f"{base}.intermediate.dense", 4 * WIDTH, WIDTH)
        found |= module(f"{base}.output.dense", WIDTH, 4 * WIDTH)
        found |= module(f"{base}.layernorm_before", WIDTH)
        found |= module(f"{base}.layernorm_after", WIDTH)
    return found


def test_whole_numbers_become_scale_times_distance_from_the_zero_point() -> None:
    stored = {
        "weight": torch.tensor([-128, 0, 3, 127], dtype=torch.int8),
        "weight_scale": torch.tensor(0.5),
        "weight_zero_point": torch.tensor(3, dtype=torch.int32),
    }
    found = dequantised(stored)
    assert list(found) == ["weight"]
    assert found["weight"].tolist() == [-65.5, -1.5, 0.0, 62.0]


def test_a_vit_of_8_bits_becomes_timms_network_with_the_same_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnaudit.sources.atlas.vit_base._ARCHITECTURE", "deit_tiny_patch16_224")
    source = torch.Generator().manual_seed(0)
    values = {f"vit.{name}": own for name, own in transformers_vit(source).items()}
    values |= {"classifier.weight": torch.randn(1000, WIDTH, generator=source), "classifier.bias": torch.zeros(1000)}
    stored: dict[str, Tensor] = {}
    for name, own in values.items():
        scale = max(float(own.abs().max()), 1e-6) / 100
        stored[name] = (own / scale).round().to(torch.int8)
        stored[f"{name}_scale"], stored[f"{name}_zero_point"] = torch.tensor(scale), torch.tensor(0, dtype=torch.int32)
    folder = converted(VIT_BASE, {VIT_BASE.files[0].name: save(stored)}, tmp_path)
    network = build(folder, None)
    blocks = dict(network.named_parameters())
    keys = blocks["blocks.3.attn.qkv.weight"][WIDTH : 2 * WIDTH]
    expected = dequantised(stored)["vit.encoder.layer.3.attention.attention.key.weight"]
    assert torch.equal(keys, expected)
    assert network(torch.zeros(1, 3, 224, 224)).shape == (1, 1000)
    with pytest.raises(WeightsError, match="of ImageNet's classes, but a trained model for one of"):
        VIT_BASE.check(folder)


def test_layer_scales_and_norms_of_dinov2_have_timms_names() -> None:
    layer = "encoder.layer.1"
    names = ("query", "key", "value")
    weights = {
        f"{layer}.attention.attention.{name}.bias": torch.full((2,), float(place)) for place, name in enumerate(names)
    }
    weights |= {f"{layer}.layer_scale1.lambda1": torch.ones(2), f"{layer}.norm2.bias": torch.zeros(2)}
    found = timm_names(weights)
    assert found["blocks.1.attn.qkv.bias"].tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]
    assert sorted(found) == ["blocks.1.attn.qkv.bias", "blocks.1.ls1.gamma", "blocks.1.norm2.bias"]


def test_an_untrained_classifier_is_noticed(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    weights = timm_networks.the_timm().create_model("deit_tiny_patch16_224").state_dict()
    write_network("deit_tiny_patch16_224", weights, tmp_path)
    with pytest.raises(WeightsError, match=r"It takes .* for number \d+ of ImageNet's classes"):
        DEIT_TINY.check(tmp_path)


def test_positions_of_dinov2_are_interpolated_for_our_size_and_an_untrained_one_is_not_drawn_to_faces(
    tmp_path: Path,
) -> None:
    network = DINOV2_FOCUS.build
    assert network is not None
    (tmp_path / "config.json").write_text(
        json.dumps({"architecture": "vit_small_patch14_dinov2", "size": 224, "widths": [384, 256, 128, 64]})
    )
    torch.manual_seed(0)
    untrained = network(tmp_path, 0).state_dict()
    parts = []
    positions = torch.linspace(0, 1, 37)[None, :, None].expand(37, 37, 384).reshape(1, 1369, 384).contiguous()
    for name, own in transformers_dinov2(untrained).items():
        parts.append((5, tensor(name, list(own.shape), FLOAT, raw(own.contiguous()))))
    parts.append((5, tensor("onnx::Concat_1957", [1, 1, 384], FLOAT, raw(torch.ones(1, 1, 384)))))
    parts.append((5, tensor("onnx::Reshape_1962", [1, 1369, 384], FLOAT, raw(positions))))
    (tmp_path / "onnx").mkdir()
    content = onnx_file(tmp_path / "onnx", *parts).read_bytes()
    (tmp_path / "made").mkdir()
    folder = converted(DINOV2_FOCUS, {DINOV2_FOCUS.files[0].name: content}, tmp_path / "made")
    made = network(folder, None)
    found = made.get_parameter("backbone.pos_embed")
    assert found.shape == (1, 257, 384)
    assert torch.equal(found[0, 0], torch.ones(384))
    columns = found[0, 1:, 0].reshape(16, 16)
    assert torch.allclose(columns[0], torch.linspace(0.5 / 16, 15.5 / 16, 16), atol=0.02), "left to right"
    assert torch.equal(
        made.get_parameter("backbone.blocks.5.attn.qkv.weight"), untrained["backbone.blocks.5.attn.qkv.weight"]
    )
    pytest.importorskip("skimage")
    with pytest.raises(WeightsError, match="It is not drawn to what"):
        DINOV2_FOCUS.check(folder)


def transformers_dinov2(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Weights of timm's network as the ONNX file names them, without positions."""
    renamed = {
        "ls1.gamma": "layer_scale1.lambda1",
        "ls2.gamma": "layer_scale2.lambda1",
        "attn.proj": "attention.output.dense",
    }
    found: dict[str, Tensor] = {}
    for name, own in weights.items():
        if name.startswith("decoder."):
            if not name.endswith("num_batches_tracked"):
                found[name] = own
        elif ".attn.qkv." in name:
            base, kind = name.replace("blocks", "encoder.layer").split(".attn.qkv.")
            for part, share in zip(("query", "key", "value"), own.chunk(3), strict=True):
                found[f"{base}.attention.attention.{part}.{kind}"] = share
        elif "blocks" in name:
            changed = name.replace("blocks", "encoder.layer")
            for ours, theirs in renamed.items():
                changed = changed.replace(ours, theirs)
            found[changed] = own
        elif "pos_embed" not in name:
            for ours, theirs in (
                ("backbone.cls_token", "backbone.embeddings.cls_token"),
                ("backbone.patch_embed.proj", "backbone.embeddings.patch_embeddings.projection"),
                ("backbone.norm", "backbone.layernorm"),
            ):
                name = name.replace(ours, theirs)
            found[name] = own
    return found
