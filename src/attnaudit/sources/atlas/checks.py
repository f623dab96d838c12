"""Checks that a converted model is the trained one: it must say what only a trained one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.hf_library import quiet, the_library


def language_model(folder: Path) -> tuple[Any, Any]:
    """The model of a folder with its head, and its tokenizer."""
    transformers = the_library()
    with quiet(transformers):
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True)
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
