"""Pictures with masks: both layouts give the same masks, and what is broken is named."""

import struct
import zlib
from contextlib import nullcontext

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from attnaudit.errors import InputError
from attnaudit.sources.decoding import decode_mask
from attnaudit.sources.encoded_images import NAMES
from attnaudit.sources.segmented import UNLABELLED, read_segmented, segmented_for, training_and_test_masks
from tests.sources.masks import SHAPE, encoded, picture, write_ade20k, write_masks


def test_folders_and_parquet_have_the_same_masks(tmp_path):
    stored = read_segmented(write_masks(tmp_path / "test.parquet", 3), 2)
    folder = read_segmented(write_ade20k(tmp_path / "ade", {"validation": 3}), 2)
    assert torch.equal(stored.mask_pixels(*SHAPE), folder.mask_pixels(*SHAPE))
    expected = torch.stack([torch.from_numpy(picture(place)[1]) for place in range(3)])
    assert torch.equal(stored.mask_pixels(*SHAPE), expected)
    assert set(expected.unique().tolist()) == {0, 1, UNLABELLED}


def test_a_column_of_annotations_numbers_classes_as_ade20k_does(tmp_path):
    """The hub's ADE20K has such a column: 0 is unlabelled there, and 1 the first class."""
    folder = read_segmented(write_ade20k(tmp_path / "ade", {"validation": 3}), 2)
    written = [file.read_bytes() for file in sorted((tmp_path / "ade" / "annotations" / "validation").iterdir())]
    pictures = [encoded(picture(place)[0]) for place in range(3)]
    pq.write_table(pa.table({"image": pictures, "annotation": written}), tmp_path / "test.parquet")
    stored = read_segmented(tmp_path / "test.parquet", 2)
    assert torch.equal(stored.mask_pixels(*SHAPE), folder.mask_pixels(*SHAPE))


def test_a_column_of_labels_is_none_of_masks(tmp_path):
    """Whether its numbers begin with 0 or 1 is not known."""
    image, mask = picture(0)
    pq.write_table(pa.table({"image": [encoded(image)], "label": [encoded(mask)]}), tmp_path / "test.parquet")
    with pytest.raises(InputError, match="must have columns image and mask"):
        read_segmented(tmp_path / "test.parquet", 2)


def test_halves_are_found_in_both_layouts(tmp_path):
    write_masks(tmp_path / "train.parquet", 4)
    write_masks(tmp_path / "test.parquet", 2)
    assert [len(half) for half in training_and_test_masks(tmp_path, 2)] == [4, 2]
    ade = write_ade20k(tmp_path / "ade", {"training": 3, "validation": 1})
    assert [len(half) for half in training_and_test_masks(ade, 2)] == [3, 1]


def test_masks_are_cut_as_their_pictures_are(tmp_path):
    images = read_segmented(write_masks(tmp_path / "test.parquet", 2), 2)
    pixels, masks = images.pixels(16, 16), images.mask_pixels(16, 16)
    assert (pixels.shape, masks.shape) == ((2, 3, 16, 16), (2, 16, 16))
    bright = pixels.float().mean(dim=1) > 110
    agree = (bright == (masks == 0))[masks != UNLABELLED]
    assert agree.float().mean() > 0.9  # but for the edge
    assert set(masks.unique().tolist()) <= {0, 1, UNLABELLED}


def test_the_fingerprint_follows_masks_and_the_meaning_of_their_numbers(tmp_path):
    first = read_segmented(write_masks(tmp_path / "a.parquet", 2), 2)
    again = read_segmented(write_masks(tmp_path / "b.parquet", 2), 2)
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != read_segmented(tmp_path / "b.parquet", 3).fingerprint
    rows = pq.read_table(tmp_path / "b.parquet").to_pylist()
    rows[1]["mask"] = encoded(np.zeros(SHAPE, dtype=np.uint8))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    changed = read_segmented(tmp_path / "b.parquet", 2)
    assert first.fingerprint != changed.fingerprint
    assert not first.same_truth(changed)
    assert first.same_truth(again)


def with_mask(tmp_path, mask, **columns):
    table = pa.table({"image": [encoded(picture(0)[0])], "mask": [mask], **columns})
    pq.write_table(table, tmp_path / "test.parquet")
    return tmp_path / "test.parquet"


BROKEN = {
    "of another size": (np.zeros((8, 9), dtype=np.uint8), "has 9 x 8 pixels, but the image has 48 x 32: give masks of"),
    "out of range": (
        np.full(SHAPE, 3, dtype=np.uint8),
        "class 3, but 2 classes are numbered 0 to 1.*: mend the mask, or",
    ),
    "colours": (np.zeros((*SHAPE, 3), dtype=np.uint8), "its pixels are of mode RGB: a mask has one byte"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_mask_that_does_not_fit_is_named_in_one_sentence(tmp_path, fault):
    mask, words = BROKEN[fault]
    images = read_segmented(with_mask(tmp_path, encoded(mask)), 2)
    with pytest.raises(InputError, match=f"The mask of image number 0 of .*{words}") as error:
        images.mask_pixels(*SHAPE)
    assert "\n" not in str(error.value)


def test_a_mask_that_is_no_png_is_named(tmp_path):
    for mask in (b"no image", encoded(np.zeros(SHAPE, dtype=np.uint8), "JPEG")):
        with pytest.raises(InputError, match=r"The mask of image number 0 .*it is not an image of a known format: PNG"):
            read_segmented(with_mask(tmp_path, mask), 2).mask(0)


def test_missing_masks_columns_and_places_are_named(tmp_path):
    with pytest.raises(InputError, match=r"test.parquet: 1 of 1 images have no mask \(column mask\)"):
        read_segmented(with_mask(tmp_path, pa.scalar(None, pa.binary()).as_py()), 2)
    pq.write_table(pa.table({"image": [b""], "label": [0]}), tmp_path / "labels.parquet")
    pq.write_table(pa.table({"image": [b""], "name": ["x"]}), tmp_path / "bare.parquet")
    with pytest.raises(
        InputError, match="must have columns image and mask, with an encoded mask for each, got image and name"
    ):
        read_segmented(tmp_path / "bare.parquet", 2)
    with pytest.raises(InputError, match=r"must have columns image and mask, with an .*, got image and label"):
        read_segmented(tmp_path / "labels.parquet", 2)
    with pytest.raises(InputError, match="does not exist: give a Parquet file, or a folder with images/"):
        read_segmented(tmp_path / "nowhere", 2)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"has neither images/validation/ nor test\*.parquet"):
        read_segmented(tmp_path / "empty", 2)
    with pytest.raises(InputError, match=r"Masks have 2 to 254 classes, got 300"):
        read_segmented(write_masks(tmp_path / "many.parquet", 1), 300)
    ade = write_ade20k(tmp_path / "ade", {"validation": 2})
    (ade / "annotations" / "validation" / "ADE_1.png").unlink()
    with pytest.raises(InputError, match=r"ADE_1.jpg has no mask: .*ADE_1.png does not exist"):
        read_segmented(ade, 2)


def test_pictures_of_the_data_folder_are_found_by_their_classes(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNAUDIT_DATA", str(tmp_path))
    with pytest.raises(InputError, match="No pictures with masks of 11 classes were found"):
        segmented_for(None, 11)
    (tmp_path / "camvid").mkdir()
    write_masks(tmp_path / "camvid" / "test.parquet", 2, unlabelled=11)
    assert len(segmented_for(None, 11)) == 2


def grey_png(bits, values):
    """A PNG of one row of grey pixels of so many bits, written out byte by byte."""
    row = "".join(format(value, f"0{bits}b") for value in values)
    packed = bytes(int(row[place : place + 8].ljust(8, "0"), 2) for place in range(0, len(row), 8))
    header = struct.pack(">IIBBBBB", len(values), 1, bits, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" + packed)), (b"IEND", b""))
    size, check = (lambda own: struct.pack(">I", len(own))), (lambda own: struct.pack(">I", zlib.crc32(own)))
    return b"\x89PNG\r\n\x1a\n" + b"".join(size(own) + kind + own + check(kind + own) for kind, own in parts)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_classes_are_those_that_are_written_with_however_many_bits(bits):
    assert np.array(decode_mask(grey_png(bits, [0, 1, 2, 3, 1]))).tolist() == [[0, 1, 2, 3, 1]]


def test_what_is_no_mask_or_file_is_named(tmp_path):
    pq.write_table(pa.table({"image": [b""], "mask": [0]}), tmp_path / "numbers.parquet")
    with pytest.raises(InputError, match=r"numbers.parquet: the column mask has numbers, and must have an"):
        read_segmented(tmp_path / "numbers.parquet", 2)
    (tmp_path / "data" / "test.parquet").mkdir(parents=True)
    with pytest.raises(InputError, match=r"has neither images/validation/ nor test\*.parquet"):
        read_segmented(tmp_path / "data", 2)


def test_names_are_those_of_all_classes(tmp_path):
    table = pq.read_table(write_masks(tmp_path / "test.parquet", 1))
    for names, fault in (("dark\nbright", False), ("dark", True)):
        pq.write_table(table.replace_schema_metadata({NAMES: names}), tmp_path / "test.parquet")
        with pytest.raises(InputError, match="names 1 classes of 2: name all of them") if fault else nullcontext():
            assert read_segmented(tmp_path / "test.parquet", 2).names == ("dark", "bright")


def test_a_palette_is_for_the_eye(tmp_path):
    coloured = Image.fromarray(np.where(picture(0)[1] == 255, 2, picture(0)[1]).astype(np.uint8))
    coloured.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    assert coloured.mode == "P"
    file = tmp_path / "mask.png"
    coloured.save(file)
    found = read_segmented(with_mask(tmp_path, file.read_bytes()), 2).mask(0)
    assert np.array_equal(np.asarray(found), picture(0)[1])
