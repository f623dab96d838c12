"""Whole, damaged and hostile images of six formats, to try on whatever reads images."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image, PngImagePlugin

#: By format: the modes in which images are written, and the options of Pillow for each variant.
VARIANTS: dict[str, tuple[tuple[str, ...], tuple[dict[str, object], ...]]] = {
    "png": (
        ("RGB", "RGBA", "L", "LA", "P", "1", "I;16"),
        ({}, {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01"}, {"text": True}),
    ),
    "jpeg": (("RGB", "L", "CMYK"), ({}, {"progressive": True}, {"exif": b"Exif\0\0II*\0\x08\0\0\0\xff\xff"})),
    "ppm": (("RGB", "L", "1", "I"), ({},)),
    "webp": (("RGB", "RGBA"), ({}, {"lossless": True}, {"frames": 3})),
    "gif": (("P", "L"), ({}, {"frames": 3}, {"interlace": 0})),
    "tiff": (
        ("RGB", "RGBA", "L", "CMYK", "I;16", "F", "1"),
        ({}, {"compression": "tiff_lzw"}, {"compression": "tiff_adobe_deflate"}, {"frames": 3}),
    ),
}


def seeds(kind: str) -> list[bytes]:
    """Whole images of a format, in all its modes and variants."""
    modes, variants = VARIANTS[kind]
    return [_encoded(kind, mode, dict(options)) for mode in modes for options in variants]


def _encoded(kind: str, mode: str, options: dict[str, object]) -> bytes:
    pixels = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    images = [_in_mode(Image.fromarray(np.roll(pixels, shift, axis=0)), mode) for shift in range(3)]
    if options.pop("text", False):
        notes = PngImagePlugin.PngInfo()
        notes.add_text("note", "words " * 200, zip=True)
        notes.add_itxt("other", "words " * 200, zip=True)
        options |= {"pnginfo": notes, "icc_profile": b"profile" * 100}
    if options.pop("frames", 0):
        options |= {"save_all": True, "append_images": images[1:]}
    buffer = io.BytesIO()
    images[0].save(buffer, kind, **options)
    return buffer.getvalue()


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    if mode in ("I;16", "I", "F"):
        kind = {"I;16": np.uint16, "I": np.int32, "F": np.float32}[mode]
        return Image.fromarray(np.asarray(image.convert("L")).astype(kind) * (1 if mode == "F" else 257))
    return image.convert(mode)


def flipped(content: bytearray, draw: random.Random) -> None:
    """A few bits."""
    for _ in range(draw.choice((1, 1, 2, 8, 64))):
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)


def flipped_early(content: bytearray, draw: random.Random) -> None:
    """A few bits of the beginning, where sizes are."""
    for _ in range(draw.choice((1, 2, 4))):
        content[draw.randrange(min(64, len(content)))] ^= 1 << draw.randrange(8)


def cut(content: bytearray, draw: random.Random) -> None:
    """The end is missing."""
    del content[draw.randrange(len(content)) :]


def repeated(content: bytearray, draw: random.Random) -> None:
    """A piece is there twice."""
    start = draw.randrange(len(content))
    content[start:start] = content[start : start + draw.randrange(1, 400)]


def extreme(content: bytearray, draw: random.Random) -> None:
    """A number is the largest, the smallest, or zero."""
    start = draw.randrange(len(content))
    content[start : start + 4] = draw.choice(
        (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0", b"\xff\xff\0\0")
    )


def foreign(content: bytearray, draw: random.Random) -> None:
    """Random bytes in place of a piece."""
    start = draw.randrange(len(content))
    content[start : start + 40] = draw.randbytes(draw.randrange(1, 80))


DAMAGE: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flipped,
    flipped_early,
    cut,
    repeated,
    extreme,
    foreign,
)


def with_new_checksums(content: bytes) -> bytes:
    """A PNG whose chunks have the right checksums, so that damage gets beyond the first check."""
    result, place = bytearray(content[:8]), 8
    while place + 8 <= len(content):
        (length,) = struct.unpack(">I", content[place : place + 4])
        body = content[place + 4 : place + 8 + length]
        result += struct.pack(">I", max(len(body) - 4, 0)) + body + struct.pack(">I", zlib.crc32(body))
        place += 12 + length
    return bytes(result)


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_of(width: int, height: int, *chunks: bytes) -> bytes:
    """A PNG of one bit per pixel, all zero, with further chunks."""
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    rows = zlib.compress(bytes(height * (1 + (width + 7) // 8)), 9)
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + _chunk(b"IDAT", rows) + _chunk(b"IEND", b"")


def hostile(kind: str) -> list[bytes]:
    """Images made to break a reader."""
    bomb = zlib.compress(bytes(80_000_000), 9)
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"
    everywhere = [b"", b"\0" * 100, postscript, b"GIF89a", b"II*\0", b"RIFF\xff\xff\xff\xffWEBPVP8X"]
    own = {
        "png": [
            png_of(30_000, 1),
            png_of(3_000_000, 1),
            png_of(1, 30_000),
            png_of(60_000, 60_000 // 50),
            png_of(9_900, 9_900),
            png_of(64, 48, _chunk(b"zTXt", b"a\0\0" + bomb)),
            png_of(64, 48, _chunk(b"iTXt", b"a\0\1\0\0\0" + bomb)),
            png_of(64, 48, _chunk(b"iCCP", b"a\0\0" + bomb)),
            png_of(64, 48, *[_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1_000_000), 9))] * 90),
        ],
        "ppm": [
            b"P6 abc def 255\n",
            b"P6 99999999999 1 255\n",
            b"P6 1 -1 255\n",
            b"P5 0 0 0\n",
            b"P6 30000 1 255\n" + bytes(90_000),
        ],
        "gif": [
            b"GIF89a"
            + struct.pack("<HH", 65535, 65535)
            + b"\0\0\0,\0\0\0\0"
            + struct.pack("<HH", 65535, 65535)
            + b"\0\2\1\0\0;"
        ],
        "tiff": [
            _tiff(60_000, 60_000),
            _tiff(64, 48, (322, 60_000), (323, 60_000)),
            _tiff(64, 48, (277, 60_000)),
            _tiff(64, 48, (258, 4_000_000_000)),
        ],
        "webp": [_webp(16_000, 16_000), _webp(16_000, 6_000), _webp(16_000, 200)],
        "jpeg": [_jpeg(60_000, 60_000 // 51), _jpeg(12_000, 9_000), _jpeg(9_900, 9_900)],
    }
    return [*everywhere, *own[kind]]


def _jpeg(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("L", (width, height)).save(buffer, "jpeg", quality=1)
    return buffer.getvalue()


def _webp(width: int, height: int) -> bytes:
    """A lossless image of one colour, which has the same bytes in all sizes but for the 28 bits of the size itself."""
    buffer = io.BytesIO()
    Image.new("L", (16, 16)).save(buffer, "webp", lossless=True)
    content = bytearray(buffer.getvalue())
    (bits,) = struct.unpack_from("<I", content, 21)
    struct.pack_into("<I", content, 21, bits & 0xF0000000 | (width - 1) | (height - 1) << 14)
    return bytes(content)


def _tiff(width: int, height: int, *more: tuple[int, int]) -> bytes:
    tags = dict(
        [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, height), (279, 64), *more]
    )
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in sorted(tags.items()))
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", 0) + bytes(64)


def damaged(kind: str, count: int, seed: int) -> Iterator[bytes]:
    """`count` images: the whole ones, hostile ones, and whole ones damaged at random."""
    draw, whole = random.Random(f"{kind}/{seed}"), seeds(kind)
    certain = [*whole[:8], *hostile(kind)][:count]
    yield from certain
    for _ in range(count - len(certain)):
        content = bytearray(draw.choice(whole))
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            if content:
                draw.choice(DAMAGE)(content, draw)
        yield with_new_checksums(bytes(content)) if kind == "png" and draw.random() < 0.5 else bytes(content)
