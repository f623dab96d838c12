"""Cards: what is written can be read, by later versions too."""

import json
import math

import pytest

from attnaudit.errors import ModelError
from attnaudit.protocol import Protocol
from attnaudit.sources.architecture import Architecture
from attnaudit.sources.cards import ImageCard, TextCard, read_card
from attnaudit.sources.decoder import DecoderArchitecture
from attnaudit.sources.words import Vocabulary

RPC = {"attention": "rpc", "attention_layers": (0,), "attention_options": {"lam": 3.0}, "other_attention": "symmetric"}
PICTURES = ImageCard("v", Architecture(depth=2, **RPC), (0.5, 0.5, 0.5), (0.2, 0.2, 0.2), ("cat", "dog"), {"n": 1})
TEXT = TextCard("t", DecoderArchitecture(vocabulary=3, **RPC), Vocabulary(("<unk>", "<eos>", "naïve")), {"n": 1})


@pytest.mark.parametrize("card", [PICTURES, TEXT])
def test_a_card_comes_back_as_it_was(card, tmp_path):
    (tmp_path / "card.json").write_text(card.as_json())
    assert read_card(tmp_path) == card


def test_a_card_from_before_other_attention_was_known_can_be_read(tmp_path):
    content = json.loads(PICTURES.as_json())
    del content["architecture"]["other_attention"]
    (tmp_path / "card.json").write_text(json.dumps(content))
    assert read_card(tmp_path).architecture.other_attention == "softmax"


def test_texts_are_cut_at_the_context():
    card = TextCard("t", DecoderArchitecture(context=4), Vocabulary(("<unk>", "<eos>", "a")), {})
    assert card.tokenise(["a b " * 9], 256)["input_ids"].tolist() == [[2, 0, 2, 0]]


def test_images_come_out_in_the_size_of_the_model(image_folder):
    from PIL import Image

    image = Image.open(next(image_folder.rglob("*.png")))
    for protocol in Protocol:
        assert PICTURES.preprocess(protocol)(image).shape == (3, 32, 32)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"name": "x"}', b'{"architecture": {"attention_layers": 3}}', b"\xff"])
def test_a_damaged_card_is_named(text, tmp_path):
    (tmp_path / "card.json").write_bytes(text)
    with pytest.raises(ModelError, match=r"card\.json is not readable as the card of a trained model"):
        read_card(tmp_path)


@pytest.mark.parametrize(
    ("part", "value", "fault"),
    [
        ("architecture", {"heads": 5}, "A width of 192 does not split into 5 heads"),
        ("architecture", {"width": 24.0}, "card: architecture: width is 24.0: it is a whole number"),
        ("architecture", {"attention_options": 7}, "card: architecture: attention_options is 7: it has names with"),
        ("architecture", [1], r"card: architecture is \[1\]: it has names with values under it"),
        ("mean", [0.5], "card: mean has 1 values: it is a list of 3"),
        ("std", ["a", "b", "c"], "card: std is 'a': it is a finite number"),
        ("std", [0.2, 0.0, 0.2], r"card: std is 0: it is at least 1e-06 and at most 1e\+06"),
        ("std", [0.2, 0.2, -0.2], "card: std is -0.2: it is at least 1e-06"),
        ("std", [1e-50, 0.2, 0.2], "card: std is 1e-50: it is at least 1e-06"),  # 0 in float32
        ("std", [1e50, 0.2, 0.2], r"card: std is 1e\+50: it is at least 1e-06 and at most 1e\+06"),
        ("std", [math.nan, 0.2, 0.2], "card: std is nan: it is a finite number"),
        ("std", [0.2, math.inf, 0.2], "card: std is inf: it is a finite number"),
        ("mean", [0.5, 0.5, -1e50], r"card: mean is -1e\+50: it is at least -1e\+06"),
        ("facts", None, "card: facts is None: it has names with values under it"),
    ],
)
def test_what_is_wrong_with_a_card_is_said(part, value, fault, tmp_path):
    content = json.loads(PICTURES.as_json())
    (tmp_path / "card.json").write_text(json.dumps(content | {part: value}))
    with pytest.raises(ModelError, match=rf"card\.json is not readable as the card of a trained model \({fault}"):
        read_card(tmp_path)
