"""Configs of BERT and its kin, under the names of transformers: sizes are what the shapes of their tensors tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor


def bert_config(weights: Mapping[str, Tensor], heads: int, *, masked: bool) -> dict[str, Any]:
    """The config of a BERT, with the head that guesses masked tokens (`masked`), or of its encoder alone."""
    return {
        "architectures": ["BertForMaskedLM" if masked else "BertModel"],
        "model_type": "bert",
        "num_attention_heads": heads,
        **bert_sizes(weights, "bert." if masked else ""),
    }


def bert_sizes(weights: Mapping[str, Tensor], prefix: str = "") -> dict[str, int]:
    """The sizes of a BERT, RoBERTa or ELECTRA whose names begin with `prefix`: all but the number of heads."""
    layers = [name for name in weights if name.startswith(f"{prefix}encoder.layer.") and name.endswith("query.weight")]
    inner, width = weights[f"{prefix}encoder.layer.0.intermediate.dense.weight"].shape
    return _embeddings(weights, prefix) | {
        "hidden_size": width,
        "intermediate_size": inner,
        "num_hidden_layers": len(layers),
    }


def albert_sizes(weights: Mapping[str, Tensor], prefix: str = "") -> dict[str, int]:
    """The sizes of an ALBERT whose layers are all the same: all but the numbers of layers and heads."""
    inner, width = weights[f"{prefix}encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"].shape
    alike = {"num_hidden_groups": 1, "inner_group_num": 1}
    return _embeddings(weights, prefix) | {"hidden_size": width, "intermediate_size": inner} | alike


def _embeddings(weights: Mapping[str, Tensor], prefix: str) -> dict[str, int]:
    words, width = weights[f"{prefix}embeddings.word_embeddings.weight"].shape
    return {
        "vocab_size": words,
        "embedding_size": width,  # which only ALBERT and ELECTRA read
        "max_position_embeddings": len(weights[f"{prefix}embeddings.position_embeddings.weight"]),
        "type_vocab_size": len(weights[f"{prefix}embeddings.token_type_embeddings.weight"]),
        "pad_token_id": 0,
    }
