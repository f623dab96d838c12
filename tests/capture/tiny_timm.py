"""Tiny timm models with random weights, one per way of writing attention."""

import torch
from timm.layers import set_fused_attn
from timm.models import (
    byobnet,
    davit,
    efficientvit_msra,
    hiera,
    levit,
    maxxvit,
    mobilenetv3,
    mvitv2,
    nest,
    shvit,
    swin_transformer,
    vision_transformer,
    xcit,
)
from timm.models._efficientnet_builder import decode_arch_def

from tests.capture.labels import scrambled

LEVIT = {"embed_dim": (16, 16), "key_dim": 4, "depth": (1, 1), "num_heads": (2, 2), "stem_type": "s8"}
XCIT = {"embed_dim": 32, "depth": 2, "num_heads": 2, "cls_attn_layers": 1}


def maxxvit_model(block, size):
    inside = maxxvit.MaxxVitTransformerCfg(dim_head=8, window_size=4, grid_size=4)
    config = maxxvit.MaxxVitCfg(
        embed_dim=(16, 16), depths=(1, 1), block_type=("C", block), stem_width=8, transformer_cfg=inside
    )
    return maxxvit.MaxxVit(config, img_size=size, num_classes=3)


def halonet():
    attention = {"block_size": 4, "halo_size": 1, "num_heads": 2}
    config = byobnet.ByoModelCfg(
        blocks=(
            byobnet.ByoBlockCfg("self_attn", d=1, c=16, s=1, gs=0, br=1.0),
            byobnet.ByoBlockCfg("self_attn", d=1, c=32, s=2, gs=0, br=1.0),
        ),
        stem_chs=8,
        stem_type="3x3",
        stem_pool="",
        self_attn_layer="halo",
        self_attn_kwargs=attention,
    )
    return byobnet.ByobNet(config, num_classes=3)


def mobilenetv4():
    blocks = [["cn_r1_k3_s2_e1_c16"], ["mqa_r1_k3_h4_s1_v2_d8_c16"], ["mqa_r1_k3_h4_s1_d8_c16"], ["cn_r1_k1_s1_c16"]]
    return mobilenetv3.MobileNetV3(decode_arch_def(blocks), num_classes=3, stem_size=8, num_features=16)


def mvit():
    config = mvitv2.MultiScaleVitCfg(
        depths=(1, 1), embed_dim=(16, 32), num_heads=(1, 2), stride_q=((1, 1), (2, 2)), stride_kv_adaptive=(2, 2)
    )
    return mvitv2.MultiScaleVit(config, img_size=32, num_classes=3)


def make(model_class, *args, **options):
    """How to build a model, later."""
    return lambda: model_class(*args, num_classes=3, **options)


#: By name: how to build it, and the size of its images.
MODELS = {
    "vit": (make(vision_transformer.VisionTransformer, 32, 8, embed_dim=16, depth=2, num_heads=2), 32),
    "efficientvit": (
        make(
            efficientvit_msra.EfficientVitMsra, 128, embed_dim=(16, 32), key_dim=(4, 4), depth=(1, 1),
            num_heads=(2, 2), window_size=(4, 4), kernels=(3, 3), down_ops=(("", 1), ("subsample", 2)),
        ),
        128,
    ),
    "shvit": (make(shvit.SHViT, embed_dim=(16, 16, 32), partial_dim=(4, 8, 8), qk_dim=(4,) * 3, depth=(1,) * 3), 64),
    "mobilenetv4": (mobilenetv4, 32),
    "levit": (make(levit.Levit, 32, **LEVIT), 32),
    "levit_conv": (make(levit.Levit, 32, use_conv=True, **LEVIT), 32),
    "coatnet": (lambda: maxxvit_model("T", 32), 32),
    "maxvit": (lambda: maxxvit_model("M", 64), 64),
    "mvitv2": (mvit, 32),
    "hiera": (
        make(
            hiera.Hiera, (32, 32), embed_dim=16, num_heads=2, stages=(1, 1, 2), q_pool=2, mask_unit_size=(4, 4),
            mask_unit_attn=(True, True, False),
        ),
        32,
    ),
    "nest": (make(nest.Nest, 32, num_levels=2, embed_dims=(16, 32), num_heads=(2, 4), depths=(1, 1)), 32),
    "halonet": (halonet, 32),
    "swin": (
        make(swin_transformer.SwinTransformer, 32, embed_dim=16, depths=(2, 2), num_heads=(2, 4), window_size=4),
        32,
    ),
    "davit": (make(davit.DaVit, depths=(1, 1), embed_dims=(16, 32), num_heads=(2, 4), window_size=4), 32),
    "xcit": (make(xcit.Xcit, 64, **XCIT), 64),  # as many tokens as a head has channels
    "xcit 128": (make(xcit.Xcit, 128, **XCIT), 128),
}  # fmt: skip

#: Those that call torch's fused attention, unless told otherwise.
FUSED = ("vit", "mobilenetv4", "coatnet", "maxvit", "hiera", "nest", "swin", "davit", "xcit", "xcit 128")
FORMS = [(name, fused) for name in MODELS for fused in ((True, False) if name in FUSED else (False,))]


def build(name, fused):
    """A model in evaluation mode with fused or unfused attention, and two images."""
    make, size = MODELS[name]
    set_fused_attn(fused)
    torch.manual_seed(0)
    try:
        model = scrambled(make())
    finally:
        set_fused_attn(True)
    return model, torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
