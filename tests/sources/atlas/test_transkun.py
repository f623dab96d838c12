"""Transkun: lines of a grid attend by themselves, intervals have scores, and an untrained model is noticed."""

import io
import json
import math

import pytest
import torch

from attnaudit.capture import capture
from attnaudit.errors import WeightsError
from attnaudit.sources.atlas import transkun
from attnaudit.sources.atlas.architectures.spectrogram import Spectrogram, mel_bands
from attnaudit.sources.atlas.architectures.transkun import AxisBlock, GridLayer, Positions, Transkun
from tests.sources.atlas.archives import converted

SETTINGS = {
    **{"fs": 44100, "hopSize": 1024, "windowSize": 4096, "n_mels": 40, "f_min": 30, "f_max": 8000, "nExtraWins": 2},
    **{"baseSize": 4, "nLayers": 1, "nHead": 2, "hiddenFactor": 2},
}
#: Numbers of convolutions and norms in the file, by ours.
CONVOLUTIONS = {1: 1, 2: 2, 4: 5, 5: 6, 7: 9, 8: 10, 10: 13, 11: 14}


def small_network():
    torch.manual_seed(0)
    return Transkun(**transkun._config(SETTINGS)).eval()


def theirs(name):
    """The name of a weight in the file."""
    first, _, rest = name.partition(".")
    if first == "spectrogram":
        return f"framewiseFeatureExtractor.spectrogramExtractor.winGen.{ {'width': 'sigma', 'centre': 'center'}[rest] }"
    if first == "ends":
        return f"scorer.map.0.{rest}"
    if first == "shrink":
        number, kind = rest.split(".")
        return f"backbone.downConv.{CONVOLUTIONS[int(number)]}.{kind}"
    if first == "layers":
        layer, axis, inside = rest.split(".", 2)
        letter = {"rows": "F", "moments": "T"}[axis]
        block = f"backbone.encoderLayers.{layer}"
        if inside.startswith("scale_"):
            return f"{block}.{'mha' if inside == 'scale_attention' else 'fnn'}Block{letter}.scale"
        if inside.startswith("network."):
            inner = inside.removeprefix("network.").replace("2.", "3.")
            return f"{block}.fnnBlock{letter}.module.{inner}"
        inner = inside.replace("out.", "out_proj.")
        if inner.split(".")[0] in ("query", "key", "value"):
            inner = f"{inner[0]}_proj_weight"
        return f"{block}.mhaBlock{letter}.module.{inner}"
    if "positions" in first:
        which = {"band": "", "heard": "AttnTF", "event": "AttnTE"}[first.removesuffix("_positions")]
        inner = rest.replace("turn.", "proj.").replace("network.2", "mlp.3").replace("network.0", "mlp.0")
        return f"backbone.posEmbedBuilder{which}.{inner}"
    return f"backbone.{ {'first': 'inputConv', 'spread': 'upConv1dSkip'}[first] }.{rest}"


@pytest.fixture
def folder(tmp_path):
    """A small untrained model, converted from a package like the real one."""
    state = {
        theirs(name): own.T if theirs(name).endswith("_proj_weight") else own
        for name, own in small_network().state_dict().items()
    }
    unread = ("framewiseFeatureExtractor.freq2mels", "framewiseFeatureExtractor.spectrogramExtractor.win",
              "velocityPredictor.0.weight", "refinedOFPredictor.3.bias")  # fmt: skip
    file = io.BytesIO()
    torch.save({"state_dict": state | {name: torch.ones(3) for name in unread}}, file)
    conf = json.dumps({"Model": {"config": SETTINGS}}).encode()
    names = [own.name for own in transkun.TRANSKUN.files]
    return converted(transkun.TRANSKUN, dict(zip(names, (file.getvalue(), conf), strict=True)), tmp_path)


def test_a_block_attends_from_normalised_queries_to_keys_and_values_of_what_its_layer_was_given():
    torch.manual_seed(0)
    block, x, given = AxisBlock(8, 2, 16), torch.randn(1, 3, 5, 8), torch.randn(1, 3, 5, 8)
    torch.nn.init.normal_(block.scale_attention)
    torch.nn.init.normal_(block.scale_network)

    def normed(rows):
        return rows / (rows.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()

    for line in range(3):
        query = normed(x[0, line]) @ block.query.weight.T
        key, value = (given[0, line] @ own.weight.T for own in (block.key, block.value))
        mixed = torch.cat(
            [(query[:, h] @ key[:, h].T / 2).softmax(-1) @ value[:, h] for h in (slice(0, 4), slice(4, 8))], -1
        )
        between = x[0, line] + block.out(mixed) * block.scale_attention
        expected = between + block.network(normed(between)) * block.scale_network
        assert torch.allclose(block(x, given)[0, line], expected, atol=1e-5)


def test_a_layer_attends_among_rows_and_then_among_moments_and_both_look_at_what_it_was_given():
    torch.manual_seed(0)
    layer, x = GridLayer(8, 2, 16), torch.randn(1, 4, 3, 8)
    between = torch.stack([layer.rows(x[:, own][:, None], x[:, own][:, None])[:, 0] for own in range(4)], 1)
    after = [layer.moments(between[:, :, own][:, None], x[:, :, own][:, None])[:, 0] for own in range(3)]
    assert torch.allclose(layer(x), torch.stack(after, 2), atol=1e-6)


def test_positions_are_a_network_on_cosines_of_every_place_of_a_grid():
    torch.manual_seed(0)
    positions = Positions(2, 8)
    found = positions(torch.tensor([0.0, 1.0]), torch.tensor([-64.0, 21.0, 22.0]))
    place = torch.tensor([1.0, 21.0])
    expected = positions.network((positions.turn.weight @ place + positions.turn.bias).cos() / 2)
    assert found.shape == (2, 3, 8)
    assert torch.allclose(found[1, 1], expected, atol=1e-5)


def test_bands_are_triangles_that_add_up_to_one_between_the_first_and_the_last():
    bands = mel_bands(44100, 4096, 60, 30.0, 8000.0)
    hertz = torch.linspace(0, 22050, 2049)
    middles = 700 * (10 ** (torch.linspace(*(2595 * math.log10(1 + f / 700) for f in (30, 8000)), 62) / 2595) - 1)
    inside = (hertz > middles[1]) & (hertz < middles[-2])
    assert torch.allclose(bands.sum(1)[inside], torch.ones(()), atol=1e-4)
    assert not bands[(hertz < 30) | (hertz > 8000)].any()


def test_a_tone_is_seen_in_its_band_and_loudness_does_not_matter():
    spectrogram = Spectrogram(44100, 1024, 4096, 60, 30.0, 8000.0, 2)
    sound = torch.sin(2 * math.pi * 1000 * torch.arange(44100) / 44100)[None]
    seen = spectrogram(sound)
    assert seen.shape == (1, 3, 45, 60)
    band = mel_bands(44100, 4096, 60, 30.0, 8000.0)[round(1000 / 44100 * 4096)].argmax()
    assert (seen[0, :, 5:-5].argmax(-1) == band).all()
    torch.testing.assert_close(spectrogram(7 * sound), seen, atol=1e-3, rtol=0)
    assert spectrogram(torch.zeros(1, 4096)).abs().max() < 1e-6


def test_scores_are_products_of_both_ends_times_the_length_and_single_frames_have_their_own():
    network = small_network()
    found = torch.randn(1, 2, 6, 16)
    scores = network._scores(found)
    last, first, alone = network.ends(found[0, 1]).split([16, 16, 1], -1)
    assert scores[0, 1, 5, 2].item() == pytest.approx((last[5] @ first[2]).item() / 4 * 3, rel=1e-4)
    assert scores[0, 1, 4, 4].item() == pytest.approx(alone[4].item(), rel=1e-4)


def test_an_untrained_model_from_a_package_keeps_its_weights_and_is_noticed(folder):
    given = small_network().state_dict()
    network = transkun.build(folder, None)
    assert all(torch.equal(own, given[name]) for name, own in network.state_dict().items())
    with pytest.raises(WeightsError, match=r"It hears . of 20 notes of a piano"):
        transkun.check(folder)


def test_recordings_differ_and_are_long_enough_for_a_verdict(folder, monkeypatch):
    monkeypatch.setattr(transkun, "_PIECES", 2)
    first, second = transkun.samples(folder)
    assert first.name != second.name
    assert first.inputs["sound"].shape == second.inputs["sound"].shape
    assert not torch.equal(first.inputs["sound"], second.inputs["sound"])
    found = capture(transkun.build(folder, None), dict(first.inputs))
    rows, moments = found.layers
    bands = math.ceil((SETTINGS["n_mels"] + 3) / 4)
    assert (rows.tokens, moments.tokens) == (1 + bands + len(transkun.EVENTS), 67)
    assert moments.tokens >= 64, "twice the dimensions of a head of the real model"
    assert len(rows) == len(moments) == SETTINGS["nHead"] * AxisBlock.windows_kept
    assert [str(own) for own in found.traits.values()] == [
        f"{lines - AxisBlock.windows_kept} windows left out" for lines in (moments.tokens, rows.tokens)
    ]
    assert not found.refusals
