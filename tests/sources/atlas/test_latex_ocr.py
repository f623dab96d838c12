"""The reader of formulas: later letters are hidden, pictures are black on white, an untrained one is noticed."""

import io
import json

import pytest
import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas import latex_ocr
from attnaudit.sources.atlas.architectures.formula_reader import DecoderBlock, EncoderBlock, FormulaReader
from tests.sources.atlas.archives import converted

SMALL = {"patch": 8, "patches": 1024, "letters": 102, "length": 512, "width": 32, "layers": 1, "heads": 2, "inner": 64}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A small untrained model, converted from a package like the real one."""
    monkeypatch.setattr(latex_ocr, "_CONFIG", SMALL)
    torch.manual_seed(0)
    file = io.BytesIO()
    torch.save({"epoch": 1, "model_state_dict": FormulaReader(**SMALL).state_dict()}, file)
    letters = sorted(set("".join(latex_ocr.FORMULAS)))
    numbers = {name: place for place, name in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *letters])}
    contents = {"best.pt": file.getvalue(), "tokenizer.json": json.dumps({"token_to_id": numbers}).encode()}
    return converted(latex_ocr.LATEX_OCR, contents, tmp_path)


def attention(layer, queries, keys, mask=None):
    """softmax(QKᵀ/√d)V of an `nn.MultiheadAttention`, head by head."""
    weights, biases = layer.in_proj_weight.chunk(3), layer.in_proj_bias.chunk(3)
    parts = (rows @ w.T + b for rows, w, b in zip((queries, keys, keys), weights, biases, strict=True))
    query, key, value = (own.chunk(layer.num_heads, -1) for own in parts)
    mixed = []
    for q, k, v in zip(query, key, value, strict=True):
        scores = q @ k.T / q.shape[-1] ** 0.5
        mixed.append((scores if mask is None else scores.masked_fill(mask, -torch.inf)).softmax(-1) @ v)
    return layer.out_proj(torch.cat(mixed, -1))


def test_blocks_add_what_follows_from_normalised_inputs():
    torch.manual_seed(0)
    encoder, decoder = EncoderBlock(8, 2, 16).eval(), DecoderBlock(8, 2, 16).eval()
    seen, x = torch.randn(5, 8), torch.randn(3, 8)
    normed = encoder.norm1(seen)
    after = seen + attention(encoder.attn, normed, normed)
    assert torch.allclose(encoder(seen[None])[0], after + encoder.mlp(encoder.norm2(after)), atol=1e-6)
    normed = decoder.self_norm(x)
    y = x + attention(decoder.self_attn, normed, normed, torch.ones(3, 3, dtype=torch.bool).triu(1))
    y = y + attention(decoder.cross_attn, decoder.cross_norm(y), seen)
    assert torch.allclose(decoder(x[None], seen[None])[0], y + decoder.ffn(decoder.ffn_norm(y)), atol=1e-6)


def test_a_letter_does_not_know_those_after_it(folder):
    network = latex_ocr.build(folder, None)
    picture, letters = torch.rand(1, 1, 128, 512), torch.arange(20)[None]
    changed = letters.clone()
    changed[0, 12:] = 7
    with torch.no_grad():
        assert torch.allclose(network(picture, letters)[0, :12], network(picture, changed)[0, :12], atol=1e-5)


def test_pictures_are_black_on_white_and_within_the_page():
    pytest.importorskip("matplotlib")
    for formula in (latex_ocr.FORMULAS[0], max(latex_ocr.FORMULAS, key=len)):
        page = latex_ocr.picture(formula)[0, 0]
        assert page.shape == (128, 512)
        assert page.min() < 0.2
        assert page.median() == 1
        assert page[:, [0, -1]].min() == 1, "nothing is cut off"


def test_formulas_are_long_enough_for_a_verdict(folder):
    pytest.importorskip("matplotlib")
    samples = latex_ocr.samples(folder)
    assert len({own.name for own in samples}) == 16
    assert all(own.inputs["letters"].shape[1] >= 64 for own in samples)


def test_an_untrained_model_is_noticed(folder):
    pytest.importorskip("matplotlib")
    with pytest.raises(WeightsError, match="It is surprised by formulas that it sees"):
        latex_ocr.check(folder)
