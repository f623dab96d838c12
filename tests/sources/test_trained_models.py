"""Models of `attnaudit train`, and the one that ships."""

import json
from dataclasses import replace

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from attnaudit.errors import ModelError, WeightsError
from attnaudit.protocol import Protocol
from attnaudit.records import json_file
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.cards import read_card
from attnaudit.sources.labelled import read_labelled
from attnaudit.sources.trained_models import BUILT_IN, WEIGHTS
from tests.sealed import content_of, seal

SHIPPED = BUILT_IN / "vit-small-cifar"


@pytest.fixture(scope="module")
def shipped():
    return load_model(parse_model("vit-small-cifar"))


def test_the_shipped_model_is_small_and_in_half_precision():
    assert (SHIPPED / WEIGHTS).stat().st_size <= 6_000_000
    assert {tensor.dtype for tensor in load_file(SHIPPED / WEIGHTS).values()} == {torch.float16}


def test_its_card_says_how_it_was_made_and_how_good_it_is():
    card = read_card(SHIPPED)
    assert card.facts["recipe"] == "vit-small-cifar"
    assert 0.85 < card.facts["test_accuracy"] < 1
    assert len(card.labels) == card.architecture.classes == 10


def test_its_heads_are_identifiable(shipped):
    architecture = read_card(SHIPPED).architecture
    assert architecture.tokens >= 2 * architecture.width // architecture.heads


def test_it_computes_in_float32_and_has_an_untrained_twin(shipped):
    assert {p.dtype for p in shipped.module.parameters()} == {torch.float32}
    twin = shipped.untrained(1)
    assert twin.state_dict().keys() == shipped.module.state_dict().keys()
    assert not torch.equal(twin.head.weight, shipped.module.head.weight)


@pytest.mark.realdata
def test_it_is_as_good_as_its_card_says(shipped, data_folder):
    images = read_labelled(data_folder / "cifar10" / "test.parquet").first(400)
    preprocess = shipped.preprocess(Protocol.EXACT)
    with torch.no_grad():
        logits = shipped.module(torch.stack([preprocess(images.image(i)) for i in range(len(images))]))
    accuracy = (logits.argmax(dim=1) == images.labels).double().mean().item()
    said = read_card(SHIPPED).facts["test_accuracy"]
    assert accuracy == pytest.approx(said, abs=4 * (said * (1 - said) / len(images)) ** 0.5)


def test_images_are_cropped_in_the_middle_or_squashed(shipped):
    wide = Image.new("RGB", (96, 32))
    wide.paste((255, 0, 0), (32, 0, 64, 32))
    cropped, squashed = (shipped.preprocess(protocol)(wide) for protocol in (Protocol.EXACT, Protocol.PAPER))
    assert cropped.shape == squashed.shape == (3, 32, 32)
    assert cropped[0].min() > 2  # nothing but the red middle
    assert squashed[0].min() < -2


def test_a_folder_without_a_card_or_with_a_broken_one_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"card\.json is missing"):
        read_card(tmp_path)
    (tmp_path / "card.json").write_text(json.dumps({"name": "x"}))
    with pytest.raises(ModelError, match="is not readable as the card of a trained model"):
        parse_model(str(tmp_path))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"attention": "xxx"}, "attention variant 'xxx'"),
        ({"attention": "rpc", "attention_layers": [77]}, "got layer 77"),
    ],
)
def test_a_card_of_a_network_that_there_is_not_is_named(tmp_path, changes, fault):
    card = content_of(SHIPPED / "card.json")
    card["architecture"] |= changes
    seal(tmp_path / "card.json", card)
    with pytest.raises(ModelError, match=rf"card\.json .*{fault}"):
        load_model(parse_model(str(tmp_path)))


def test_weights_that_do_not_fit_the_card_are_named(tmp_path):
    card = content_of(SHIPPED / "card.json")
    card["architecture"]["depth"] = 5
    seal(tmp_path / "card.json", card)
    (tmp_path / WEIGHTS).write_bytes((SHIPPED / WEIGHTS).read_bytes())
    with pytest.raises(WeightsError, match=r"does not fit .*: 12 unknown \(blocks\.5"):
        load_model(parse_model(str(tmp_path)))


@pytest.mark.parametrize("changes", [{"heads": 3}, {"standardise": True}, {"drop_path": 0.1}, {}])
def test_another_card_with_the_same_weights_is_another_model(tmp_path, shipped, changes):
    card = read_card(SHIPPED)
    architecture = replace(card.architecture, **changes)
    other = replace(card, architecture=architecture) if changes else replace(card, mean=(0.0, 0.0, 0.0))
    prints = []
    for name, own in (("same", card), ("other", other)):
        (tmp_path / name).mkdir()
        json_file.write(tmp_path / name / "card.json", own)
        prints.append(load_model(parse_model(str(tmp_path / name), weights=SHIPPED / WEIGHTS)).fingerprint)
    assert prints[0] == shipped.fingerprint != prints[1]


def test_a_card_of_an_absurdly_large_network_is_refused(tmp_path):
    card = read_card(SHIPPED)
    own = replace(card, architecture=replace(card.architecture, depth=10**9))
    json_file.write(tmp_path / "card.json", own)
    with pytest.raises(ModelError, match=r"card\.json .* too much for this machine"):
        load_model(parse_model(str(tmp_path), random_weights=True))
