"""Models of timm, with and without its fused attention."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.coverage.case import Case, Inputs
from torch import nn

#: The smallest model of every family with attention; `@224` is another image size than the one chosen.
_NAMES = """
aimv2_large_patch14_224 beit3_base_patch16_224 beit_base_patch16_224 beitv2_base_patch16_224 botnet26t_256
caformer_s18 cait_xxs24_224 coat_lite_tiny coat_tiny coatnet_nano_cc_224 coatnet_pico_rw_224 coatnet_0_224
coatnet_rmlp_nano_rw_224 coatnext_nano_rw_224 convit_tiny cpubone_nano cpubone_b0_bfrobust crossvit_9_240
crossvit_9_dagger_240 crossvit_tiny_240 csatv2 davit_tiny deepseek_vit_412m deepseek_vit_412m_align
deit3_small_patch16_224 deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 eca_botnext26ts_256 eca_halonext26ts
edgenext_xx_small edgenext_small_rw efficientformer_l1 efficientformerv2_s0 efficientvit_b0 efficientvit_l1
efficientvit_m0 efficientvim_m1 eva02_tiny_patch14_224 eva02_base_patch16_clip_224 eva_giant_patch14_224
eva_large_patch14_196 fastvit_sa12 fastvit_mci0 flexivit_small gcvit_xxtiny gcresnet33ts gemma4_vit_167m
gemma4_vit_167m_enc halo2botnet50ts_256 halonet26t halonet_h1 haloregnetz_b hiera_tiny_224 hiera_small_abswin_256
hieradet_small iformer_t iformer_l lambda_resnet26rpt_256 lambda_resnet26t lamhalobotnet50ts_256 levit_128s
levit_256d levit_384_s8 levit_conv_128s levit_conv_256d lowformer_b0 lowformer_e1 maxvit_pico_rw_256
maxvit_rmlp_pico_rw_256 maxvit_tiny_tf_224 maxvit_tiny_pm_256 maxxvit_rmlp_nano_rw_256 maxxvitv2_nano_rw_256
mobilenetv4_hybrid_medium mobilenetv4_hybrid_large mobilenetv5_300m mobilenetv5_base mobilevit_xxs mobilevitv2_050
mvitv2_tiny mvitv2_small_cls naflexvit_base_patch16_gap naflexvit_base_patch16_map naflexvit_base_patch16_parfac_gap
naflexvit_base_patch16_siglip nest_tiny nest_tiny_jx nextvit_small pit_ti_224 pit_ti_distilled_224 poolformer_s12
pvt_v2_b0 pvt_v2_b2_li qwen3_vit_88m qwen3_vit_88m_merge regnetz_d8 repvit_m1 resnest14d resnet50_clip
resnet50x4_clip sam2_hiera_tiny samvit_base_patch16_224 samvit_base_patch16 sebotnet33ts_256 sehalonet33ts shvit_s1
skresnet18 swiftformer_xs swin_tiny_patch4_window7_224 swin_s3_tiny_224 swinv2_cr_tiny_224 swinv2_cr_tiny_ns_224
swinv2_tiny_window8_256 test_vit test_vit2 test_vit3 test_vit4 tiny_vit_5m_224 tnt_s_legacy_patch16_224
tnt_s_patch16_224 twins_pcpvt_small twins_svt_small visformer_tiny vit_base_mci_224 vit_base_patch16_rpn_224
vit_base_patch16_siglip_224 vit_base_patch16_xp_224 vit_base_patch16_clip_quickgelu_224 vit_base_patch16_18x2_224
vit_betwixt_patch16_rope_reg4_gap_256 vit_dlittle_patch16_reg1_gap_256 vit_dpwee_patch16_reg1_gap_256
vit_intern300m_patch14_448 vit_medium_patch16_gap_240 vit_mediumd_patch16_reg4_gap_256 vit_pe_core_tiny_patch16_384
vit_pe_lang_large_patch14_448 vit_pe_spatial_tiny_patch16_512 vit_pwee_patch16_reg1_gap_256
vit_relpos_base_patch32_plus_rpn_256 vit_relpos_small_patch16_224 vit_relpos_medium_patch16_cls_224
vit_small_patch14_dinov2 vit_small_patch14_reg4_dinov2 vit_small_patch16_dinov3 vit_small_patch16_lingbot
vit_small_patch16_rope_ape_224 vit_small_patch16_rope_mixed_224 vit_small_r26_s32_224 vit_base_patch16_sapiens2
vit_so150m_patch16_reg4_map_256 vit_srelpos_small_patch16_224 vit_tiny_patch16_224 vit_tiny_r_s16_p8_224
vit_wee_patch16_reg1_gap_256 vitamin_small_224 vitamin_large2_224 volo_d1_224 xcit_nano_12_p16_224
xcit_nano_12_p16_224@224
"""
MODELS = _NAMES.split()
#: What makes models smaller where their constructors allow it, the best first.
SMALLER: tuple[dict[str, Any], ...] = (
    {"depth": 2, "img_size": 128},
    {"depth": 2, "img_size": 112},
    {"depth": 2, "img_size": 96},
    {"depth": 2},
    {"depths": (2, 2, 2, 2)},
    {"depths": (2, 2, 2)},
    {"depth": (1, 1, 2)},
    {"stages": (1, 1, 1, 1), "img_size": 256},
    {},
)


class Timm:
    """timm's models."""

    name = "timm"
    packages = ("timm",)
    distribution = "timm"

    def cases(self) -> list[Case]:
        """Every model twice."""
        import timm

        known = set(timm.list_models())
        models = [model for model in MODELS if model.split("@")[0] in known]
        return [Case(self.name, model, way) for model in models for way in ("fused", "unfused")]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """The model with few blocks."""
        import timm.layers

        timm.layers.set_fused_attn(case.implementation == "fused")
        name, _, size = case.model.partition("@")
        for settings in SMALLER:
            try:
                model = timm.create_model(name, num_classes=3, **settings).eval()
                side = int(size) if size else settings.get("img_size") or model.default_cfg["input_size"][1]
                shape = (3, side, side)
                inputs = torch.randn(2, *shape)
                with torch.no_grad():
                    model(inputs)
            except Exception:  # this model has no such setting
                if not settings:
                    raise
                continue
            return model, inputs
        raise AssertionError
