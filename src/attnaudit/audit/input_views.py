"""From a captured batch to the views of its inputs: their pictures or tokens, and all heads."""

from __future__ import annotations

import io
from collections.abc import Mapping

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from attnaudit.audit.head_views import Grid, first_windows, head_views, patch_grid
from attnaudit.capture import Capture
from attnaudit.display import readable
from attnaudit.errors import UsageError
from attnaudit.measures.pairs import MOST_TOKENS
from attnaudit.protocol import Protocol
from attnaudit.records.head_views import HeadView, InputView
from attnaudit.sources.inputs import Prepared
from attnaudit.sources.model import LoadedModel

#: The longer side of a picture in pixels, and the quality of its JPEG: a few kilobytes.
_PIXELS, _QUALITY = 160, 70
#: The most characters of a token that are kept.
_CHARACTERS = 40
_NO_HEADS = "it has no head of softmax attention"
_NOT_TOLD = "which tokens its heads have is not known, because the model leaves some of them out"


def input_views(captured: Capture, prepared: Prepared, model: LoadedModel, protocol: Protocol) -> list[InputView]:
    """One for every input of the batch.

    Raises:
        UsageError: its heads have too many tokens.
    """
    longest = max((layer.tokens for layer in captured.layers), default=0)
    if longest > MOST_TOKENS:
        raise UsageError(
            f"Maps are kept of heads with at most {MOST_TOKENS:,} tokens, and these have {longest:,}: leave "
            "--keep-maps out, or use shorter inputs."
        )
    found = []
    for place, name in enumerate(prepared.names):
        pixels = _pixels(prepared, place)
        grid: Grid = patch_grid(*pixels.shape[-2:]) if pixels is not None else _no_grid
        shown = [own for layer in captured.layers if (own := first_windows(layer, name)) is not None]
        heads = tuple(
            view for own in shown for view in head_views(own, grid, is_picture=pixels is not None, protocol=protocol)
        )
        tokens = None if pixels is not None else _tokens(prepared, place, model)
        fitting = tokens is None or all(head.tokens == len(tokens) for head in heads)
        note = _NO_HEADS if not heads else "" if fitting else _NOT_TOLD
        picture = None if pixels is None else _picture(pixels)
        found.append(InputView(model.label, name, picture, tokens if fitting else None, note, heads))
    return found


def _no_grid(tokens: int) -> None:
    return None


def bytes_of(view: HeadView) -> int:
    """What a head takes on a page, where numbers are text and bytes are base64."""
    kept = [rows for rows in (view.attention, view.block, view.columns) if rows is not None]
    numbers = len(view.eigenvalues) + len(view.cosines) + sum(2 * len(rows.low) for rows in kept)
    return 4 * sum(rows.codes.size for rows in kept) // 3 + 9 * numbers + 250


def _pixels(prepared: Prepared, place: int) -> Float[Tensor, "channels height width"] | None:
    """A picture as the model sees it; None if the inputs are none."""
    given = prepared.inputs
    if isinstance(given, Mapping):
        given = given.get("pixel_values")
    if given is None or given.dim() != 4 or given.shape[1] not in (1, 3) or not given.is_floating_point():
        return None
    return given[place]


def _picture(pixels: Float[Tensor, "channels height width"]) -> bytes:
    """A small JPEG. How a model normalises colours is its own affair: every channel is stretched to its full range."""
    channels = pixels.double().cpu()
    low, high = channels.amin(dim=(1, 2), keepdim=True), channels.amax(dim=(1, 2), keepdim=True)
    stretched = (255 * (channels - low) / (high - low).clamp_min(1e-9)).round().to(torch.uint8)
    array = np.ascontiguousarray(stretched.expand(3, -1, -1).permute(1, 2, 0).numpy())
    image = Image.fromarray(array)
    image.thumbnail((_PIXELS, _PIXELS), Image.Resampling.BICUBIC)
    content = io.BytesIO()
    image.save(content, "JPEG", quality=_QUALITY)
    return content.getvalue()


def _tokens(prepared: Prepared, place: int, model: LoadedModel) -> tuple[str, ...] | None:
    """The tokens of a text that are no padding, in words if the model has a tokenizer, else as numbers."""
    given = prepared.inputs
    batch = {"input_ids": given} if isinstance(given, Tensor) else given or {}
    ids, mask = batch.get("input_ids"), batch.get("attention_mask")
    if ids is None or ids.dim() != 2 or ids.is_floating_point():
        return None
    numbers = ids[place] if mask is None or prepared.keep_padding else ids[place][mask[place].bool()]
    listed = numbers.tolist()
    words = [f"#{number}" for number in listed] if model.token_texts is None else model.token_texts(listed)
    return tuple(readable(word.replace("\n", "⏎"))[:_CHARACTERS] for word in words)
