"""Checks that a converted model is the trained one: it must say what only a trained one says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.hf_library import quiet, the_library


def language_model(folder: Path) -> tuple[Any, Any]:
    """The model of a folder with its head, and its tokenizer."""
    return loaded(folder, "AutoModelForCausalLM")


def loaded(folder: Path, kind: str) -> tuple[Any, Any]:
    """The model of a folder as one of the automatic classes of transformers, and its tokenizer."""
    transformers = the_library()
    with quiet(transformers):
        model = getattr(transformers, kind).from_pretrained(folder, local_files_only=True)
        return model.eval(), transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def continues(folder: Path, prompt: str, expected: str, tokens: int) -> None:
    """Check that the likeliest continuation of a prompt begins as expected.

    Raises:
        WeightsError: it does not.
    """
    model, tokenizer = language_model(folder)
    ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
    written = ids
    with torch.no_grad():
        for _ in range(tokens):
            written = torch.cat([written, model(written).logits[:, -1].argmax(-1, keepdim=True)], 1)
    found = tokenizer.decode(written[0, ids.shape[1] :]).strip()
    if not found.startswith(expected):
        raise WeightsError(f"It continues {prompt!r} with {found!r}, but the trained model with {expected!r}.")


def restores(folder: Path, texts: Sequence[str], least: float) -> None:
    """Check that the model guesses tokens from all others: each is masked in turn, alone.

    Raises:
        WeightsError: fewer than this share of the guesses are right.
    """
    model, tokenizer = loaded(folder, "AutoModelForMaskedLM")
    right = tokens = 0
    for text in texts:
        ids = tokenizer(text, return_tensors="pt")["input_ids"][0]
        places = torch.arange(1, len(ids) - 1)  # between the tokens that begin and end a text
        masked = ids.repeat(len(places), 1)
        masked[torch.arange(len(places)), places] = tokenizer.mask_token_id
        with torch.no_grad():
            guesses = model(masked).logits[torch.arange(len(places)), places].argmax(-1)
        right, tokens = right + int((guesses == ids[places]).sum()), tokens + len(places)
    if right < least * tokens:
        raise WeightsError(f"It guesses {right} of {tokens} masked tokens, but the trained model {least:.0%} or more.")


def pairs_up(folder: Path, texts: Sequence[str], of: str, *, first: bool = False) -> None:
    """Check that texts 2k and 2k + 1 are closer to each other than to all others, by the cosine of their vectors.

    The vector of a text is the mean over its tokens, or its first token.

    Raises:
        WeightsError: they are not.
    """
    units = torch.nn.functional.normalize(_vectors(folder, texts, first), dim=-1)
    nearest = (units @ units.T).fill_diagonal_(-torch.inf).argmax(-1)
    right = int((nearest == torch.arange(len(units)) ^ 1).sum())
    if right < len(units):
        raise WeightsError(f"It pairs {right} of {len(units)} {of}, but the trained model all of them.")


def _vectors(folder: Path, texts: Sequence[str], first: bool) -> Float[Tensor, "texts width"]:
    model, tokenizer = loaded(folder, "AutoModel")
    with torch.no_grad():
        hidden = [model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0] for text in texts]
    return torch.stack([own[0] if first else own.mean(0) for own in hidden])
