"""A text model without a tokenizer is refused, and one with another tokenizer is another model."""

import json

import pytest

from attnaudit.errors import InputError, ModelError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.text_shards import TextShard
from attnaudit.sources.texts import TextItem
from tests.sources.hf_folders import WORDS, tiny_bert, write_tokenizer

pytest.importorskip("transformers")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def load(folder):
    return load_model(parse_model(str(folder)))


def test_a_folder_without_a_tokenizer_is_refused(tmp_path):
    folder = tiny_bert(tmp_path / "bert", tokenizer=False)
    with pytest.raises(ModelError, match=r"no tokenizer.*vocab\.txt.*input_ids"):
        load(folder)
    (folder / "tokenizer_config.json").write_text("{}")
    with pytest.raises(ModelError, match="no tokenizer"):
        load(folder)


def test_a_tokenizer_of_special_tokens_alone_is_refused(tmp_path):
    folder = tiny_bert(tmp_path / "bert")
    write_tokenizer(folder, WORDS[:5])
    with pytest.raises(ModelError, match="no tokenizer"):
        load(folder)


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000])
def test_a_damaged_tokenizer_is_named(tmp_path, name, content):
    folder = tiny_bert(tmp_path / "bert")
    (folder / name).write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer of .*bert"):
        load(folder)


def test_a_tokenizer_that_needs_another_package_says_which(tmp_path):
    folder = tiny_bert(tmp_path / "llama", tokenizer=False, model_type="llama")
    (folder / "tokenizer.model").write_bytes(b"no pieces")
    with pytest.raises(ModelError, match=r"pip install sentencepiece.*or add its tokenizer\.json"):
        load(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: write_tokenizer(folder, [*WORDS[:-2], WORDS[-1], WORDS[-2]]),
        lambda folder: write_tokenizer(folder, do_lower_case=False),
        lambda folder: write_tokenizer(folder, padding_side="left"),
        lambda folder: (folder / "config.json").write_text(
            json.dumps(json.loads((folder / "config.json").read_text()) | {"num_attention_heads": 8})
        ),
        lambda folder: (folder / "config.json").write_text(
            json.dumps(json.loads((folder / "config.json").read_text()) | {"layer_norm_eps": 1e-3})
        ),
    ],
    ids=["words swapped", "case kept", "padding", "heads", "epsilon"],
)
def test_another_tokenizer_or_config_with_the_same_weights_is_another_model(tmp_path, change):
    folder = tiny_bert(tmp_path / "bert")
    before = load(folder).fingerprint
    assert load(folder).fingerprint == before
    change(folder)
    assert load(folder).fingerprint != before


def test_the_fingerprint_does_not_depend_on_the_place_or_on_earlier_texts(tmp_path):
    one, other = load(tiny_bert(tmp_path / "one")), load(tiny_bert(tmp_path / "other"))
    one.tokenise(["the cat runs"], 4)
    assert one.fingerprint == other.fingerprint == load(tmp_path / "one").fingerprint


def test_a_token_that_the_model_does_not_have_is_named(tmp_path):
    folder = tiny_bert(tmp_path / "bert")
    write_tokenizer(folder, [*WORDS, "elephant"])
    model = load(folder)
    assert model.tokenise(["the cat"], 8)["input_ids"].shape == (1, 4)
    with pytest.raises(InputError, match=rf"token {len(WORDS)}\b.*{len(WORDS)} words"):
        model.tokenise(["the elephant"], 8)


def test_a_text_of_words_that_the_model_does_not_know_is_skipped_and_why(tmp_path):
    model = load(tiny_bert(tmp_path / "bert"))
    texts = [TextItem("known", "the cat runs"), TextItem("unknown", "\u4e00 \u4e01 \u4e03 \u4e08 \u4e09")]
    known, unknown = (TextShard((item,), known_only=True).prepare(model, Protocol.EXACT) for item in texts)
    assert known.names == ("known",)
    assert unknown.inputs is None
    ((name, reason),) = unknown.skipped
    assert name == "unknown"
    assert "71% tokens that" in reason


def test_texts_in_one_batch_need_a_padding_token(tmp_path):
    model = load(tiny_bert(tmp_path / "bert"))
    assert model.tokenise(["the cat", "the dog runs"], 8)["input_ids"].shape == (2, 5)


def test_texts_are_no_longer_than_the_model_has_positions(tmp_path):
    model = load(tiny_bert(tmp_path / "bert"))
    assert model.tokenise(["cat " * 100], 256)["input_ids"].shape == (1, 64)
    assert model.tokenise(["cat " * 100], 16)["input_ids"].shape == (1, 16)
