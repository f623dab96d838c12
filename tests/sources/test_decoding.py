import io
import os
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from benchmarks.damaged_images import VARIANTS, damaged, hostile, png_of, seeds
from PIL import Image

from attnaudit.errors import ImageError, InputError, UsageError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.decoding import (
    BYTES_PER_PIXEL,
    MOST_BYTES,
    MOST_ELONGATED,
    MOST_PIXELS,
    decode_image,
    quiet_decoders,
    read_encoded,
)
from attnaudit.sources.images import ImageShard, choose_images, find_images
from attnaudit.sources.labelled import read_labelled

PIXELS = np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8)


def encoded(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def colour(content):
    return decode_image(content).getpixel((0, 0))


def outcome(content, room=10**8):
    """The size of a decoded image, or the reason why it was refused."""
    try:
        with quiet_decoders():
            return decode_image(content, room).size
    except (ImageError, UsageError) as error:
        return str(error)


@pytest.mark.parametrize("kind", VARIANTS)
def test_damaged_and_hostile_images_are_decoded_or_refused_with_a_reason(kind):
    found = [outcome(content) for content in damaged(kind, 120, seed=1)]
    reasons = [each for each in found if isinstance(each, str)]
    assert len(found) - len(reasons) > 5
    assert len(reasons) > 10
    assert all(reasons)
    assert not any("0x" in reason for reason in reasons), "an address in memory, which differs from run to run"
    assert all(max(size) <= MOST_ELONGATED * min(size) for size in found if not isinstance(size, str))


@pytest.mark.parametrize("kind", VARIANTS)
def test_whole_images_are_decoded_as_pillow_does_unless_they_have_more_than_eight_bits(kind):
    for content in seeds(kind):
        with Image.open(io.BytesIO(content)) as image:
            if not image.mode.startswith(("I", "F")):
                assert decode_image(content).tobytes() == image.convert("RGB").tobytes()


@pytest.mark.parametrize(
    ("width", "height"), [(30_000, 1), (3_000_000, 1), (1, 30_000), (MOST_ELONGATED + 1, 1), (10_001, 10_000)]
)
def test_images_beyond_the_bounds_are_refused_by_their_size(width, height):
    with pytest.raises(ImageError, match=f"{width:,} x {height:,}"):
        decode_image(png_of(width, height))


def test_the_longest_image_within_the_bounds_is_decoded():
    assert decode_image(png_of(MOST_ELONGATED, 1)).size == (MOST_ELONGATED, 1)


def test_what_is_skipped_does_not_depend_on_the_memory_there_is():
    for content in hostile("png"):
        little, much = outcome(content, 10**6), outcome(content, 10**12)
        assert little == much or "--memory" in little


@pytest.mark.parametrize(
    "content", [b"P6 abc def 255", b"", b"P6 1 -1 255\n", b"%!PS-Adobe-3.0 EPSF-3.0\n", b"\x89PNG\r\n\x1a\n"]
)
def test_what_is_no_image_is_refused(content):
    with pytest.raises(ImageError):
        decode_image(content)


def test_an_image_that_needs_more_room_than_there_is_says_how_much():
    content = png_of(8_000, 4_000)
    needed = 8_000 * 4_000 * BYTES_PER_PIXEL
    with pytest.raises(UsageError, match=r"8,000 x 4,000 .* 512 MB .* leaves 300 MB: allow 212 MB"):
        decode_image(content, room=300 * 10**6)
    assert decode_image(content, room=needed + len(content)).size == (8_000, 4_000)


@pytest.mark.parametrize("kind", ["png", "tiff", "ppm"])
def test_sixteen_bits_are_cut_to_the_upper_eight(kind):
    image = Image.fromarray(np.full((8, 8), 0x9C40, dtype=np.uint16))
    content = encoded(image if kind != "ppm" else Image.fromarray(np.full((8, 8), 0x9C40, dtype=np.int32)), kind)
    assert colour(content) == (0x9C, 0x9C, 0x9C)


def test_pixels_of_32_bits_are_refused():
    with pytest.raises(ImageError, match="32 bits"):
        decode_image(encoded(Image.fromarray(np.full((8, 8), 0.5, dtype=np.float32)), "tiff"))


@pytest.mark.parametrize(("kind", "options"), [("gif", {}), ("tiff", {}), ("webp", {"lossless": True})])
def test_of_several_frames_the_first_is_read(kind, options):
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue", "green")]
    content = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert colour(content) == (255, 0, 0) if kind != "gif" else colour(content)[0] > 200


def test_four_colours_are_converted_and_damaged_notes_ignored():
    image = Image.new("RGB", (16, 16), (255, 0, 0))
    assert colour(encoded(image.convert("CMYK"), "jpeg", quality=100))[0] > 240
    damaged_exif = encoded(image, "jpeg", exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff", quality=100)
    with quiet_decoders():
        assert colour(damaged_exif)[0] > 240


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(ImageError, match=f"{MOST_BYTES:,}"):
        read_encoded(path)


def test_an_audit_skips_by_name_with_reasons_and_without_addresses(image_folder):
    for place, content in enumerate(hostile("png")[:6]):
        (image_folder / f"hostile{place}.png").write_bytes(content)
    items = choose_images(find_images(image_folder), image_folder, None, seed=0)
    model = load_model(parse_model("test_vit", random_weights=True))
    prepared, again = (ImageShard(items).prepare(model, Protocol.EXACT, 10**12) for _ in range(2))
    assert len(prepared.names) == len(again.names) == 6
    assert prepared.skipped == again.skipped
    assert {name for name, _ in prepared.skipped} == {f"hostile{place}.png" for place in range(6)}


def test_labelled_images_go_through_the_same_decoder(image_folder):
    (image_folder / "class0" / "strip.png").write_bytes(png_of(30_000, 1))
    images = read_labelled(image_folder)
    with pytest.raises(InputError, match=r"strip\.png.*30,000 x 1"):
        images.pixels(32)


def test_nothing_but_the_decoder_opens_images():
    from attnaudit import sources

    folder = os.path.dirname(os.path.dirname(sources.__file__))
    found = subprocess.run(
        ["grep", "-rlE", r"Image\.open|imread|read_image", folder, "--include=*.py"], capture_output=True, text=True
    )
    assert [os.path.basename(path) for path in found.stdout.split()] == ["decoding.py"]


def test_a_strip_of_167_bytes_does_not_take_gigabytes(tmp_path):
    """The shorter side is scaled to the size of the model: 30,000 x 1 pixels took 4 GB."""
    content = png_of(30_000, 1)
    assert len(content) < 200
    (tmp_path / "strip.png").write_bytes(content)
    (tmp_path / "fine.png").write_bytes(encoded(Image.fromarray(PIXELS), "png"))
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from attnaudit.protocol import Protocol\n"
        "from attnaudit.sources import load_model, parse_model\n"
        "from attnaudit.sources.images import ImageShard, choose_images, find_images\n"
        "folder = Path(sys.argv[1])\n"
        "model = load_model(parse_model('test_vit', random_weights=True))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "prepared = ImageShard(choose_images(find_images(folder), folder, None, 0)).prepare(model, Protocol.EXACT)\n"
        "print(prepared.names, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    shown = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    names, _, grown = shown.stdout.strip().rpartition(" ")
    assert names == "('fine.png',)"
    assert int(grown) * 1024 < 10**8


def test_a_compressed_note_of_80_megabytes_is_refused():
    body = b"a\0\0" + zlib.compress(bytes(80_000_000), 9)
    chunk = struct.pack(">I", len(body)) + b"zTXt" + body + struct.pack(">I", zlib.crc32(b"zTXt" + body))
    with pytest.raises(ImageError):
        decode_image(png_of(64, 48, chunk))
    assert MOST_PIXELS * BYTES_PER_PIXEL < 2 * 10**9
