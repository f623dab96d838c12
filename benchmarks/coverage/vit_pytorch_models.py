"""Models of vit-pytorch, one from each of its files."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import torch
from benchmarks.coverage.case import Case, Inputs
from torch import nn

#: Settings that many of its models share; a model is given those that it takes.
COMMON: dict[str, Any] = {
    "image_size": 64, "patch_size": 8, "num_classes": 3, "dim": 64, "depth": 2, "heads": 4, "mlp_dim": 64,
    "dim_head": 16, "channels": 3, "image_patch_size": 16, "frames": 4, "frame_patch_size": 2, "max_frames": 4,
    "spatial_depth": 1, "temporal_depth": 1, "cls_depth": 1, "seq_len": 64,
}  # fmt: skip
_VIDEO, _SERIES, _PICTURE = (3, 4, 64, 64), (3, 64), (3, 64, 64)
_STAGES = {"dim": (16, 32, 64, 128), "depth": (1, 1, 1, 1), "num_classes": 3}
#: The class in each file, its own settings, and the shape of an input.
MODELS: dict[str, tuple[str, dict[str, Any], tuple[int, ...]]] = {
    "ats_vit": ("ViT", {"max_tokens_per_depth": (32, 16)}, _PICTURE),
    "attn_residual_with_dca_simple_vit": ("SimpleViT", {}, _PICTURE),
    "cait": ("CaiT", {}, _PICTURE),
    "cct": ("CCT", {"img_size": 64, "embedding_dim": 64, "num_layers": 2, "num_heads": 4}, _PICTURE),
    "cross_vit": ("CrossViT", {"image_size": 48, "sm_dim": 32, "lg_dim": 64, "depth": 1, "lg_enc_depth": 1},
                  (3, 48, 48)),
    "crossformer": ("CrossFormer", {**_STAGES, "local_window_size": 7}, (3, 224, 224)),
    "cvt": ("CvT", {"s3_depth": 1}, _PICTURE),
    "deepvit": ("DeepViT", {}, _PICTURE),
    "jet_vit": ("JetViT", {"window_size": 4}, _PICTURE),
    "jumbo_vit": ("JumboViT", {}, _PICTURE),
    "learnable_memory_vit": ("ViT", {}, _PICTURE),
    "levit": ("LeViT", {"image_size": 128, "dim": (32, 48, 64), "depth": 1, "heads": (2, 3, 4), "mlp_mult": 2},
              (3, 128, 128)),
    "levjepa": ("VideoTransformer", {"patch_size": 16}, (4, 3, 64, 64)),
    "local_vit": ("LocalViT", {}, _PICTURE),
    "look_vit": ("LookViT", {"image_size": 48, "patch_size": 16, "highres_patch_size": 12}, (3, 48, 48)),
    "looped_vit": ("LoopedViT", {"pre_loop_depth": 1, "num_looped_blocks": 1, "post_loop_depth": 1, "loop_depth": 2},
                   _PICTURE),
    "max_vit": ("MaxViT", {"depth": (1, 1), "window_size": 4, "dim_conv_stem": 16}, _PICTURE),
    "max_vit_with_registers": ("MaxViT", {"depth": (1, 1), "window_size": 4, "dim_conv_stem": 16}, _PICTURE),
    "mobile_vit": ("MobileViT", {"dims": (32, 48, 64), "patch_size": (2, 2), "depths": (1, 1, 1),
                                 "channels": (8, 16, 16, 16, 16, 16, 16, 16, 16, 16, 32)}, _PICTURE),
    "mp3": ("ViT", {}, _PICTURE),
    "na_vit": ("NaViT", {}, _PICTURE),
    "na_vit_nested_tensor": ("NaViT", {}, _PICTURE),
    "nest": ("NesT", {"num_hierarchies": 2, "block_repeats": (1, 1)}, _PICTURE),
    "normalized_vit": ("nViT", {}, _PICTURE),
    "parallel_vit": ("ViT", {}, _PICTURE),
    "pit": ("PiT", {"depth": (1, 1)}, _PICTURE),
    "regionvit": ("RegionViT", {**_STAGES, "window_size": 7}, (3, 224, 224)),
    "rvt": ("RvT", {}, _PICTURE),
    "scalable_vit": ("ScalableViT", {"dim": 32, "depth": (1, 1, 1, 1), "heads": (1, 2, 4, 8),
                                     "reduction_factor": (8, 4, 2, 1), "window_size": (16, 8, None, None)}, _PICTURE),
    "sep_vit": ("SepViT", {"dim": 32, "depth": (1, 1, 1, 1), "heads": (1, 2, 4, 8), "window_size": 7}, (3, 224, 224)),
    "simple_flash_attn_vit": ("SimpleViT", {"use_flash": True}, _PICTURE),
    "simple_flash_attn_vit_3d": ("SimpleViT", {}, _VIDEO),
    "simple_uvit": ("SimpleUViT", {}, _PICTURE),
    "simple_vit": ("SimpleViT", {}, _PICTURE),
    "simple_vit_1d": ("SimpleViT", {}, _SERIES),
    "simple_vit_3d": ("SimpleViT", {}, _VIDEO),
    "simple_vit_attn_residual": ("SimpleViTAttnResidual", {}, _PICTURE),
    "simple_vit_orthog_residual_update": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_fft": ("SimpleViT", {"freq_patch_size": 8}, _PICTURE),
    "simple_vit_with_hyper_connections": ("SimpleViT", {"num_residual_streams": 2}, _PICTURE),
    "simple_vit_with_patch_dropout": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_qk_norm": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_register_tokens": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_relative_proj_pos_bias": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_sparse_gating": ("SimpleViTWithSparseGating", {}, _PICTURE),
    "simple_vit_with_specialized_cls": ("SimpleViT", {}, _PICTURE),
    "simple_vit_with_value_residual": ("SimpleViT", {}, _PICTURE),
    "t2t": ("T2TViT", {}, _PICTURE),
    "twins_svt": ("TwinsSVT", {"s3_depth": 1, "s4_depth": 1}, (3, 224, 224)),
    "vat_siglip": ("SigLIP", {}, _PICTURE),
    "vit": ("ViT", {}, _PICTURE),
    "vit_1d": ("ViT", {}, _SERIES),
    "vit_3d": ("ViT", {}, _VIDEO),
    "vit_5": ("ViT", {}, _PICTURE),
    "vit_detpool": ("ViTDetPool", {}, _PICTURE),
    "vit_for_small_dataset": ("ViT", {}, _PICTURE),
    "vit_nd": ("ViTND", {"ndim": 2, "input_shape": (64, 64)}, _PICTURE),
    "vit_nd_pope": ("ViTND", {"ndim": 2, "input_shape": (64, 64)}, _PICTURE),
    "vit_nd_rotary": ("ViTND", {"ndim": 2, "input_shape": (64, 64)}, _PICTURE),
    "vit_with_decorr": ("ViT", {}, _PICTURE),
    "vit_with_keel_post_ln": ("ViT", {}, _PICTURE),
    "vit_with_patch_dropout": ("ViT", {}, _PICTURE),
    "vit_with_patch_merger": ("ViT", {}, _PICTURE),
    "vivit": ("ViViT", {"variant": "factorized_encoder"}, _VIDEO),
    "vivit_with_moss": ("ViViT", {}, _VIDEO),
    "wwt": ("WWT", {"num_slots": 8}, _PICTURE),
    "xcit": ("XCiT", {}, _PICTURE),
}  # fmt: skip


class VitPytorch:
    """vit-pytorch's models."""

    name = "vit-pytorch"
    packages = ("vit_pytorch", "einops")
    distribution = "vit-pytorch"

    def cases(self) -> list[Case]:
        """Every file once."""
        return [Case(self.name, model, "its own") for model in MODELS]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """The model with the common settings that it takes, and its own."""
        name, own, shape = MODELS[case.model]
        kind = getattr(importlib.import_module(f"vit_pytorch.{case.model}"), name)
        takes = inspect.signature(kind.__init__).parameters
        open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())
        common = {} if open_ended else {key: value for key, value in COMMON.items() if key in takes}
        return kind(**{**common, **own}).eval(), torch.randn(2, *shape)
