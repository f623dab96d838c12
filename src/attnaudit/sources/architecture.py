"""A small vision transformer in numbers, with any attention variant: what a recipe trains and a card describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from attnaudit.attention.layers import swappable_layers
from attnaudit.attention.standardisation import TokenStandardisation
from attnaudit.errors import ModelError, UsageError
from attnaudit.extras import optional
from attnaudit.sources.attention_choice import AttentionChoice
from attnaudit.sources.model import seeded


@dataclass(frozen=True)
class Architecture(AttentionChoice):
    """timm's VisionTransformer in numbers; the defaults are ViT-Tiny's width on images of 32 pixels.

    Which attention it has is an `AttentionChoice`.

    Args:
        image_size: pixels of a side.
        patch_size: pixels of a patch's side; an image has (image_size / patch_size)² + 1 tokens.
        width: channels of a token.
        depth: number of blocks.
        heads: attention heads of a block.
        classes: number of classes.
        drop_path: largest rate of stochastic depth, which grows linearly with depth.
        standardise: whether queries and keys are standardised per token in every pass.
        initialisation: timm's, or torch's defaults as the study has them.
    """

    image_size: int = 32
    patch_size: int = 2
    width: int = 192
    depth: int = 12
    heads: int = 3
    classes: int = 10
    drop_path: float = 0.0
    standardise: bool = False
    initialisation: Literal["timm", "torch"] = "timm"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.image_size < 1 or self.patch_size < 1 or self.image_size % self.patch_size:
            raise UsageError(f"Images of {self.image_size} pixels do not split into patches of {self.patch_size}.")
        if self.heads < 1 or self.width < 1 or self.width % self.heads:
            raise UsageError(f"A width of {self.width} does not split into {self.heads} heads.")
        if not 0 <= self.drop_path < 1:
            raise UsageError(f"drop_path is a rate below 1, not {self.drop_path:g}.")
        if self.depth < 1 or self.classes < 2:
            raise UsageError(f"A classifier has a block and two classes at least, not {self.depth} and {self.classes}.")

    @property
    def tokens(self) -> int:
        """Patches, and the class token."""
        return (self.image_size // self.patch_size) ** 2 + 1


def build(architecture: Architecture, seed: int) -> nn.Module:
    """The network in evaluation mode, initialised from a seed."""
    vision = optional("timm.models.vision_transformer", "timm", "A vision transformer")
    with seeded(seed):
        model: nn.Module = vision.VisionTransformer(
            img_size=architecture.image_size,
            patch_size=architecture.patch_size,
            embed_dim=architecture.width,
            depth=architecture.depth,
            num_heads=architecture.heads,
            num_classes=architecture.classes,
            drop_path_rate=architecture.drop_path,
        )
        if architecture.initialisation == "torch":
            _initialise_as_torch(model)
        architecture.put_into(model, architecture.tokens)
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
            raise ModelError(f"{layer.names[0]} has no place to standardise queries and keys in.")
        for name in names:
            setattr(layer.module, name, TokenStandardisation())
