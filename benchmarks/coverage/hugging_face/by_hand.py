"""Settings and inputs of the models for which the general rules do not do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from benchmarks.coverage.hugging_face.inputs import BATCH, TOKENS, pictures, token_ids

Inputs = Callable[[Any], dict[str, Any]]


@dataclass(frozen=True)
class Hand:
    """Settings that replace the shrunk ones (nested as configurations are), and a function from these to inputs."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    inputs: Inputs | None = None


def _series(config: Any) -> dict[str, Any]:
    """A past and a future of a series, with one feature of time."""
    past = config.context_length + max(config.lags_sequence)
    return {
        "past_values": torch.randn(BATCH, past),
        "past_time_features": torch.randn(BATCH, past, 1),
        "past_observed_mask": torch.ones(BATCH, past),
        "future_values": torch.randn(BATCH, config.prediction_length),
        "future_time_features": torch.randn(BATCH, config.prediction_length, 1),
    }


def _grid(name: str) -> Inputs:
    """Two pictures of 4 x 4 patches, their patches in one row after the other."""

    def inputs(config: Any) -> dict[str, Any]:
        patch, time = config.patch_size, getattr(config, "temporal_patch_size", 1)
        channels = getattr(config, "in_channels", None) or getattr(config, "num_channels", 3)
        width = channels * time * patch * patch
        return {
            "grid_thw": torch.tensor([[1, 4, 4]] * BATCH),
            name: torch.randn(16 * BATCH, width),
        }

    return inputs


def _pair(config: Any) -> dict[str, Any]:
    return {"pixel_values": torch.randn(BATCH, 2, 3, 80, 80)}


def _spectrogram(config: Any) -> dict[str, Any]:
    audio = getattr(config, "audio_config", config)
    return {
        "input_ids": token_ids(),
        "input_features": torch.randn(BATCH, 1, 256, audio.num_mel_bins),
        "is_longer": torch.tensor([[False], [False]]),
    }


_SERIES = Hand({"prediction_length": 6, "context_length": 12, "num_time_features": 1}, _series)
_SWIN = Hand({"embed_dim": 48, "image_size": 128, "window_size": 4, "depths": (2, 2, 2, 2)})
_MAMBA = {"num_hidden_layers": 2, "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_chunk_size": 8}
_HIDDEN_GRID, _PIXEL_GRID = Hand({}, _grid("hidden_states")), Hand({}, _grid("pixel_values"))

BY_HAND: dict[str, Hand] = {
    "deberta": Hand({"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "deberta-v2": Hand({"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8}),
    "autoformer": _SERIES,
    "informer": _SERIES,
    "time_series_transformer": _SERIES,
    "patchtst": Hand({}, lambda config: {"past_values": torch.randn(BATCH, config.context_length, 1)}),
    "timesfm": Hand({}, lambda config: {"past_values": torch.randn(BATCH, 128),
                                        "past_values_padding": torch.zeros(BATCH, 128),
                                        "freq": torch.zeros(BATCH, 1, dtype=torch.long)}),
    "timesfm2_5": Hand({}, lambda config: {"past_values": torch.randn(BATCH, 128)}),
    "decision_transformer": Hand({}, lambda config: {
        "states": torch.randn(BATCH, 5, config.state_dim), "actions": torch.randn(BATCH, 5, config.act_dim),
        "rewards": torch.randn(BATCH, 5, 1), "returns_to_go": torch.randn(BATCH, 5, 1),
        "timesteps": torch.arange(5).expand(BATCH, 5), "attention_mask": torch.ones(BATCH, 5)}),
    "clap": Hand({"audio_config": {"patch_embeds_hidden_size": 48, "depths": (1, 1, 1, 1)}}, _spectrogram),
    "esm": Hand({"vocab_size": 99, "mask_token_id": 98, "pad_token_id": 1, "position_embedding_type": "rotary"}),
    "gpt_neo": Hand({"num_layers": 2, "attention_types": [[["global", "local"], 1]], "window_size": 4}),
    "perceiver": Hand({"d_latents": 64, "num_self_attends_per_block": 2, "num_latents": 6, "d_model": 64},
                      lambda config: {"inputs": torch.randn(BATCH, TOKENS, config.d_model)}),
    "bamba": Hand({**_MAMBA, "attn_layer_indices": [1]}),
    "granitemoehybrid": Hand({**_MAMBA, "layer_types": ["linear_attention", "full_attention"]}),
    "jamba": Hand({"num_hidden_layers": 2, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 8}),
    "nemotron_h": Hand({"mamba_num_heads": 8, "mamba_head_dim": 16, "n_groups": 2, "chunk_size": 8,
                        "ssm_state_size": 16}),
    "zamba": Hand({"num_hidden_layers": 2, "layers_block_type": ["linear_attention", "hybrid"],
                   "attention_hidden_size": 128, "attention_head_dim": 32, "mamba_dt_rank": 8}),
    "zamba2": Hand({"num_hidden_layers": 2, "layers_block_type": ["linear_attention", "hybrid"], "n_mamba_heads": 4,
                    "chunk_size": 8, "mamba_d_state": 16, "adapter_rank": 8}),
    "lxmert": Hand({"visual_feat_dim": 32}, lambda config: {
        "input_ids": token_ids(), "visual_feats": torch.randn(BATCH, 6, 32), "visual_pos": torch.rand(BATCH, 6, 4)}),
    "lightglue": Hand({}, _pair),
    "superglue": Hand({}, _pair),
    "pix2struct": Hand({}, lambda config: {
        "flattened_patches": torch.cat([torch.arange(1, 10).float().expand(BATCH, 2, 9).mT.contiguous(),
                                        torch.randn(BATCH, 9, config.vision_config.patch_embed_hidden_size)], -1),
        "decoder_input_ids": token_ids(6)}),
    "reformer": Hand({"hidden_size": 64, "axial_pos_embds_dim": (32, 32), "axial_pos_shape": (4, 16),
                      "attn_layers": ("local", "lsh"), "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8,
                      "attention_head_size": 16, "num_buckets": 2, "max_position_embeddings": 64},
                     lambda config: {"input_ids": token_ids(64)}),
    "swin": _SWIN,
    "swinv2": _SWIN,
    "swin2sr": Hand({"embed_dim": 48, "depths": (2, 2), "num_heads": (3, 3), "image_size": 32, "window_size": 4}),
    "maskformer-swin": _SWIN,
    "donut-swin": _SWIN,
    "speecht5": Hand({"conv_dim": (32,) * 7}, lambda config: {
        "input_values": torch.randn(BATCH, 12, config.hidden_size),
        "decoder_input_values": torch.randn(BATCH, 8, config.hidden_size)}),
    "xmod": Hand({"default_language": "en_XX", "languages": ("en_XX",)}),
    "siglip2_vision_model": Hand({"num_patches": 16}, lambda config: {
        "pixel_values": torch.randn(BATCH, 16, 3 * config.patch_size**2),
        "pixel_attention_mask": torch.ones(BATCH, 16, dtype=torch.long),
        "spatial_shapes": torch.tensor([[4, 4]] * BATCH)}),
    "siglip2": Hand({"vision_config": {"num_patches": 16}}, lambda config: {
        "input_ids": token_ids(), "pixel_values": torch.randn(BATCH, 16, 3 * config.vision_config.patch_size**2),
        "pixel_attention_mask": torch.ones(BATCH, 16, dtype=torch.long),
        "spatial_shapes": torch.tensor([[4, 4]] * BATCH)}),
    "xclip": Hand({}, lambda config: {"input_ids": token_ids(), "pixel_values": pictures(config, 4)}),
    "seggpt": Hand({"image_size": (64, 32), "pretrain_image_size": 32}, lambda config: {
        "pixel_values": torch.randn(BATCH, 3, 32, 32), "prompt_pixel_values": torch.randn(BATCH, 3, 32, 32),
        "prompt_masks": torch.randn(BATCH, 3, 32, 32)}),
    "wav2vec2-bert": Hand({}, lambda config: {
        "input_features": torch.randn(BATCH, 24, config.feature_projection_input_dim)}),
    "udop": Hand({}, lambda config: {"input_ids": token_ids(), "bbox": torch.zeros(BATCH, TOKENS, 4),
                                     "decoder_input_ids": token_ids(8)}),
    "idefics": Hand({"additional_vocab_size": 0, "vision_config": {"image_size": 32, "patch_size": 8}},
                    lambda config: {"input_ids": token_ids(), "pixel_values": pictures(config, 1),
                                    "image_attention_mask": torch.ones(BATCH, TOKENS, 1, dtype=torch.long),
                                    "attention_mask": torch.ones(BATCH, TOKENS, dtype=torch.long)}),
    "layoutlmv3": Hand({"coordinate_size": 8, "shape_size": 16, "input_size": 32, "patch_size": 8}, lambda config: {
        "input_ids": token_ids(), "bbox": torch.zeros(BATCH, TOKENS, 4, dtype=torch.long),
        "pixel_values": torch.randn(BATCH, 3, 32, 32)}),
    "lilt": Hand({"hidden_size": 48, "channel_shrink_ratio": 4}, lambda config: {
        "input_ids": token_ids(), "bbox": torch.zeros(BATCH, TOKENS, 4, dtype=torch.long)}),
    "sam": Hand({"vision_config": {"output_channels": 64, "window_size": 3, "global_attn_indexes": (1,)}},
                lambda config: {"pixel_values": torch.randn(BATCH, 3, 64, 64),
                                "input_points": torch.rand(BATCH, 1, 2, 2) * 32}),
    "vits": Hand({"vocab_size": 99}),
    "kosmos-2": Hand({"latent_query_num": 4}, lambda config: {
        "pixel_values": pictures(config), "input_ids": token_ids(),
        "image_embeds_position_mask": torch.tensor([[0] * 2 + [1] * 4 + [0] * 6] * BATCH)}),
    **{f"{name}_vision": _HIDDEN_GRID for name in (
        "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp", "glm4v",
        "glm4v_moe", "glm_ocr", "exaone4_5", "cohere_compass", "glm5_next")},
    **{f"{name}_vision": _PIXEL_GRID for name in ("glm_image", "cosmos3_edge", "muse_glimmer", "muse_spark")},
    **{name: Hand({"head_dim": 16}) for name in ("ministral", "hunyuan_v1_dense", "hunyuan_v1_moe", "nemotron")},
}  # fmt: skip
