"""Cards: what is written can be read, by later versions too."""

import math

import pytest

from attnaudit.errors import ModelError
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.records.architecture import Architecture, DecoderArchitecture
from attnaudit.records.card import ImageCard, TextCard
from attnaudit.sources.cards import preprocessing, read_card, tokeniser
from tests.sealed import seal

RPC = {"attention": "rpc", "attention_layers": (0,), "attention_options": {"lam": 3.0}, "other_attention": "symmetric"}
IMAGES = ImageCard("v", Architecture(depth=2, **RPC), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2), ("cat", "dog"), {"n": 1})
TEXT = TextCard("t", DecoderArchitecture(vocabulary=3, **RPC), ("<unk>", "<eos>", "naïve"), {"n": 1})


@pytest.mark.parametrize("card", [IMAGES, TEXT])
def test_a_card_comes_back_as_it_was(card, tmp_path):
    json_file.write(tmp_path / "card.json", card)
    assert read_card(tmp_path) == card


def test_a_card_from_before_other_attention_was_known_can_be_read(tmp_path):
    content = json_file.plain(IMAGES)
    del content["architecture"]["other_attention"]
    seal(tmp_path / "card.json", content)
    assert read_card(tmp_path).architecture.other_attention == "softmax"


def test_texts_are_cut_at_the_context():
    card = TextCard("t", DecoderArchitecture(context=4), ("<unk>", "<eos>", "a"), {})
    assert tokeniser(card)(["a b " * 9], 256)["input_ids"].tolist() == [[2, 0, 2, 0]]


def test_images_come_out_in_the_size_of_the_model(image_folder):
    from PIL import Image

    image = Image.open(next(image_folder.rglob("*.png")))
    for protocol in Protocol:
        assert preprocessing(IMAGES, protocol)(image).shape == (3, 32, 32)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"name": "x"}', b'{"architecture": {"attention_layers": 3}}', b"\xff", b"[" * 10**6]
)
def test_a_damaged_card_is_named(text, tmp_path):
    (tmp_path / "card.json").write_bytes(text)
    with pytest.raises(ModelError, match=r"card\.json is not readable as the card of a trained model"):
        read_card(tmp_path)


def test_a_card_that_is_a_folder_is_named(tmp_path):
    (tmp_path / "card.json").mkdir()
    with pytest.raises(ModelError, match=r"card\.json is not readable as the card of a trained model"):
        read_card(tmp_path)


@pytest.mark.parametrize(
    ("part", "value", "fault"),
    [
        ("architecture", {"heads": 5}, "architecture: a width of 192 does not split into 5 heads"),
        ("architecture", {"width": 24.0}, r"architecture\.width must be a whole number, got 24\.0"),
        ("architecture", {"attention_options": 7}, r"architecture\.attention_options must be names with values, got 7"),
        ("architecture", [1], r"architecture must be names with values, got \[1\]"),
        ("mean", [0.5], r"mean\[1\] is missing"),
        ("std", ["a", "b", "c"], r'std\[0\] must be a finite number, got "a"'),
        ("std", [0.2, 0.0, 0.2], r"std must be ≥ 1e-06 and ≤ 1e\+06, got 0"),
        ("std", [0.2, 0.2, -0.2], r"std must be ≥ 1e-06 .*, got -0\.2"),
        ("std", [1e-50, 0.2, 0.2], r"std must be ≥ 1e-06 .*, got 1e-50"),  # 0 in float32
        ("std", [1e50, 0.2, 0.2], r"std must be .* ≤ 1e\+06, got 1e\+50"),
        ("std", [math.nan, 0.2, 0.2], r"std\[0\] must be a finite number, got NaN"),
        ("std", [0.2, math.inf, 0.2], r"std\[1\] must be a finite number, got Infinity"),
        ("mean", [0.5, 0.5, -1e50], r"mean must be ≥ -1e\+06 .*, got -1e\+50"),
        ("facts", None, "facts must be names with values, got null"),
    ],
)
def test_what_is_wrong_with_a_card_is_said(part, value, fault, tmp_path):
    content = json_file.plain(IMAGES)
    seal(tmp_path / "card.json", content | {part: value})
    with pytest.raises(ModelError, match=rf"card\.json is not readable as the card of a trained model \({fault}"):
        read_card(tmp_path)
