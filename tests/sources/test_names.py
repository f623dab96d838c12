"""Files may have names that are not UTF-8; they are shown, stored and reported readably, and stay different."""

import json
import os
import shutil

import pytest
import timm
from safetensors.torch import save_file

import attnaudit
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.images import ImageShard, choose_images, find_images
from attnaudit.sources.selection import InputSelection, select_inputs

NAMES = (b"a\xff.png", b"a\xfe.png", b"new\nline.png")
SHOWN = {r"a\xff.png", r"a\xfe.png", r"new\x0aline.png"}


@pytest.fixture
def folder(six_images, tmp_path):
    (tmp_path / os.fsdecode(b"im\xffages")).mkdir()
    for name in NAMES:
        shutil.copy(six_images / "class0" / "image0.png", tmp_path / os.fsdecode(b"im\xffages/" + name))
    return tmp_path / os.fsdecode(b"im\xffages")


def test_images_are_named_readably_and_apart(folder):
    assert {item.name for item in choose_images(find_images(folder), folder, None, 0)} == SHOWN


def test_skipped_images_are_named_readably(folder):
    (folder / os.fsdecode(b"broken\xff.png")).write_bytes(b"no image")
    items = choose_images(find_images(folder), folder, None, 0)
    prepared = ImageShard(items).prepare(load_model(parse_model("test_vit", random_weights=True)), Protocol.EXACT)
    assert [name for name, _ in prepared.skipped] == [r"broken\xff.png"]


def test_weights_and_images_of_any_name_are_audited_stored_and_reported(folder, tmp_path):
    weights = tmp_path / os.fsdecode(b"w\xff.safetensors")
    save_file(timm.create_model("test_vit").state_dict(), tmp_path / "plain")
    (tmp_path / "plain").rename(weights)
    run = attnaudit.audit("test_vit", folder, weights=weights, references=["gaussian"], out=tmp_path / "run")
    assert set(run.evidence.column("input").to_pylist()) == SHOWN
    assert r"w\\xff.safetensors" in json.dumps(json.loads((run.path / "run.json").read_text()))
    assert run.report().is_file()


def test_text_files_of_any_name_are_described_readably(tmp_path):
    place = tmp_path / os.fsdecode(b"t\xff.txt")
    place.write_text("words " * 400)
    found = select_inputs([parse_model("minilm")], InputSelection(place), Protocol.EXACT)
    assert found.words == r"2 passages of t\xff.txt"
