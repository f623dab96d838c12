"""Models of open_clip: pictures and captions."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.coverage.case import Case, Inputs
from torch import nn

#: One model of every kind of image and text tower that needs no files from the network.
MODELS = (
    "ViT-S-32", "ViT-S-32-alt", "ViT-B-32-quickgelu", "ViT-B-16-SigLIP", "coca_ViT-B-32", "RN50", "convnext_tiny",
    "ViTamin-S", "EVA02-B-16", "PE-Core-T-16-384", "MobileCLIP2-S0", "vit_relpos_medium_patch16_cls_224",
    "swin_base_patch4_window7_224", "ViT-H-14-CLIPA",
)  # fmt: skip


class OpenClip:
    """open_clip's models."""

    name = "open_clip"
    packages = ("open_clip", "ftfy")
    distribution = "open_clip_torch"

    def cases(self) -> list[Case]:
        """Every model; open_clip has one implementation of attention each."""
        return [Case(self.name, model, "its own") for model in MODELS]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """The model with two layers in each tower, where the tower is open_clip's own."""
        import open_clip

        config: dict[str, Any] = open_clip.get_model_config(case.model)
        vision, text = config["vision_cfg"], config["text_cfg"]
        vision.pop("timm_model_pretrained", None)
        if isinstance(vision.get("layers"), int):
            vision["layers"] = 2
        if isinstance(text.get("layers"), int):
            text["layers"] = 2
        for tower in (vision, text, config.get("multimodal_cfg", {})):
            if isinstance(tower.get("layers"), int):
                tower["layers"] = 2
        kind = (
            open_clip.CoCa
            if "multimodal_cfg" in config
            else (
                open_clip.CustomTextCLIP
                if config.pop("custom_text", False) or "hf_model_name" in text
                else open_clip.CLIP
            )
        )
        config.pop("custom_text", None)
        model = kind(**config).eval()
        size = vision.get("image_size", 224)
        length = text.get("context_length", 77)
        captions = torch.randint(1, 400, (2, length))
        return model, (torch.randn(2, 3, size, size), captions)
