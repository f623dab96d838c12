"""GGUF files, the format of llama.cpp: transformers reads them, once, and the result is kept in the user's cache.

Their weights are usually quantised. They become float32 numbers, the same that other programs compute with; which
format they had is part of what is said of the model.
"""

from __future__ import annotations

import logging
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from attnaudit.display import readable
from attnaudit.errors import AttnAuditError, ModelError, WeightsError, first_line
from attnaudit.extras import optional
from attnaudit.records.engine import default_memory, format_size
from attnaudit.sources.gguf_header import GgufHeader, read_gguf_header
from attnaudit.sources.hf_checkpoints import checked
from attnaudit.sources.hf_configs import CONFIG, check_sizes
from attnaudit.sources.hf_library import quiet, the_library
from attnaudit.sources.model_cache import cached, converted, sha256_of

_log = logging.getLogger(__name__)
SUFFIX = ".gguf"
#: Tensors that are no part of the network without its head: the head itself, and tables that follow from the config.
_OUTSIDE = ("output.", "rope_freqs", "rope_factors")
#: The formats of which no digit is lost in float32.
_PLAIN = ("F32", "F16", "BF16")
#: What a tokenizer must make the same tokens of after it was written and read again.
_PROBE = "It costs 3.50 €,  or (maybe) naïve\n\tcode: x = y_1"


def find_gguf(place: Path) -> Path | None:
    """The GGUF file that is meant: the path itself, or the only one in a folder without `config.json`.

    Raises:
        ModelError: the file does not exist, or the folder has several.
    """
    if place.suffix == SUFFIX and not place.is_dir():
        if not place.is_file():
            raise ModelError(f"{place} does not exist.")
        return place
    found = sorted(place.glob(f"*{SUFFIX}")) if place.is_dir() and not (place / CONFIG).is_file() else []
    if len(found) > 1:
        raise ModelError(f"{place} has {len(found)} GGUF files: give the path of one, such as {found[0]}.")
    return found[0] if found else None


def gguf_folder(file: Path) -> Path:
    """The folder of a converted file; the first time it is converted, which takes up to minutes.

    Raises:
        MissingExtraError: a package that reads GGUF files is not installed.
        ModelError: transformers does not know the architecture, or it is too large for this machine.
        WeightsError: the file is damaged, or does not fit its own header.
    """
    header = read_gguf_header(file)
    key = f"gguf-{sha256_of(file)}"[:32]
    if cached(key) is None:
        _log.info("Converting %s for the first time (%s).", readable(str(file)), quantisation(header)[0])
    return converted(key, lambda folder: convert_gguf(file, folder))


def convert_gguf(file: Path, folder: Path) -> tuple[str, ...]:
    """Write config, weights in float32 and tokenizer into a folder; returns what there is to say of the weights."""
    transformers = the_library()
    for package in ("gguf", "accelerate"):
        optional(package, "gguf", "A GGUF file")
    header, name = read_gguf_header(file), readable(file.name)
    needed = 4 * sum(header.elements.values())
    if needed > default_memory():
        raise ModelError(f"{name} is too large for this machine: its parameters take {format_size(needed)}.")
    place = {"pretrained_model_name_or_path": file.parent, "gguf_file": file.name, "local_files_only": True}
    options: dict[str, Any] = {"dtype": torch.float32, "output_loading_info": True}
    if hasattr(transformers, "GgufConfig"):  # newer versions may keep weights quantised
        options["quantization_config"] = transformers.GgufConfig(gguf_file=file.name, dequantize=True)
    try:
        with quiet(transformers), redirect_stderr(StringIO()):  # the bar of its conversion cannot be turned off
            config = transformers.AutoConfig.from_pretrained(**place)
            check_sizes(config, name)
            tokenizer = _with_beginning(transformers.AutoTokenizer.from_pretrained(**place), header)
            module, info = transformers.AutoModel.from_pretrained(**place, **options)
    except AttnAuditError:
        raise
    except Exception as error:  # transformers raises whatever an odd file leads to
        raise ModelError(f"transformers cannot load {name} ({first_line(error)}).") from error
    notes = checked(module, info, name)
    _check_whole(module, header, name)
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if transformers.AutoTokenizer.from_pretrained(folder)(_PROBE)["input_ids"] != tokenizer(_PROBE)["input_ids"]:
        raise ModelError(f"The tokenizer of {name} cannot be kept by this version of transformers: use another one.")
    tensors = {key: tensor.detach().clone().contiguous() for key, tensor in module.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return (*quantisation(header), *notes)


def _with_beginning(tokenizer: Any, header: GgufHeader) -> Any:
    """The tokenizer, which puts the token for the beginning before every text if the file says so.

    transformers reads the token, but not whether it is used. Files of older SentencePiece models do not say it.
    """
    pieces = header.values.get("tokenizer.ggml.model") == "llama"
    if tokenizer.bos_token_id is not None and header.values.get("tokenizer.ggml.add_bos_token", pieces):
        tokenizer.add_bos_token = True
        if tokenizer("a")["input_ids"][:1] != [tokenizer.bos_token_id]:  # versions in which that does nothing
            from tokenizers.processors import TemplateProcessing

            tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
                single=f"{tokenizer.bos_token} $A", special_tokens=[(tokenizer.bos_token, tokenizer.bos_token_id)]
            )
    return tokenizer


def _check_whole(module: torch.nn.Module, header: GgufHeader, name: str) -> None:
    """Refuse a file of which a part would be left out: conversion moves numbers, but none comes or goes."""
    held = sum(tensor.elements for tensor in header.tensors if not tensor.name.startswith(_OUTSIDE))
    wanted = sum(parameter.numel() for parameter in module.parameters())
    if held != wanted:
        raise WeightsError(
            f"{name} has {held:,} numbers, but the network that transformers makes of it {wanted:,}: it would not be "
            "the same model."
        )


def quantisation(header: GgufHeader) -> tuple[str, ...]:
    """How the numbers of a file were stored, the most frequent format first."""
    gguf = optional("gguf", "gguf", "A GGUF file")
    total = sum(header.elements.values())
    names = [(_kind(gguf, kind), count / total) for kind, count in header.elements.most_common() if total]
    shares = ", ".join(f"{name} {share:.0%}" for name, share in names)
    lost = any(name not in _PLAIN for name, _ in names)
    return (f"its weights are quantised ({shares}) and were turned into float32" if lost else f"stored as {shares}",)


def _kind(gguf: Any, kind: int) -> str:
    try:
        return str(gguf.GGMLQuantizationType(kind).name)
    except ValueError:
        return f"format {kind}"
