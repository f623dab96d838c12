"""A small vision transformer, plain or fully attentional, that classifies or segments, with any attention variant."""

from __future__ import annotations

from torch import nn

from attnaudit.attention.layers import swappable_layers
from attnaudit.attention.standardisation import TokenStandardisation
from attnaudit.errors import ModelError
from attnaudit.numerics.randomness import seeded
from attnaudit.records.architecture import Architecture
from attnaudit.sources.attention import install_attention
from attnaudit.sources.fan import fan_arguments
from attnaudit.sources.segmentation_network import SegmentationNetwork
from attnaudit.sources.timm_library import timm_vision_transformer


def build_vision_transformer(architecture: Architecture, seed: int) -> nn.Module:
    """The network in evaluation mode, initialised from a seed."""
    vision = timm_vision_transformer()
    with seeded(seed):
        model: nn.Module = vision.VisionTransformer(
            img_size=architecture.image_shape,
            patch_size=architecture.patch_size,
            embed_dim=architecture.width,
            depth=architecture.depth,
            num_heads=architecture.heads,
            num_classes=0 if architecture.segments else architecture.classes,
            drop_path_rate=architecture.drop_path,
            **fan_arguments(architecture),
        )
        if architecture.segments:
            model = SegmentationNetwork(model, architecture)
        if architecture.initialisation == "torch":
            _initialise_as_torch(model)
        install_attention(model, architecture, architecture.tokens)
    if architecture.standardise:
        _standardise(model)
    return model.eval()


def _initialise_as_torch(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d | nn.LayerNorm):
            module.reset_parameters()


def _standardise(model: nn.Module) -> None:
    for layer in swappable_layers(model):
        names = [name for name in ("q_norm", "k_norm") if hasattr(layer.module, name)]
        if not names:
            raise ModelError(f"{layer.names[0]} cannot standardise queries and keys: it has no q_norm and k_norm.")
        for name in names:
            setattr(layer.module, name, TokenStandardisation())
