"""RXNMapper, an ALBERT of chemical reactions (Schwaller and others 2021).

One of its heads was found to tell which atom of a product was which atom before. All layers have the same weights. Its
vocabulary is that of RXNFP.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import albert_sizes
from attnaudit.sources.atlas.checks import restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.folders import BERT_SPECIAL, write_model, write_tokenizer
from attnaudit.sources.atlas.rxnfp import KNOWN, REACTIONS, SMILES
from attnaudit.sources.weights import read_weights

_PACKAGE, _PLACE = "rxnmapper==0.4.3", "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
_WEIGHTS, _WORDS = "rxnmapper.bin", "rxnmapper-vocab.txt"


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights, tokens = read_weights(files[_WEIGHTS]), files[_WORDS].read_text("utf-8").split()
    config = {
        "architectures": ["AlbertForMaskedLM"],
        "model_type": "albert",
        **{"num_hidden_layers": 12, "num_attention_heads": 8, "hidden_act": "gelu"},
        **albert_sizes(weights, "albert."),
        **{"bos_token_id": tokens.index("[CLS]"), "eos_token_id": tokens.index("[SEP]")},
    }
    write_model(folder, config, weights)
    write_tokenizer(folder, tokens, BERT_SPECIAL, SMILES)
    return ()


RXNMAPPER = AtlasModel(
    name="rxnmapper",
    field="chemistry",
    architecture="ALBERT, 12 layers, 8 heads, width 256",
    licence="MIT",
    megabytes=3,
    files=(
        KnownFile(
            _WEIGHTS,
            "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
            (PackagePart(_PACKAGE, f"{_PLACE}/pytorch_model.bin"),),
        ),
        KnownFile(
            _WORDS,
            "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
            (PackagePart(_PACKAGE, f"{_PLACE}/vocab.txt"),),
        ),
    ),
    convert=convert,
    check=partial(restores, texts=KNOWN, least=0.8),
    texts=REACTIONS,
    reads="reactions as SMILES",
)
