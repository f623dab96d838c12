"""Piano music as tokens: positions turn pairs of neighbours, chords have one time, an untrained model is noticed."""

import io

import pytest
import torch

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas import midisim
from attnaudit.sources.atlas.architectures.note_encoder import ROTATED, NoteAttention, NoteEncoder, rotated
from tests.sources.atlas.archives import converted

SMALL = {"tokens": 386, "width": 128, "layers": 2, "heads": 2}


def theirs(name):
    """The name of a weight in the layout of x-transformers."""
    kind, _, rest = name.partition(".")
    outside = {"embedding": "token_emb.emb.weight", "norm": "attn_layers.final_norm.gamma", "to_logits": name}
    if kind in outside:
        return outside[kind]
    layer, _, inside = rest.partition(".")
    block = 2 * int(layer) + (kind == "network")
    inner = {"norm.gamma": "0.0.gamma", "0.gamma": "0.0.gamma"}.get(inside)
    if inner is None and kind == "attention":
        inner = f"1.{inside}"
    if inner is None:
        inner = f"1.ff.0.0.{inside[2:]}" if inside.startswith("1.") else f"1.ff.2.{inside[2:]}"
    return f"attn_layers.layers.{block}.{inner}"


def test_positions_turn_pairs_by_an_angle_that_grows_with_time_and_leave_the_rest():
    torch.manual_seed(0)
    x = torch.randn(1, 1, 5, 64)
    found = rotated(x)
    pairs = torch.view_as_complex(x[..., :ROTATED].unflatten(-1, (-1, 2)).contiguous())
    speeds = 10000.0 ** (-2 * torch.arange(ROTATED // 2) / ROTATED)
    turned = pairs * torch.exp(1j * torch.arange(5)[:, None] * speeds)
    assert torch.allclose(found[..., :ROTATED], torch.view_as_real(turned).flatten(-2), atol=1e-6)
    assert torch.equal(found[..., ROTATED:], x[..., ROTATED:])


def test_attention_is_softmax_of_turned_queries_and_keys_of_normalised_tokens():
    torch.manual_seed(0)
    layer, x = NoteAttention(64, 1), torch.randn(1, 4, 64)
    normed = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-5).sqrt()
    query, key = (rotated(own(normed)[:, None])[0, 0] for own in (layer.to_q, layer.to_k))
    expected = layer.to_out((query @ key.T / 8).softmax(-1) @ layer.to_v(normed)[0])
    assert torch.allclose(layer(x)[0], expected, atol=1e-6)


def test_a_chord_is_its_time_and_then_length_and_pitch_of_each_note():
    assert midisim.tokens([(8, 4, (60,)), (16, 2, (67, 64))]).tolist() == [[8, 132, 316, 16, 130, 323, 130, 320]]


def test_degrees_of_a_scale_go_on_into_the_next_octave():
    assert [midisim.degree(60, step) for step in (0, 1, 6, 7, 9)] == [60, 62, 71, 72, 76]


def test_pieces_are_of_one_length_and_within_the_vocabulary(tmp_path):
    pieces = midisim.samples(tmp_path)
    assert len({own.name for own in pieces}) == 16
    music = torch.cat([own.inputs["tokens"] for own in pieces])
    assert music.shape == (16, 256)
    assert 0 <= music.min() < music.max() < midisim.MASK


def test_an_untrained_model_from_a_package_keeps_its_weights_and_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(midisim, "_CONFIG", SMALL)
    torch.manual_seed(0)
    given = NoteEncoder(**SMALL).state_dict()
    file = io.BytesIO()
    angles = {"attn_layers.rotary_pos_emb.inv_freq": torch.ones(16)}
    torch.save({theirs(name): own for name, own in given.items()} | angles, file)
    folder = converted(midisim.MIDISIM, {midisim.MIDISIM.files[0].name: file.getvalue()}, tmp_path)
    network = midisim.build(folder, None)
    assert all(torch.equal(own, given[name]) for name, own in network.state_dict().items())
    with pytest.raises(WeightsError, match=r"It guesses .* of the masked tokens of a scale"):
        midisim.check(folder)
