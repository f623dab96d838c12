"""Sapiens, two RoBERTas of human antibodies, of heavy and of light chains (Prihoda and others 2022).

Their files are those of fairseq, where a network has the same parts under other names. They also hold the options of
the training run, an `argparse.Namespace`.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from attnaudit.sources.atlas.antiberty import TRASTUZUMAB
from attnaudit.sources.atlas.bert_sizes import bert_sizes
from attnaudit.sources.atlas.checks import restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import write_model, write_tokenizer
from attnaudit.sources.weights import read_weights

_SPECIAL = {
    **{"cls_token": "<s>", "pad_token": "<pad>", "sep_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"},
    **{"bos_token": "<s>", "eos_token": "</s>"},
}
_TOKENS = ("<s>", "<pad>", "</s>", "<unk>", *"ACDEFGHIKLMNPQRSTVWY", "<mask>")
#: What fairseq calls the parts of RoBERTa, in the order in which names are replaced.
_NAMES = {
    "decoder.sentence_encoder.embed_tokens.": "roberta.embeddings.word_embeddings.",
    "decoder.sentence_encoder.embed_positions.": "roberta.embeddings.position_embeddings.",
    "decoder.sentence_encoder.emb_layer_norm.": "roberta.embeddings.LayerNorm.",
    "decoder.sentence_encoder.layers.": "roberta.encoder.layer.",
    ".self_attn.q_proj.": ".attention.self.query.",
    ".self_attn.k_proj.": ".attention.self.key.",
    ".self_attn.v_proj.": ".attention.self.value.",
    ".self_attn.out_proj.": ".attention.output.dense.",
    ".self_attn_layer_norm.": ".attention.output.LayerNorm.",
    ".fc1.": ".intermediate.dense.",
    ".fc2.": ".output.dense.",
    ".final_layer_norm.": ".output.LayerNorm.",
    "decoder.lm_head.weight": "lm_head.decoder.weight",
    "decoder.lm_head.": "lm_head.",
}


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    (file,) = files.values()
    weights = renamed(read_weights(file, plain=(argparse.Namespace,)))
    width = weights["roberta.embeddings.LayerNorm.weight"].shape
    weights["roberta.embeddings.token_type_embeddings.weight"] = torch.zeros(1, *width)  # fairseq has none
    config = {
        "architectures": ["RobertaForMaskedLM"],
        "model_type": "roberta",
        **bert_sizes(weights, "roberta."),
        **{"num_attention_heads": 8, "layer_norm_eps": 1e-5},
        **{"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2},
    }
    write_model(folder, config, weights)
    write_tokenizer(folder, _TOKENS, _SPECIAL)
    return ()


def renamed(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of fairseq under the names of transformers."""

    def name(own: str) -> str:
        for theirs, ours in _NAMES.items():
            own = own.replace(theirs, ours)
        return own

    return {name(own): tensor for own, tensor in weights.items()}


def _sapiens(chain: str, kind: str, sha256: str, known: str) -> AtlasModel:
    return AtlasModel(
        name=f"sapiens-{chain}",
        field="proteins",
        architecture="RoBERTa, 4 layers, 8 heads, width 128",
        licence="MIT",
        megabytes=7,
        files=(
            KnownFile(
                f"sapiens-{chain}.pt",
                sha256,
                (PackagePart("sapiens==1.0.5", f"sapiens/models/v1/checkpoint_{chain}.pt"),),
            ),
        ),
        convert=convert,
        check=partial(restores, texts=(known,), least=0.7),
        texts=resource_texts(f"antibody_{kind}_chains.txt"),
        reads=f"antibody {kind} chains",
    )


SAPIENS_VH = _sapiens("vh", "heavy", "43254666e9ac0d5aa8fc120f12ac02b6ff082cd1f107c389023c1b947f214825", TRASTUZUMAB[0])
SAPIENS_VL = _sapiens("vl", "light", "570a63a6bdd60750c2cc2d280a419c300fafff8ab83f343f8e3847fd07903f6e", TRASTUZUMAB[1])
