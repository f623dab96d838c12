"""Vision transformers of torchvision."""

from __future__ import annotations

import torch
from benchmarks.coverage.case import Case, Inputs
from torch import nn

#: Models that are built by name, and the shape of one input.
MODELS: dict[str, tuple[int, ...]] = {
    "maxvit_t": (3, 224, 224),
    "swin3d_t": (3, 4, 64, 64),
    "swin_t": (3, 112, 112),
    "swin_v2_t": (3, 128, 128),
    "vit_b_32": (3, 224, 224),
}
#: Models for videos that would take minutes in the size that has a name.
VIDEO_MODELS = ("mvit_v1", "mvit_v2")


class Torchvision:
    """torchvision's models."""

    name = "torchvision"
    packages = ("torchvision",)
    distribution = "torchvision"

    def cases(self) -> list[Case]:
        """Every model; torchvision has one implementation of attention each."""
        return [Case(self.name, model, "its own") for model in (*MODELS, *VIDEO_MODELS)]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """The model with random weights."""
        from torchvision.models import get_model

        if case.model in VIDEO_MODELS:
            return _mvit(second=case.model == "mvit_v2"), torch.randn(2, 3, 4, 64, 64)
        return get_model(case.model, weights=None).eval(), torch.randn(2, *MODELS[case.model])


def _mvit(second: bool) -> nn.Module:
    """Three blocks, the second of which halves the picture; version 2 adds relative positions to the scores."""
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    blocks = [
        MSBlockConfig(1, 32, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 4, 4]),
        MSBlockConfig(2, 32, 64, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 2, 2]),
        MSBlockConfig(2, 64, 64, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
    ]
    return MViT(
        spatial_size=(64, 64),
        temporal_size=4,
        block_setting=blocks,
        residual_pool=second,
        residual_with_cls_embed=not second,
        rel_pos_embed=second,
        proj_after_attn=second,
        num_classes=3,
    ).eval()
