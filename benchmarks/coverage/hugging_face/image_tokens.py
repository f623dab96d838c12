"""Texts with as many places for a picture as the model makes tokens of one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

_DIFFER = re.compile(r"tokens: (\d+),? .*?features:? (\d+)")
_NAMES = ("image_token_id", "image_token_index", "audio_token_id", "audio_token_index")


def with_image_tokens(model: nn.Module, inputs: Mapping[str, Any], message: str) -> dict[str, Any] | None:
    """The inputs with more tokens in front, if the model says how many it misses; None if it says something else."""
    config: Any = model.config
    found = _DIFFER.search(message)
    token = next((getattr(config, name) for name in _NAMES if isinstance(getattr(config, name, None), int)), None)
    if found is None or token is None or "input_ids" not in inputs:
        return None
    words = inputs["input_ids"]
    count = int(found[2]) // len(words)
    if not 0 < count <= 2000 or int((words == token).sum()):
        return None
    ids = torch.cat([torch.full((len(words), count), token), words], 1)
    masks = {"attention_mask": torch.ones_like(ids)} if "attention_mask" in inputs else {}
    return {**inputs, "input_ids": ids, **masks}
