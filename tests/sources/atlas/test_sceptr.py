"""SCEPTR: the network against the formula of an encoder layer, one token at a time; its files; its samples."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import ModelError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.atlas.registry import ATLAS
from attnaudit.sources.atlas.sceptr import ReceptorEncoder, samples, tokenised
from tests.sources.atlas.packed import wheel
from tests.sources.atlas.tiny_encoders import saved

WIDTH, HEADS = 16, 8
LOOPS = ["DSAIYN", "IQSSQRE", "CAVTTDSWGKLQF", "MNHEY", "SVGAGI", "C"]
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def network(layers=1):
    torch.manual_seed(0)
    own = ReceptorEncoder(WIDTH, layers).eval()
    for parameter in own.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return own


def rows():
    """The features of each token, as the paper describes them: letter, place in the loop, loop."""
    whole = np.zeros(29)
    whole[1] = 1  # the second of two kinds of token that are no letters
    found = [whole]
    for number, loop in enumerate(LOOPS):
        for place, letter in enumerate(loop):
            own = np.zeros(29)
            own[2 + LETTERS.index(letter)] = 1
            own[22] = place / (len(loop) - 1) if len(loop) > 1 else 0.5
            own[23 + number] = 1
            found.append(own)
    return np.stack(found)


def normed(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * gain + shift


def encoded(weights, features):
    x = features @ weights["project.weight"].T
    layer = {name.removeprefix("encoder.layers.0."): own for name, own in weights.items()}
    joint = x @ layer["self_attn.in_proj_weight"].T + layer["self_attn.in_proj_bias"]
    q, k, v = (part.reshape(len(x), HEADS, -1) for part in np.split(joint, 3, axis=1))
    logits = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(WIDTH / HEADS)
    attention = np.exp(logits - logits.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    heads = np.einsum("hij,jhd->ihd", attention, v).reshape(len(x), WIDTH)
    x = x + heads @ layer["self_attn.out_proj.weight"].T + layer["self_attn.out_proj.bias"]
    x = normed(x, layer["norm1.weight"], layer["norm1.bias"])
    inner = np.maximum(x @ layer["linear1.weight"].T + layer["linear1.bias"], 0)
    x = x + inner @ layer["linear2.weight"].T + layer["linear2.bias"]
    return normed(x, layer["norm2.weight"], layer["norm2.bias"])


def test_the_network_is_the_formula():
    own = network().double()
    weights = {name: tensor.numpy() for name, tensor in own.state_dict().items()}
    with torch.no_grad():
        found = own(tokenised(LOOPS))[0].numpy()
    np.testing.assert_allclose(found, encoded(weights, rows()), atol=1e-6)  # places are in single precision


@pytest.fixture
def packed(tmp_path, monkeypatch):
    """A wheel with an untrained network under the names of the package, and its wheel's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNAUDIT_DATA", raising=False)
    torch.manual_seed(0)
    own = ReceptorEncoder(64, 3).eval()
    stack = "_self_attention_stack._"
    theirs = {
        "project.": f"{stack}initial_projector.",
        "encoder.": f"{stack}standard_stack._self_attention_stack.",
        "letters.": "_mlm_token_prediction_projector.projector.",
    }
    weights = {"_token_embedder._token_embedding._token_embeddings": torch.zeros(23, 22)}
    for name, tensor in own.state_dict().items():
        first = f"{name.partition('.')[0]}."
        weights[name.replace(first, theirs[first], 1)] = tensor
    content = saved(weights)
    wheel(tmp_path, "sceptr", {"_model_saves/SCEPTR/state_dict.pt": content}, tmp_path / "trap")
    (file,) = ATLAS["sceptr"].files
    file = replace(file, sha256=hashlib.sha256(content).hexdigest())
    monkeypatch.setitem(ATLAS, "sceptr", replace(ATLAS["sceptr"], files=(file,)))
    return own


def test_a_package_becomes_the_network(packed, tmp_path, monkeypatch):
    monkeypatch.setitem(ATLAS, "sceptr", replace(ATLAS["sceptr"], check=lambda folder: None))
    model = load_model(parse_model("sceptr", weights=tmp_path))
    found = capture(model.module, {"tokens": tokenised(LOOPS)})
    assert len(found.layer_names) == 3
    with torch.no_grad():
        torch.testing.assert_close(model.module(tokenised(LOOPS)), packed(tokenised(LOOPS)))


def test_a_network_that_was_not_trained_fails_its_check(packed, tmp_path):
    with pytest.raises(ModelError, match=r"sceptr was not converted: It guesses \d+ of 424 masked letters"):
        parse_model("sceptr", weights=tmp_path)


def test_samples_are_enough_for_a_verdict(tmp_path):
    found = samples(tmp_path)
    assert len({own.name for own in found}) == len(found) >= 24
    head = 128 // 8  # of the wider network
    assert all(own.inputs["tokens"].shape[1] >= 2 * head for own in found)
