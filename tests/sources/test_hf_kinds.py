"""Folders of vision models, decoders and encoder-decoders are models like encoders of text."""

import numpy as np
import pytest
import torch
from PIL import Image

from attnaudit.capture import capture
from attnaudit.errors import ModelError
from attnaudit.protocol import Protocol
from attnaudit.sources import load_model, parse_model
from tests.sources.hf_folders import WORDS, write_tokenizer

transformers = pytest.importorskip("transformers")

SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 32}


def write(folder, config, tokenizer=True):
    torch.manual_seed(0)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    if tokenizer:
        write_tokenizer(folder, pad_token=None)
    return load_model(parse_model(str(folder)))


@pytest.fixture
def vit(tmp_path):
    transformers.ViTImageProcessor(size={"height": 32, "width": 32}).save_pretrained(tmp_path / "vit")
    return write(tmp_path / "vit", transformers.ViTConfig(**SIZES, image_size=32, patch_size=8), tokenizer=False)


def test_vision_models_prepare_images_as_their_processor_says(vit):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8))
    exact, paper = (vit.preprocess(protocol)(image) for protocol in (Protocol.EXACT, Protocol.PAPER))
    assert exact.shape == paper.shape == (3, 32, 32)
    expected = transformers.ViTImageProcessor(size={"height": 32, "width": 32})(images=image, return_tensors="pt")
    torch.testing.assert_close(exact, expected["pixel_values"][0])
    assert vit.tokenise is None
    assert len(capture(vit.module, exact[None]).layers) == 2


def test_vision_models_read_images(vit, tmp_path):
    assert parse_model(str(tmp_path / "vit")).inputs.kind == "images"


def test_another_preparation_is_another_model(vit, tmp_path):
    other = transformers.ViTImageProcessor(size={"height": 32, "width": 32}, image_mean=[0.1, 0.2, 0.3])
    other.save_pretrained(tmp_path / "vit")
    assert load_model(parse_model(str(tmp_path / "vit"))).fingerprint != vit.fingerprint


def test_a_vision_model_without_a_processor_says_what_is_missing(vit, tmp_path):
    (tmp_path / "vit" / "preprocessor_config.json").unlink()
    with pytest.raises(ModelError, match=r"no preprocessor_config\.json"):
        load_model(parse_model(str(tmp_path / "vit")))


def test_decoders_of_encoder_decoders_read_the_same_text(tmp_path):
    config = transformers.BartConfig(
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=32, decoder_ffn_dim=32, vocab_size=len(WORDS), max_position_embeddings=64,
    )  # fmt: skip
    model = write(tmp_path / "bart", config)
    batch = model.tokenise(["the cat runs under the tree because the dog sleeps"], 64)
    assert torch.equal(batch["decoder_input_ids"], batch["input_ids"])
    found = capture(model.module, batch)
    assert [name.rsplit(".", 1)[-1] for name in found.layer_names] == ["self_attn", "self_attn", "encoder_attn"]
    assert [found.traits[name].causal for name in found.layer_names] == [False, True, False]


def test_texts_of_a_batch_need_no_padding_token(tmp_path):
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=2, vocab_size=len(WORDS), max_position_embeddings=64)
    model = write(tmp_path / "llama", config)
    batch = model.tokenise(["the cat runs", "the cat runs under the tree"], 64)
    lengths = {heads.index[0].input: heads.tokens for heads in capture(model.module, batch).layers}
    assert lengths == {f"input-{place}": int(own) for place, own in enumerate(batch["attention_mask"].sum(1))}


@pytest.mark.parametrize(("file", "words"), [("run.json", "without a finished model"), ("notes.txt", "no config.json")])
def test_a_folder_without_a_model_is_named_for_what_it_is(tmp_path, file, words):
    """A training that was interrupted has its settings and no card yet."""
    (tmp_path / file).write_text("{}")
    with pytest.raises(ModelError, match=words):
        parse_model(str(tmp_path))
