"""Whisper from a file of CTranslate2: tensors get transformers' names, and an untrained one hears nothing."""

import json

import pytest
import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.whisper import WHISPER_BASE, WHISPER_TINY, samples, transformers_names
from tests.sources.atlas.archives import converted
from tests.sources.atlas.test_ctranslate2_weights import ctranslate2_file

pytest.importorskip("transformers")
WIDTH, WORDS, LAYERS = 64, 51865, 1


def stored_variables():
    """A Whisper with one layer of one head on each side, as CTranslate2 keeps it."""
    source = torch.Generator().manual_seed(0)

    def draw(*shape):
        return (torch.randn(*shape, generator=source) * 0.05).half()

    def linear(name, rows, columns):
        return {f"{name}/weight": draw(rows, columns), f"{name}/bias": draw(rows)}

    def norm(name):
        return {f"{name}/gamma": draw(WIDTH) + 1, f"{name}/beta": draw(WIDTH)}

    found = {
        "decoder/num_heads": torch.tensor(1, dtype=torch.int16),
        "decoder/embeddings/weight": draw(WORDS, WIDTH),
        "decoder/position_encodings/encodings": draw(16, WIDTH),
        "encoder/position_encodings/encodings": draw(1500, WIDTH),
        "encoder/conv1/weight": draw(WIDTH, 80, 3),
        "encoder/conv1/bias": draw(WIDTH),
        "encoder/conv2/weight": draw(WIDTH, WIDTH, 3),
        "encoder/conv2/bias": draw(WIDTH),
        **norm("encoder/layer_norm"),
        **norm("decoder/layer_norm"),
    }
    for side in ("encoder", "decoder"):
        base = f"{side}/layer_0"
        found |= norm(f"{base}/self_attention/layer_norm") | norm(f"{base}/ffn/layer_norm")
        found |= linear(f"{base}/self_attention/linear_0", 3 * WIDTH, WIDTH)
        found |= linear(f"{base}/self_attention/linear_1", WIDTH, WIDTH)
        found |= linear(f"{base}/ffn/linear_0", 4 * WIDTH, WIDTH) | linear(f"{base}/ffn/linear_1", WIDTH, 4 * WIDTH)
    found |= norm("decoder/layer_0/attention/layer_norm")
    found |= linear("decoder/layer_0/attention/linear_0", WIDTH, WIDTH)
    found |= linear("decoder/layer_0/attention/linear_1", 2 * WIDTH, WIDTH)
    return found | linear("decoder/layer_0/attention/linear_2", WIDTH, WIDTH)


def test_queries_keys_and_values_are_taken_apart_in_their_order():
    stored = stored_variables()
    found = transformers_names(stored)
    joint = stored["encoder/layer_0/self_attention/linear_0/weight"].float()
    for place, name in enumerate("qkv"):
        own = found[f"encoder.layers.0.self_attn.{name}_proj.weight"]
        assert torch.equal(own, joint[place * WIDTH : (place + 1) * WIDTH])
    sound = stored["decoder/layer_0/attention/linear_1/weight"].float()
    assert torch.equal(found["decoder.layers.0.encoder_attn.v_proj.weight"], sound[WIDTH:])
    assert "encoder.layers.0.self_attn.k_proj.bias" not in found, "keys have none"


def test_a_package_becomes_an_encoder_that_runs_and_hears_nothing_untrained(tmp_path):
    content = ctranslate2_file(stored_variables())
    folder = converted(WHISPER_BASE, {WHISPER_BASE.files[0].name: content}, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    assert config["encoder_layers"] == LAYERS
    assert config["vocab_size"] == WORDS
    encoder = WHISPER_BASE.build(folder, None)
    frames = encoder(torch.zeros(1, 80, 3000)).last_hidden_state
    assert frames.shape == (1, 1500, WIDTH)
    with pytest.raises(WeightsError, match="It writes down the tokens"):
        WHISPER_BASE.check(folder)


def test_voices_are_half_a_minute_each_and_have_names_of_their_own(monkeypatch, tmp_path):
    monkeypatch.setattr("attnaudit.sources.atlas.whisper._VOICES", 2)
    first, second = samples(tmp_path)
    assert first.inputs["input_features"].shape == (1, 80, 3000)
    assert first.name != second.name
    assert not torch.equal(first.inputs["input_features"], second.inputs["input_features"])
    assert WHISPER_TINY.samples is samples
