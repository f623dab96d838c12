"""Make a small configuration of any model, by the names of its settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

WIDTH, HEADS, KEY_HEADS, HEAD_DIM, LAYERS, VOCABULARY = 64, 4, 2, 16, 2, 160

Rule = Callable[[Any], Any]


def _at_most(limit: int) -> Rule:
    """Numbers, or every number of a list, are cut to the limit."""

    def cut(value: Any) -> Any:
        if isinstance(value, int):
            return min(value, limit)
        return type(value)(cut(entry) for entry in value) if isinstance(value, (list, tuple)) else value

    return cut


def _number(limit: int) -> Rule:
    """Only numbers are cut: the widths of stages belong together."""
    return lambda value: min(value, limit) if isinstance(value, int) else value


def _image(value: Any) -> Any:
    """Some 64 pixels, and a multiple of the patches of 14 and 16 pixels and of the strides of stages."""
    if isinstance(value, (list, tuple)):
        return type(value)(_image(side) for side in value)
    return value if value <= 64 else 56 if value % 14 == 0 and value % 16 else 64


#: The first rule whose pattern matches the end of a setting's name.
RULES: tuple[tuple[str, Rule], ...] = (
    (r"num_kv_shared_layers", lambda value: 0),
    (r"first_k_dense_replace|moe_layer_start_index|insert_layer_id", _number(1)),
    (r"depths|num_conv_layers|block_sizes|layers_per_block|encoder_num_layers", _at_most(2)),
    (r"num_feature_levels|feature_layers?|vision_layers|num_adapter_layers|num_residual_layers", lambda value: value),
    (r"layers|n_layer|depth|num_blocks|folding_trunk_num_hidden_layers", _number(LAYERS)),
    (r"linear_num_key_heads|mamba_num_key_heads", _number(KEY_HEADS)),
    (r"mamba_d_head|mamba_head_dim|mamba_headdim", _number(32)),
    (r"heads|n_head", _number(HEADS)),
    (r"head_dim|d_kv|dim_head|head_size|kv_channels|d_head|rotary_dim", _number(HEAD_DIM)),
    (r"lora_rank", _number(32)),
    (r"num_experts|routed_experts|local_experts|zero_expert_num|moe_num_experts", _at_most(4)),
    (r"experts_per_tok\w*|moe_topk|top_k|top_k_experts|moe_k", _at_most(2)),
    (r"n_group|topk_group", _number(1)),
    (r"(intermediate|ffn_hidden|ff_hidden)_(size|dim)|ffn_dim|d_ff|n_inner|mlp_dim|\w*feedforward\w*|d_inner|dff|dim_ff",
     _at_most(2 * WIDTH)),
    (r"hidden_size_per_layer_input", _number(16)),
    (r"vocab_size\w*|_vocab", _number(VOCABULARY)),
    (r"(hidden|embed|embedding|embeds_hidden|projection|projector\w*|encoder|decoder|bottleneck|ffn|output_hidden)_size"
     r"|d_model|n_embd|(hidden|embed|emb|embedding|projection|proj|output|projector\w*|encoder_hidden|project)_dim|dim",
     _number(WIDTH)),
    (r"patch_embed\w*_hidden_size", _number(WIDTH)),
    (r"position\w*|n_ctx|max_seq_len|rel_extent", _number(128)),
    (r"sliding_window|local_attention|attention_window|attention_chunk_size", _at_most(8)),
    (r"image_size", _image),
    (r"num_frames|frames_per_clip", _number(4)),
    (r"num_queries|query_num|num_query_tokens|num_latents|n_latents", _number(6)),
    (r"conv_dim|tdnn_dim", _at_most(32)),
    (r"index_topk", _number(4)),
    (r"encoder_hash_byte_group_vocab", _number(64)),
)  # fmt: skip


class Shrinking:
    """Shrinks a configuration and those inside it; the numbers of special tokens stay different from one another."""

    def __init__(self, key_heads: int = KEY_HEADS, sections: bool = False) -> None:
        """`key_heads` may be fewer than heads; `sections` sets the parts of a rotary embedding for several axes."""
        self._key_heads = key_heads
        self._sections = sections
        self._tokens: dict[int, int] = {}

    def config(self, config: Any, **overrides: Any) -> Any:
        """A small configuration of the same kind; `overrides` are settings given by hand."""
        kind, usual = type(config), type(config)()
        settings: dict[str, Any] = {}
        for name in _own_settings(config):
            value = config.__dict__.get(name)
            if hasattr(value, "to_diff_dict"):
                settings[name] = self.config(value, **overrides.pop(name, {}))
                continue
            small = self._setting(name, value)
            if small != usual.__dict__.get(name):
                settings[name] = small
        kinds = {} if overrides.keys() & {"layer_types", "layers_block_type"} else _one_layer_of_each_kind(config)
        return kind(**{**settings, **kinds, **overrides})

    def _setting(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, (bool, float, str)):
            return value
        if re.search(r"(key_value|kv)_heads$", name):
            return _number(self._key_heads)(value)
        if isinstance(value, Mapping):
            return self._rope(name, value) if "rope" in name else value
        if re.search(r"(token_id|token_index|_token|_id|_idx|_ids)$", name):
            return self._token(value)
        rule = next((rule for pattern, rule in RULES if re.search(rf"(^|_)({pattern})$", name)), None)
        return value if rule is None else rule(value)

    def _rope(self, key: str, value: Any) -> Any:
        """Parts of a rotary embedding must add up to half of a head."""
        if key == "mrope_section" and len(value) == 3:
            return [2, 3, 3]
        if not isinstance(value, dict):
            return value
        small = {inner: self._rope(inner, entry) for inner, entry in value.items()}
        return {**small, "mrope_section": [2, 3, 3]} if self._sections and "rope_type" in value else small

    def _token(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._token(entry) for entry in value]
        if not isinstance(value, int) or value < VOCABULARY - 60:
            return value
        return self._tokens.setdefault(value, VOCABULARY - 1 - len(self._tokens))


def _own_settings(config: Any) -> list[str]:
    """The settings that this kind of configuration adds to those of every one."""
    from transformers import PreTrainedConfig

    common = {field.name for field in fields(PreTrainedConfig)}
    return [field.name for field in fields(config) if field.name not in common]


def _one_layer_of_each_kind(config: Any) -> dict[str, Any]:
    """Settings for one layer of each kind that the configuration has, and at least two layers."""
    types = config.__dict__.get("layer_types")
    if not types or "num_hidden_layers" not in config.__dict__:
        return {}
    kinds = list(dict.fromkeys(types))
    kinds += kinds[:1] if len(kinds) == 1 else []
    return {"num_hidden_layers": len(kinds), "layer_types": kinds}
