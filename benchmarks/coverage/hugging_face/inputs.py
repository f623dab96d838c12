"""Inputs that a model of transformers may take, by the arguments of its forward; the first that works is used."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

BATCH, TOKENS = 2, 12
#: Ordinary tokens: none of the special ones of shrunk configurations.
FIRST_TOKEN, LAST_TOKEN = 5, 90


def token_ids(length: int = TOKENS) -> Tensor:
    """Two rows of ordinary tokens."""
    return torch.randint(FIRST_TOKEN, LAST_TOKEN, (BATCH, length))


def pictures(config: Any, *middle: int) -> Tensor:
    """Two pictures of the size that a configuration, or its vision part, asks for."""
    vision = getattr(config, "vision_config", None) or config
    size = getattr(vision, "image_size", None) or getattr(config, "image_size", None) or 64
    sides = (size, size) if isinstance(size, int) else tuple(size)[-2:]
    channels = getattr(vision, "num_channels", None) or getattr(vision, "in_channels", None) or 3
    return torch.randn(BATCH, *middle, channels if isinstance(channels, int) else 3, *sides)


def candidates(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Inputs to try, from those that use most of the model to the simplest."""
    config: Any = model.config
    names = set(inspect.signature(model.forward).parameters)
    main = getattr(model, "main_input_name", "input_ids")
    decoder = {"decoder_input_ids": token_ids(8)} if "decoder_input_ids" in names else {}
    if "pixel_values" in names and main == "pixel_values":
        yield {"pixel_values": pictures(config), **decoder}
        yield {"pixel_values": pictures(config, getattr(config, "num_frames", 4))}
    if {"pixel_values", "input_ids"} <= names:
        yield {"input_ids": token_ids(), "pixel_values": pictures(config), "attention_mask": _seen()}
    if "pixel_values_videos" in names and main == "pixel_values_videos":
        yield {"pixel_values_videos": torch.randn(BATCH, 4, *pictures(config).shape[1:])}
    for name in ("input_features", "input_values"):
        if name in names:
            yield from ({name: sound, **decoder} for sound in _sounds(config))
    if "input_ids" in names:
        yield {"input_ids": token_ids(), **decoder}
        yield {"input_ids": token_ids(), "attention_mask": _seen(), **decoder}
        yield {"input_ids": token_ids(16), "bbox": torch.zeros(BATCH, 16, 4, dtype=torch.long)}
    if "inputs_embeds" in names:
        yield {"inputs_embeds": torch.randn(BATCH, TOKENS, getattr(config, "hidden_size", 64))}
    if "hidden_states" in names:
        yield {"hidden_states": torch.randn(BATCH, TOKENS, getattr(config, "hidden_size", 64))}


def _seen() -> Tensor:
    """A mask that hides nothing."""
    return torch.ones(BATCH, TOKENS, dtype=torch.long)


def _sounds(config: Any) -> Iterator[Tensor]:
    """Spectrograms either way round, and waves."""
    audio = getattr(config, "audio_config", None) or getattr(config, "encoder_config", None) or config
    bins = next((getattr(audio, name) for name in ("num_mel_bins", "n_mels", "input_dim") if hasattr(audio, name)), 80)
    length = 2 * getattr(audio, "max_source_positions", 64)
    yield torch.randn(BATCH, bins, length)
    yield torch.randn(BATCH, length, bins)
    yield torch.randn(BATCH, 4000)
    yield torch.randn(BATCH, 1, 4000)
    yield torch.randn(BATCH, getattr(audio, "max_length", 64), bins)
