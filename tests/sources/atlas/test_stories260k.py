"""The files of llama2.c become the same network and the same tokens in transformers."""

import itertools
import struct

import numpy as np
import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import WeightsError
from attnaudit.sources import load_model, parse_model
from attnaudit.sources.atlas.checks import language_model
from attnaudit.sources.atlas.stories260k import read_llama2c, read_pieces, write_pieces
from attnaudit.sources.data import data_file

transformers = pytest.importorskip("transformers")
WIDTH, INNER, LAYERS, HEADS, KEY_HEADS, WORDS, POSITIONS = SIZES = 16, 24, 2, 4, 2, 11, 12
DATA = data_file("stories260K")


def numbers():
    """All weights of a small model, in the order of the file."""
    source = np.random.default_rng(0)
    narrow, half = WIDTH // HEADS * KEY_HEADS, WIDTH // HEADS // 2
    shapes = {"embedding": (WORDS, WIDTH), "norm1": (LAYERS, WIDTH), "q": (LAYERS, WIDTH, WIDTH)}
    shapes |= {"k": (LAYERS, narrow, WIDTH), "v": (LAYERS, narrow, WIDTH), "o": (LAYERS, WIDTH, WIDTH)}
    shapes |= {"norm2": (LAYERS, WIDTH), "gate": (LAYERS, INNER, WIDTH), "down": (LAYERS, WIDTH, INNER)}
    shapes |= {"up": (LAYERS, INNER, WIDTH), "norm": (WIDTH,), "angles": (2, POSITIONS, half)}
    return {name: source.normal(size=shape).astype("<f4") / 2 for name, shape in shapes.items()}


def write(path, weights):
    path.write_bytes(struct.pack("<7i", *SIZES) + b"".join(own.tobytes() for own in weights.values()))
    return path


def normed(x, gain):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * gain


def rotated(x):
    """Neighbours are rotated together: the formula of llama2.c, one head and position at a time."""
    tokens, _, size = x.shape
    turned = np.empty_like(x)
    for token in range(tokens):
        for place in range(0, size, 2):
            angle = token / 10000 ** (place / size)
            a, b = x[token, :, place], x[token, :, place + 1]
            turned[token, :, place] = a * np.cos(angle) - b * np.sin(angle)
            turned[token, :, place + 1] = a * np.sin(angle) + b * np.cos(angle)
    return turned


def scores(weights, ids):
    """The forward pass as llama2.c does it."""
    x = weights["embedding"][ids].astype(float)
    size, mask = WIDTH // HEADS, np.triu(np.full((len(ids), len(ids)), -np.inf), 1)
    for layer in range(LAYERS):
        own = {name: value[layer] for name, value in weights.items() if len(value) == LAYERS}
        h = normed(x, own["norm1"])
        q, k = (rotated((h @ own[name].T).reshape(len(ids), -1, size)) for name in "qk")
        v = (h @ own["v"].T).reshape(len(ids), -1, size)
        k, v = (np.repeat(each, HEADS // KEY_HEADS, axis=1) for each in (k, v))
        logits = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size) + mask
        attention = np.exp(logits - logits.max(-1, keepdims=True))
        attention /= attention.sum(-1, keepdims=True)
        x = x + np.einsum("hij,jhd->ihd", attention, v).reshape(len(ids), -1) @ own["o"].T
        h = normed(x, own["norm2"])
        gate = h @ own["gate"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ own["up"].T)) @ own["down"].T
    return normed(x, weights["norm"]) @ weights["embedding"].T


def test_the_network_computes_what_the_format_means(tmp_path):
    weights = numbers()
    config, tensors = read_llama2c(write(tmp_path / "model.bin", weights))
    model = transformers.LlamaForCausalLM(transformers.AutoConfig.for_model(**config)).eval()
    model.model.load_state_dict(tensors)
    model.tie_weights()
    ids = [1, 5, 3, 10, 2, 7, 7]
    with torch.no_grad():
        found = model(torch.tensor([ids])).logits[0]
    np.testing.assert_allclose(found.numpy(), scores(weights, ids), atol=2e-4)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = write(tmp_path / "model.bin", numbers())
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(WeightsError, match="not those that its header describes"):
        read_llama2c(path)


def joined(text, pieces):
    """The rule of llama2.c: of all neighbours, join those whose union has the best score, until none has one."""
    number = {piece: place for place, (piece, _) in enumerate(pieces)}
    parts = []
    for letter in f"\u2581{text}".replace(" ", "\u2581"):
        parts += [letter] if letter in number else [f"<0x{byte:02X}>" for byte in letter.encode()]
    while True:
        unions = [a + b for a, b in itertools.pairwise(parts)]
        known = [(pieces[number[own]][1], -place) for place, own in enumerate(unions) if own in number]
        if not known:
            return [1, *(number[part] for part in parts)]
        place = -max(known)[1]
        parts[place : place + 2] = [unions[place]]


@pytest.mark.realdata
@pytest.mark.skipif(DATA is None, reason="ATTNAUDIT_DATA has no stories260K")
def test_texts_become_the_tokens_of_llama2c(tmp_path):
    pieces = read_pieces(DATA / "tok512.bin", 512)
    write_pieces(pieces, tmp_path)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    texts = [
        "Once upon a time, there was a little girl named Lily.",
        "",
        "a",
        "  two  spaces",
        "naïve café – 3€ 日本\n\t!",
    ]
    from pydoc_data.topics import topics

    for text in (*texts, *(topics[name][:400] for name in sorted(topics)[:20])):
        ids = tokenizer(text)["input_ids"]
        assert ids == (joined(text, pieces) if text else [1]), text
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


@pytest.mark.realdata
@pytest.mark.skipif(DATA is None, reason="ATTNAUDIT_DATA has no stories260K")
def test_it_tells_a_story(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = load_model(parse_model("stories260k"))
    found = capture(model.module, model.tokenise(["Once upon a time"], 64))
    assert len(found.layer_names) == 5
    (folder,) = (tmp_path / "attnaudit" / "models").glob("stories260k-*[!k]")
    network, tokenizer = language_model(folder)
    ids = tokenizer("Once upon a time", return_tensors="pt")["input_ids"]
    with torch.no_grad():
        for _ in range(40):
            ids = torch.cat([ids, network(ids).logits[:, -1].argmax(-1, keepdim=True)], 1)
    assert tokenizer.decode(ids[0], skip_special_tokens=True).startswith(
        "Once upon a time, there was a little girl named"
    )
