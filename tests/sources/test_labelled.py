"""Labelled images: both layouts give the same, and what is broken is named."""

import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from attnaudit.errors import InputError
from attnaudit.protocol import Protocol
from attnaudit.records.architecture import Architecture
from attnaudit.records.card import ImageCard
from attnaudit.sources import encoded_images
from attnaudit.sources.cards import preprocessing
from attnaudit.sources.labelled import read_labelled, training_and_test


@pytest.fixture
def folders(tmp_path):
    root = tmp_path / "folders"
    for half, count in (("train", 3), ("val", 2)):
        for label, name in enumerate(("cat", "dog")):
            (root / half / name).mkdir(parents=True)
            for place in range(count):
                pixels = np.full((6, 6, 3), 40 * label + place, dtype=np.uint8)
                Image.fromarray(pixels).save(root / half / name / f"{place}.png")
    return root


def as_parquet(images, path):
    rows = [{"bytes": p.read_bytes(), "path": p.name} for p in images.encoded]
    pq.write_table(pa.table({"img": rows, "label": images.labels.tolist()}), path)


def test_every_image_is_made_into_something_in_order(folders):
    train, _ = training_and_test(folders)
    assert train.map(lambda image: image.getpixel((0, 0))[0]) == [0, 1, 2, 40, 41, 42]


def test_folders_and_parquet_hold_the_same_images(folders, tmp_path):
    train, test = training_and_test(folders)
    assert (train.names, len(train), len(test), train.classes) == (("cat", "dog"), 6, 4, 2)
    as_parquet(train, tmp_path / "train.parquet")
    stored = read_labelled(tmp_path / "train.parquet")
    assert torch.equal(stored.labels, train.labels)
    assert torch.equal(stored.pixels(6), train.pixels(6))
    assert stored.pixels(6)[:, 0, 0, 0].tolist() == [0, 1, 2, 40, 41, 42]


def test_images_of_another_size_are_resized(folders):
    assert training_and_test(folders)[0].pixels(4).shape == (6, 3, 4, 4)


def test_images_that_are_not_square_are_cropped_as_audits_crop_them(tmp_path):
    generator = np.random.default_rng(0)
    for name, shape in (("tall", (31, 12, 3)), ("wide", (9, 40, 3))):
        (tmp_path / name).mkdir()
        Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8)).save(tmp_path / name / "0.png")
    images = read_labelled(tmp_path)
    card = ImageCard("v", Architecture(image_size=8), (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), None, {})
    audited = torch.stack([preprocessing(card, Protocol.EXACT)(images.image(place)) for place in range(2)])
    assert torch.equal(images.pixels(8), (audited * 255).round().to(torch.uint8))


def test_the_fingerprint_follows_labels_and_content(folders, tmp_path):
    train, _ = training_and_test(folders)
    as_parquet(train, tmp_path / "a.parquet")
    first = read_labelled(tmp_path / "a.parquet")
    rows = pq.read_table(tmp_path / "a.parquet").to_pylist()
    rows[0]["label"] = 1
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "b.parquet")
    assert first.fingerprint == read_labelled(tmp_path / "a.parquet").fingerprint
    assert first.fingerprint != read_labelled(tmp_path / "b.parquet").fingerprint


def test_the_fingerprint_of_files_is_that_of_their_bytes_wherever_they_lie(folders, tmp_path):
    train, _ = training_and_test(folders)
    as_parquet(train, tmp_path / "a.parquet")
    copied = shutil.copytree(folders, tmp_path / "copy")
    for file in copied.rglob("*.png"):
        os.utime(file, ns=(0, 0))
    assert train.fingerprint == training_and_test(copied)[0].fingerprint
    assert train.fingerprint == read_labelled(tmp_path / "a.parquet").fingerprint


@pytest.mark.parametrize("read_whole", [2**31, 0], ids=["small", "too large to read"])
def test_an_edited_image_of_the_same_size_is_noticed(folders, monkeypatch, read_whole):
    monkeypatch.setattr(encoded_images, "_READ_WHOLE", read_whole)
    before = training_and_test(folders)[0].fingerprint
    assert before == training_and_test(folders)[0].fingerprint
    file = folders / "train" / "cat" / "0.png"
    content, state = bytearray(file.read_bytes()), file.stat()
    content[-20] ^= 1
    file.write_bytes(content)
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns + 1))  # two writes may lie within a tick of the clock
    assert before != training_and_test(folders)[0].fingerprint


def test_images_too_many_to_read_are_not_read_for_their_fingerprint(folders, monkeypatch):
    monkeypatch.setattr(encoded_images, "_READ_WHOLE", 0)
    monkeypatch.setattr(Path, "read_bytes", None)
    assert training_and_test(folders)[0].fingerprint


def test_a_image_that_vanishes_before_it_is_hashed_is_named(folders):
    train, _ = training_and_test(folders)
    (folders / "train" / "dog" / "1.png").unlink()
    with pytest.raises(InputError, match=r"Image .*dog/1\.png cannot be read \(No such file"):
        _ = train.fingerprint


def test_a_broken_image_is_named(tmp_path):
    rows = {"img": [{"bytes": b"no image", "path": None}] * 2, "label": [0, 1]}
    pq.write_table(pa.table(rows), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"number 1 of .*x\.parquet .*not an image"):
        read_labelled(tmp_path / "x.parquet").image(1)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"image_name": ["a"], "label": [1]}, "img and label, got image_name, label"),
        ({"img": ["a", "b"], "label": [0, 1]}, "column img"),
        ({"img": [b"a", b"b"], "label": [-1, 1]}, r"without a label \(-1\)"),
        ({"img": [b"a", b"b"], "label": ["cat", "dog"]}, "column label .* type string"),
        ({"img": [b"a", b"b"], "label": [0.5, 1.5]}, "column label .* type double"),
        ({"img": [b"a", b"b"], "label": [0, None]}, "column label .* 1 empty labels"),
        ({"img": [b"a", b"b"], "label": [1, 1]}, "got 2 images of 1 class."),
    ],
)
def test_columns_that_do_not_fit_are_said(tmp_path, columns, sentence):
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=sentence):
        read_labelled(tmp_path / "x.parquet")


def test_a_file_that_is_no_parquet_a_missing_one_and_an_empty_folder_are_refused(tmp_path):
    (tmp_path / "x.parquet").write_text("text")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_labelled(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"does not exist"):
        read_labelled(tmp_path / "y.parquet")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no class folders"):
        read_labelled(tmp_path / "empty")
    with pytest.raises(InputError, match=r"x\.parquet is not a folder"):
        training_and_test(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"has no train\*\.parquet or train/"):
        training_and_test(tmp_path / "empty")


def test_a_test_half_with_more_classes_is_refused(folders):
    (folders / "val" / "eel").mkdir()
    Image.new("RGB", (6, 6)).save(folders / "val" / "eel" / "0.png")
    with pytest.raises(InputError, match="eel"):
        training_and_test(folders)


def test_a_class_has_the_same_number_in_both_halves(folders):
    for half in ("train", "val"):
        (folders / half / "ant").mkdir()
    Image.new("RGB", (6, 6)).save(folders / "train" / "ant" / "0.png")
    (folders / "val" / "ant").rmdir()
    train, test = training_and_test(folders)
    assert train.names == test.names == ("ant", "cat", "dog")
    assert sorted(set(test.labels.tolist())) == [1, 2]


def test_classes_that_are_numbers_are_numbered_by_their_size(tmp_path):
    for name in ("0", "2", "10"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (6, 6)).save(tmp_path / name / "0.png")
    assert read_labelled(tmp_path).names == ("0", "2", "10")


def test_a_few_images_spread_over_class_folders_have_all_classes(folders):
    few = training_and_test(folders)[0].evenly_spaced(2)
    assert few.labels.tolist() == [0, 1]
    assert few.first(1).classes == 2  # the other class has its name still


def test_a_few_images_are_of_as_many_classes_as_all_even_if_these_have_no_names(folders, tmp_path):
    as_parquet(training_and_test(folders)[0], tmp_path / "a.parquet")
    few = read_labelled(tmp_path / "a.parquet").first(1)
    assert few.names is None
    assert few.labels.tolist() == [0]
    assert few.classes == few.first(1).classes == 2
