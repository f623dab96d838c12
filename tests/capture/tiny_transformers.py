"""Tiny transformers models with random weights, and the attention matrices they return themselves."""

import torch
import transformers

from tests.capture.labels import scrambled

PLAIN = {
    "vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40,
    "max_position_embeddings": 64, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
GROUPED = PLAIN | {"num_key_value_heads": 2, "head_dim": 8}
GPT2 = {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "bos_token_id": 1,
        "eos_token_id": 2, "scale_attn_by_inverse_layer_idx": True}  # fmt: skip
FALCON = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "bos_token_id": 1,
          "eos_token_id": 2, "new_decoder_architecture": False, "multi_query": True}  # fmt: skip
IMAGE = {"image_size": 32, "patch_size": 4, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SWIN = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2], "num_heads": [2], "window_size": 4}
DEBERTA = PLAIN | {"type_vocab_size": 0, "position_biased_input": False}

#: Of each kind, the arguments of its configuration. What follows a space tells kinds of one model type apart.
CONFIGS = {
    "bert": PLAIN,
    "gpt2": GPT2,
    "gpt2 upcast": GPT2 | {"reorder_and_upcast_attn": True},
    "llama": GROUPED,
    "qwen3": GROUPED,
    "opt": PLAIN | {"word_embed_proj_dim": 32, "ffn_dim": 40},
    "gpt_neox": PLAIN,
    "bloom": {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": FALCON,
    "falcon alibi": FALCON | {"alibi": True},
    "falcon new": FALCON | {"new_decoder_architecture": True, "num_kv_heads": 2},
    "xlnet": {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 40},
    "deberta-v2": DEBERTA,
    "deberta-v2 relative": DEBERTA
    | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "max_relative_positions": 16},
    "t5": {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 40, "num_layers": 2, "num_heads": 4},
    "bart": {
        "vocab_size": 99, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 40, "decoder_ffn_dim": 40, "max_position_embeddings": 64,
    },
    "gpt_oss": GROUPED
    | {
        "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4,
        "layer_types": ["sliding_attention", "full_attention"],
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    },
    "llama4_text": GROUPED
    | {
        "intermediate_size_mlp": 40, "num_local_experts": 2, "num_experts_per_tok": 1, "interleave_moe_layer_step": 2,
        "attention_chunk_size": 4, "layer_types": ["chunked_attention", "full_attention"],
    },
    "gemma2": GROUPED | {"sliding_window": 4, "attn_logit_softcapping": 2.0, "query_pre_attn_scalar": 8},
    "mixtral": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
    "deepseek_v3": PLAIN
    | {
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
        "num_key_value_heads": 4, "first_k_dense_replace": 1, "moe_intermediate_size": 16, "n_routed_experts": 4,
        "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1,
    },
    "vit": IMAGE | {"patch_size": 8, "intermediate_size": 40},
    "swin": SWIN,
    "swinv2": SWIN | {"pretrained_window_sizes": [0]},
    "sam_vision_model": IMAGE | {"window_size": 4, "global_attn_indexes": [1], "mlp_dim": 40, "output_channels": 8},
    "vitdet": IMAGE | {"window_size": 4, "window_block_indices": [0], "use_relative_position_embeddings": True},
    "hiera": {
        "image_size": [32, 32], "patch_size": [7, 7], "patch_stride": [4, 4], "patch_padding": [3, 3], "embed_dim": 16,
        "depths": [1, 1, 1], "num_heads": [2, 2, 4], "embed_dim_multiplier": 2, "num_query_pool": 2,
        "query_stride": [2, 2], "masked_unit_size": [4, 4], "masked_unit_attention": [True, True, False],
    },
    "longformer": PLAIN | {"attention_window": 4},
}  # fmt: skip

#: Falcon's ALiBi is added twice by its eager code and once by the other, so that the two are different models.
EAGER_ONLY = (
    "gpt2 upcast", "bloom", "falcon alibi", "xlnet", "deberta-v2", "deberta-v2 relative", "gpt_oss", "gemma2",
    "swinv2", "vitdet", "hiera", "longformer",
)  # fmt: skip
BOTH_WAYS = tuple(kind for kind in CONFIGS if kind not in EAGER_ONLY)
IMAGES = ("vit", "swin", "swinv2", "sam_vision_model", "vitdet", "hiera")


def build(kind, way="eager"):
    """A model of this kind with `eager` or `sdpa` attention; the same weights either way."""
    name = kind.split(" ")[0]
    if name == "sam_vision_model":
        config, model_class = transformers.SamVisionConfig(**CONFIGS[kind]), transformers.SamVisionModel
    else:
        config, model_class = transformers.AutoConfig.for_model(name, **CONFIGS[kind]), None
    config._attn_implementation = way
    torch.manual_seed(0)
    return scrambled(transformers.AutoModel.from_config(config) if model_class is None else model_class(config))


def batch(kind, real=None):
    """Two inputs: images, or texts of nine tokens (five for the decoder) of which those in `real` are no padding."""
    generator = torch.Generator().manual_seed(0)
    if kind in IMAGES:
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
    inputs = {"input_ids": torch.randint(5, 90, (2, 9), generator=generator)}
    if real is not None:
        inputs["attention_mask"] = real.long()
    if kind in ("t5", "bart"):
        inputs["decoder_input_ids"] = torch.randint(5, 90, (2, 5), generator=generator)
    return inputs


def returned_attention(kind, inputs):
    """The matrices that the eager model returns, in the order the layers run: (inputs, windows, heads, queries, keys).

    Swin returns only those of the last block of a stage; None stands for the others.
    """
    with torch.no_grad():
        outputs = build(kind)(**inputs, output_attentions=True)
    if kind in ("t5", "bart"):
        pairs = zip(outputs.decoder_attentions, outputs.cross_attentions, strict=True)
        return [a[:, None] for a in outputs.encoder_attentions] + [a[:, None] for pair in pairs for a in pair]
    if kind in ("swin", "swinv2"):
        return [None, *(a.unflatten(0, (2, -1)) for a in outputs.attentions)]
    if kind == "sam_vision_model":  # inputs, windows and heads share one axis
        return [a.unflatten(0, (2, -1, 4)) for a in outputs.attentions]
    if kind == "vitdet":
        return [a.unflatten(0, (2, -1)) for a in outputs.attentions]
    if kind == "hiera":
        return [a.transpose(1, 2) for a in outputs.attentions]
    return [a[:, None] for a in outputs.attentions]
