"""Decode images that anyone may have made: bounded before they are decoded, with one error for all that goes wrong.

The bounds are the same everywhere, so that what a run skips never depends on the memory it is given.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from attnaudit.errors import ImageError, UsageError, first_line
from attnaudit.records.engine import format_size

#: The formats that are read, whatever a file is called. Other decoders of Pillow start programs, such as that of EPS.
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
MOST_BYTES = 2**28
MOST_PIXELS = 10**8
#: Preprocessing scales the shorter side to the size of the model, so that a long strip would become very long.
MOST_ELONGATED = 50
#: What decoding takes at its peak, with the conversion to RGB (measured: 5 to 8, and 16 for WebP).
BYTES_PER_PIXEL = 16
#: What is counted for the process covers images that take no more than this.
_SMALL = 64 * 10**6
#: Tags of TIFF files: the size of the blocks, each of which is decoded whole, and the bits of a pixel.
_BLOCK_WIDTH, _BLOCK_HEIGHT, _BITS = 322, 323, 258
#: By how much Pillow multiplies grey pixels of two and four bits, so that the largest is white.
_BRIGHTENING = {"L;2": 85, "L;4": 17}


def read_encoded(path: Path) -> bytes:
    """The bytes of an image file.

    Raises:
        ImageError: there are too many.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ImageError(f"it has more than {MOST_BYTES:,} bytes")
    return content


def decode_image(content: bytes, room: int | None = None) -> Image.Image:
    """The first frame as RGB: transparency is dropped, and sixteen bits are cut to the upper eight.

    Args:
        content: the encoded image.
        room: how many bytes decoding may take; None for any number.

    Raises:
        ImageError: it cannot be decoded, or exceeds a bound; the message is only the reason.
        UsageError: it takes more than `room`; the message lacks the name, too.
    """
    return _decoded(content, FORMATS, _as_rgb, room)


def decode_mask(content: bytes) -> Image.Image:
    """The classes of pixels: a PNG of up to eight bits, of which a palette is only for the eye.

    Raises:
        ImageError: it cannot be decoded, exceeds a bound, or has colours instead of classes.
        UsageError: memory ran out.
    """
    return _decoded(content, ("PNG",), _as_classes, None)


def _decoded(
    content: bytes, formats: tuple[str, ...], convert: Callable[[Image.Image], Image.Image], room: int | None
) -> Image.Image:
    try:
        with Image.open(io.BytesIO(content), formats=formats) as image:
            _check_fits(image, len(content), room)
            return convert(image)
    except (ImageError, UsageError):
        raise
    except UnidentifiedImageError as error:
        raise ImageError(f"it is not an image of a known format: {', '.join(formats)}") from error
    except MemoryError as error:
        raise UsageError("memory ran out while it was decoded: free some, or leave it out.") from error
    except Exception as error:  # the decoders raise whatever a damaged file makes them stumble over
        raise ImageError(first_line(error)) from error


@contextmanager
def quiet_decoders() -> Iterator[None]:
    """Without Pillow's warnings about damage that does not keep it from decoding; not for several threads at once."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="PIL")
        yield


def _check_fits(image: Image.Image, encoded: int, room: int | None) -> None:
    width, height = image.size
    if width < 1 or height < 1:
        raise ImageError(f"it has {width:,} x {height:,} pixels")
    pixels = max(width * height, _block_pixels(image))
    if pixels > MOST_PIXELS:
        raise ImageError(f"it has {pixels:,} pixels ({width:,} x {height:,}), more than {MOST_PIXELS:,}")
    if max(width, height) > MOST_ELONGATED * min(width, height):
        raise ImageError(
            f"it has {width:,} x {height:,} pixels: one side is more than {MOST_ELONGATED} times the other"
        )
    needed = encoded + BYTES_PER_PIXEL * pixels
    if room is not None and needed > max(room, _SMALL):
        raise UsageError(
            f"its {width:,} x {height:,} pixels take about {format_size(needed)} to decode, but --memory leaves "
            f"{format_size(max(room, 0))}: allow {format_size(needed - room)} more, use fewer --workers, or leave it "
            "out."
        )


def _block_pixels(image: Image.Image) -> int:
    """The pixels of a block of a TIFF file with blocks, else 0."""
    tags = getattr(image, "tag_v2", {})
    return int(tags.get(_BLOCK_WIDTH, 0)) * int(tags.get(_BLOCK_HEIGHT, 0))


def _as_rgb(image: Image.Image) -> Image.Image:
    """Converted to RGB; of itself, Pillow makes every pixel above 255 white."""
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PPM"):
        bits = getattr(image, "tag_v2", {}).get(_BITS, (16,))[0]
        return Image.fromarray((np.asarray(image) >> (bits - 8)).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        raise ImageError("its pixels have 32 bits and no known range: convert it to 8 bits")
    return image.convert("RGB")


def _as_classes(image: Image.Image) -> Image.Image:
    """The numbers as they are written, one byte per pixel."""
    if image.mode not in ("L", "P"):
        raise ImageError(f"its pixels are of mode {image.mode}: a mask has one byte for the class of each pixel")
    tiles = getattr(image, "tile", [])  # what is still to be decoded, and how it is written
    brightening = _BRIGHTENING.get(str(tiles[0][3]), 1) if tiles else 1
    return Image.fromarray(np.array(image) // brightening)
