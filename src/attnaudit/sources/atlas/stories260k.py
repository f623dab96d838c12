"""stories260K, a tiny Llama that tells stories, in the files of llama2.c.

A file is a header of seven numbers and then all weights, layer upon layer of one kind after the other. Queries and keys
are rotated in pairs of neighbours, where transformers rotates the first half of a head with the second. The vocabulary
is that of SentencePiece: a text is put together from its characters by joining, again and again, the two neighbours
whose union has the best score.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import save_file
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.checks import continues
from attnaudit.sources.atlas.entry import AtlasModel, KnownFile

_WEIGHTS, _WORDS = "stories260K.bin", "tok512.bin"
_HEADER = "<7i"
#: Cosines and sines of every position, which follow from the config.
_ANGLES = "angles"
_SPACE = "\u2581"
_UNKNOWN, _BEGINNING, _END = "<unk>", "<s>", "</s>"


def convert(files: Mapping[str, Path], folder: Path) -> tuple[str, ...]:
    """Write config, weights and tokenizer."""
    config, tensors = read_llama2c(files[_WEIGHTS])
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    pieces = read_pieces(files[_WORDS], config["vocab_size"])
    write_pieces(pieces, folder)
    return ()


def read_llama2c(file: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The config and the tensors of a file, both as transformers has them.

    Raises:
        WeightsError: it is shorter or longer than its header says.
    """
    content = file.read_bytes()
    size = struct.calcsize(_HEADER)
    width, inner, layers, heads, key_heads, words, positions = struct.unpack(_HEADER, content[:size])
    numbers = np.frombuffer(content, dtype="<f4", offset=size)
    narrow, half = width // heads * key_heads, width // heads // 2
    shapes = {
        "embed_tokens": (words, width),
        "input_layernorm": (layers, width),
        "self_attn.q_proj": (layers, width, width),
        "self_attn.k_proj": (layers, narrow, width),
        "self_attn.v_proj": (layers, narrow, width),
        "self_attn.o_proj": (layers, width, width),
        "post_attention_layernorm": (layers, width),
        "mlp.gate_proj": (layers, inner, width),
        "mlp.down_proj": (layers, width, inner),
        "mlp.up_proj": (layers, inner, width),
        "norm": (width,),
        _ANGLES: (2, positions, half),
    }
    if sum(map(np.prod, shapes.values())) != len(numbers):
        raise WeightsError(f"{file} has {len(numbers):,} numbers, which are not those that its header describes.")
    tensors: dict[str, Tensor] = {}
    for name, shape in shapes.items():
        count = int(np.prod(shape))
        whole, numbers = torch.from_numpy(numbers[:count].reshape(shape).copy()), numbers[count:]
        if name in ("embed_tokens", "norm"):
            tensors[f"{name}.weight"] = whole
        elif name != _ANGLES:
            turning = {"self_attn.q_proj": heads, "self_attn.k_proj": key_heads}.get(name)
            for layer, own in enumerate(whole):
                tensors[f"layers.{layer}.{name}.weight"] = own.clone() if turning is None else halves(own, turning)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **{"hidden_size": width, "intermediate_size": inner, "num_hidden_layers": layers},
        **{"num_attention_heads": heads, "num_key_value_heads": key_heads, "vocab_size": words},
        **{"max_position_embeddings": positions, "rms_norm_eps": 1e-5, "rope_theta": 10000.0},
        **{"tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2},
    }
    return config, tensors


def halves(weight: Float[Tensor, "rows width"], heads: int) -> Float[Tensor, "rows width"]:
    """The rows of each head, those that come first in their pair before those that come second."""
    pairs = weight.reshape(heads, -1, 2, weight.shape[1])
    return pairs.transpose(1, 2).reshape(weight.shape)


def read_pieces(file: Path, count: int) -> list[tuple[str, float]]:
    """The pieces of a vocabulary, in order, with their scores.

    Raises:
        WeightsError: there are more or fewer.
    """
    content = file.read_bytes()[4:]  # the length of the longest piece is not needed

    def pieces() -> Iterator[tuple[str, float]]:
        place = 0
        while place < len(content):
            score, length = struct.unpack_from("<fi", content, place)
            place += 8 + length
            yield content[place - length : place].decode(), score

    found = list(pieces())
    if len(found) != count:
        raise WeightsError(f"{file} has {len(found)} pieces instead of {count}.")
    named = [(_UNKNOWN, 0.0), (_BEGINNING, 0.0), (_END, 0.0)]
    return named + [(piece.replace(" ", _SPACE), score) for piece, score in found[3:]]


def write_pieces(pieces: list[tuple[str, float]], folder: Path) -> None:
    """A tokenizer for transformers: two pieces are joined if their union is one, the best unions first."""
    import tokenizers
    from tokenizers import decoders, models, normalizers, processors

    numbers = {piece: number for number, (piece, _) in enumerate(pieces)}
    unions = [
        (score, piece[:cut], piece[cut:])
        for piece, score in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in numbers and piece[cut:] in numbers
    ]
    merges = [(left, right) for _, left, right in sorted(unions, key=lambda union: -union[0])]
    rules = tokenizers.Tokenizer(models.BPE(numbers, merges, unk_token=_UNKNOWN, fuse_unk=True, byte_fallback=True))
    rules.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)])
    rules.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    rules.post_processor = processors.TemplateProcessing(
        single=f"{_BEGINNING} $A", special_tokens=[(_BEGINNING, numbers[_BEGINNING])]
    )
    rules.add_special_tokens([_UNKNOWN, _BEGINNING, _END])
    rules.save(str(folder / "tokenizer.json"))
    special = {"unk_token": _UNKNOWN, "bos_token": _BEGINNING, "eos_token": _END}
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(kind | special))


STORIES260K = AtlasModel(
    name="stories260k",
    field="decoders",
    architecture="Llama, 5 layers, 8 heads on 4 key heads, width 64",
    licence="MIT, as stated by others",
    megabytes=1,
    files=(
        KnownFile(_WEIGHTS, "b0a507e7ad0f626624f17112325e66691f9076d622e1d3274d103d00299f2696"),
        KnownFile(_WORDS, "037cb335abb25d1fa9e8ecae30ed2a3a8ace9302862ebcdc05d51a6bbb10c312"),
    ),
    convert=convert,
    check=partial(continues, prompt="Once upon a time", expected=", there was a little", tokens=12),
)
