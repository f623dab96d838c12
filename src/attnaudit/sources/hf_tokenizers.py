"""Tokenizers of transformers: refused where there is none, and part of what a model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from attnaudit.errors import InputError, ModelError, first_line
from attnaudit.numerics.digest import content_digest, digest

_RULES, _PIECES = "tokenizer.json", "tokenizer.model"
#: Files that hold a vocabulary, whatever the tokenizer.
_VOCABULARIES = (_RULES, _PIECES)


def read_tokenizer(transformers: Any, place: str, name: str, **options: Any) -> Any:
    """The tokenizer of a folder or a hub id; transformers would invent an empty one where there is none.

    Raises:
        ModelError: there is no vocabulary, or it cannot be read.
    """
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(place, **options)
        files = {*_VOCABULARIES, *tokenizer.vocab_files_names.values()}
        missing = tokenizer.vocab_files_names and not any(find_file(transformers, place, file) for file in files)
        words = len(tokenizer)
    except Exception as error:  # transformers raises whatever its parsers do
        pieces = find_file(transformers, place, _PIECES) and not find_file(transformers, place, _RULES)
        hint = f": pip install sentencepiece protobuf to read {_PIECES}, or add its {_RULES}" if pieces else ""
        raise ModelError(f"The tokenizer of {name} cannot be read ({first_line(error)}){hint}.") from error
    if missing or words <= len(tokenizer.all_special_ids):
        known = ", ".join(sorted(files))
        raise ModelError(
            f"{name} has no tokenizer: add the files that it was trained with (one of {known}), or give token ids in "
            'Python, attnaudit.audit(module, {"input_ids": …}).'
        )
    return tokenizer


def find_file(transformers: Any, place: str, name: str, *, download: bool = False) -> Path | None:
    """A file of a folder, or of a hub id that was or may be downloaded; None if there is none."""
    found = transformers.utils.cached_file(
        place,
        name,
        local_files_only=not download,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else Path(found)


def tokenizer_fingerprint(tokenizer: Any) -> str:
    """A hash of vocabulary, rules and special tokens, as they were loaded."""
    parts = [
        type(tokenizer).__name__,
        {name: str(token) for name, token in tokenizer.special_tokens_map.items()},
        [tokenizer.padding_side, tokenizer.truncation_side, list(tokenizer.model_input_names)],
    ]
    rules = getattr(tokenizer, "backend_tokenizer", None)
    if rules is not None:
        return digest(parts, content_digest([rules.to_str().encode()]))
    files = [Path(str(getattr(tokenizer, name, None))) for name in sorted(tokenizer.vocab_files_names)]
    content = [content_digest([file.read_bytes()]) for file in files if file.is_file()]
    return digest(parts, sorted(tokenizer.get_vocab().items()), content)


def unknown_token(tokenizer: Any) -> int | None:
    """The number that stands for any word that is not in the vocabulary; None if every text can be written in tokens.

    Byte-level tokenizers have none, and some name a token for another use instead, such as the end of a text.
    """
    others = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    return None if tokenizer.unk_token_id in others else tokenizer.unk_token_id


def token_texts(tokenizer: Any, numbers: Sequence[int]) -> list[str]:
    """Every token as it stands in a text, or as the vocabulary writes it if that is nothing."""
    names = tokenizer.convert_ids_to_tokens(list(numbers))
    return [tokenizer.decode([number]) or str(name) for number, name in zip(numbers, names, strict=True)]


def tokenised(
    tokenizer: Any, texts: Sequence[str], length: int, *, words: int | None, name: str
) -> Mapping[str, Tensor]:
    """The token ids, truncated to `length` tokens and padded to the longest text.

    Raises:
        InputError: it gives numbers that none of the model's `words` has.
    """
    several = len(texts) > 1
    if several and tokenizer.pad_token is None:
        # Any token will do: padding is masked, and left out of the heads.
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
    batch = dict(tokenizer(list(texts), padding=several, truncation=True, max_length=length, return_tensors="pt"))
    largest = int(batch["input_ids"].max()) if batch["input_ids"].numel() else 0
    if words is not None and largest >= words:
        raise InputError(
            f"The tokenizer of {name} gives token {largest}, but the model has only {words} words: give the folder the "
            "tokenizer of its own model."
        )
    return batch


def with_decoder_inputs(batch: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """The batch of an encoder–decoder, whose decoder reads the same text as its encoder."""
    return {**batch, **{f"decoder_{name}": batch[name] for name in ("input_ids", "attention_mask") if name in batch}}
