"""Models of x-transformers, one for each option of its attention."""

from __future__ import annotations

from typing import Any

import torch
from benchmarks.coverage.case import Case, Inputs
from torch import nn

#: Options of the attention layers of a decoder.
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "flash": {"attn_flash": True},
    "rotary": {"rotary_pos_emb": True},
    "rotary xpos": {"rotary_pos_emb": True, "rotary_xpos": True},
    "polar": {"polar_pos_emb": True},
    "alibi": {"alibi_pos_bias": True, "alibi_num_heads": 2},
    "t5 bias": {"rel_pos_bias": True},
    "dynamic bias": {"dynamic_pos_bias": True},
    "relative projected bias": {"attn_use_rel_proj_pos_bias": True},
    "talking heads before": {"attn_pre_talking_heads": True},
    "talking heads after": {"attn_post_talking_heads": True},
    "talking heads before and after": {"attn_pre_talking_heads": True, "attn_post_talking_heads": True},
    "pre-scale post talking heads": {"attn_pre_scale_post_talking_heads": True},
    "residual attention": {"residual_attn": True},
    "CoPE": {"attn_use_cope": True},
    "CoPE talking heads": {"attn_use_cope": True, "attn_cope_talking_heads": True},
    "multi-query": {"attn_one_kv_head": True},
    "multi-query flash": {"attn_one_kv_head": True, "attn_flash": True},
    "grouped-query": {"attn_kv_heads": 2},
    "qk-norm": {"attn_qk_norm": True},
    "qk-norm groups": {"attn_qk_norm": True, "attn_qk_norm_groups": 4},
    "qk-rmsnorm": {"attn_qk_rmsnorm": True},
    "memory keys and values": {"attn_num_mem_kv": 4},
    "zero keys and values": {"attn_add_zero_kv": True},
    "learned sink": {"attn_head_learned_sink": True},
    "softclamp": {"attn_softclamp_logits": True},
    "sparse top-k": {"attn_sparse_topk": 4},
    "head scale": {"attn_head_scale": True},
    "on attention": {"attn_on_attn": True},
    "gated values": {"attn_gate_values": True},
    "gated value heads": {"attn_gate_value_heads": True},
    "hard": {"attn_hard": True},
    "window": {"attn_max_attend_past": 4},
    "l2 distance": {"attn_l2_distance": True},
    "sigmoid": {"attn_sigmoid": True},
    "gumbel softmax": {"attn_gumbel_softmax": True},
    "selective": {"attn_selective": True},
    "cog signed": {"attn_cog_signed": True},
    "data-dependent alibi": {"attn_data_dependent_alibi": True},
    "laser": {"attn_laser": True},
    "latent queries": {"attn_use_latent_q": True, "attn_dim_latent_q": 32},
    "latent keys and values": {"attn_use_latent_kv": True, "attn_dim_latent_kv": 32},
    "value residual": {"add_value_residual": True},
    "value dimension": {"attn_value_dim_head": 8},
    "orthogonal values": {"attn_orthog_projected_values": True},
    "inverted": {"attn_inverted_attention": True},
    "shifted tokens": {"shift_tokens": 1},
    "sandwich norm": {"sandwich_norm": True},
    "tied layers": {"weight_tie_layers": True},
    "hyper-connections": {"num_residual_streams": 2},
    "aggregated residuals": {"attn_aggregated_residuals": True},
}


class XTransformers:
    """x-transformers' attention, by option."""

    name = "x-transformers"
    packages = ("x_transformers", "einops", "einx")
    distribution = "x-transformers"

    def cases(self) -> list[Case]:
        """Every option of a decoder, and an encoder, an encoder–decoder and a vision transformer."""
        models = [*OPTIONS, "encoder", "encoder–decoder", "vision"]
        return [Case(self.name, model, "its own") for model in models]

    def build(self, case: Case) -> tuple[nn.Module, Inputs]:
        """Two layers of four heads."""
        from x_transformers import Decoder, Encoder, TransformerWrapper, ViTransformerWrapper, XTransformer

        size = {"dim": 64, "depth": 2, "heads": 4, "attn_dim_head": 16}
        tokens = torch.randint(0, 99, (2, 12))
        if case.model == "vision":
            layers = Encoder(**size)
            model: nn.Module = ViTransformerWrapper(image_size=64, patch_size=8, num_classes=3, attn_layers=layers)
            return model.eval(), torch.randn(2, 3, 64, 64)
        if case.model == "encoder–decoder":
            width = size.pop("dim")
            sides = {f"{side}_{name}": value for side in ("enc", "dec") for name, value in size.items()}
            lengths = {"enc_num_tokens": 99, "enc_max_seq_len": 16, "dec_num_tokens": 99, "dec_max_seq_len": 16}
            return XTransformer(dim=width, **sides, **lengths).eval(), (tokens, tokens.flip(1))
        layers = Encoder(**size) if case.model == "encoder" else Decoder(**size, **OPTIONS[case.model])
        return TransformerWrapper(num_tokens=99, max_seq_len=16, attn_layers=layers).eval(), tokens
