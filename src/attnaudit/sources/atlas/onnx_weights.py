"""The weights of an ONNX file, without the graph being run.

A file is one protocol-buffer message: a row of fields, each with a number that says what it is. Of the some hundred
kinds of field only those that lead to the initialisers are read (onnx.proto of ONNX 1.x), so that no other library is
needed.

Exporting a torch model, the weight of a linear layer that is applied by `MatMul` is transposed and loses its name. The
name of the node still says which layer it was: `/encoder/layer.0/query/MatMul` is `encoder.layer.0.query.weight`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnaudit.errors import WeightsError

#: Fields of the messages ModelProto, GraphProto, NodeProto and TensorProto.
_GRAPH = 7
_NODE, _INITIALISER = 1, 5
_INPUT, _NODE_NAME, _OPERATOR = 1, 3, 4
_SIZES, _KIND, _FLOATS, _INT32S, _INT64S, _NAME, _RAW, _DOUBLES, _ELSEWHERE = 1, 2, 4, 5, 7, 8, 9, 10, 14
#: Kinds of numbers, of those that weights and their scales have.
_NUMBERS = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 7: "<i8", 9: "?", 10: "<f2", 11: "<f8"}
_UNNAMED = "onnx::MatMul_"

_VARIABLE, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_Field = tuple[int, int | memoryview]


def read_onnx(file: Path) -> dict[str, Tensor]:
    """All initialisers by name; those that lost theirs have the name and the orientation of torch again.

    Raises:
        WeightsError: it is not an ONNX file, or keeps weights in another one.
    """
    try:
        graphs = [content for number, content in _fields(memoryview(file.read_bytes())) if number == _GRAPH]
        graph = list(_fields(_bytes(graphs[0])))
        layers = _layers(graph)
        tensors = dict(_tensor(_bytes(content)) for number, content in graph if number == _INITIALISER)
    except (IndexError, KeyError, ValueError, TypeError) as error:
        raise WeightsError(f"{file} cannot be read as an ONNX file ({error}).") from error
    return {
        layers.get(name, name): tensor.T.contiguous() if name in layers else tensor for name, tensor in tensors.items()
    }


def _layers(graph: list[_Field]) -> dict[str, str]:
    """The names of weights that have none, from the first node that multiplies by them."""
    found: dict[str, str] = {}
    for number, content in graph:
        if number == _NODE:
            node = list(_fields(_bytes(content)))
            words = {own: _text(part) for own, part in node if own in (_NODE_NAME, _OPERATOR)}
            inputs = [_text(part) for own, part in node if own == _INPUT]
            if words.get(_OPERATOR) == "MatMul" and inputs[1].startswith(_UNNAMED) and _NODE_NAME in words:
                found.setdefault(inputs[1], f"{_module(words[_NODE_NAME])}.weight")
    return found


def _module(node: str) -> str:
    """`layers.0.query` for the node `/layers/layers.0/query/MatMul`: a sequence is named before its members, too."""
    steps = node.strip("/").split("/")[:-1]
    return ".".join(own for own, after in zip(steps, [*steps[1:], ""], strict=True) if not after.startswith(f"{own}."))


def _tensor(message: memoryview) -> tuple[str, Tensor]:
    parts: dict[int, list[Any]] = {}
    for number, content in _fields(message):
        parts.setdefault(number, []).append(content)
    name = _text(parts[_NAME][0])
    if parts.get(_ELSEWHERE, [0])[0]:
        raise ValueError(f"{name} is in another file")
    kind = _NUMBERS[parts[_KIND][0]]
    shape = [size for content in parts.get(_SIZES, []) for size in _whole_numbers(content)]
    if _RAW in parts:
        numbers = np.frombuffer(parts[_RAW][0], dtype=kind)
    elif _FLOATS in parts or _DOUBLES in parts:
        packed, width = (parts[_FLOATS], "<f4") if _FLOATS in parts else (parts[_DOUBLES], "<f8")
        numbers = np.frombuffer(b"".join(packed), dtype=width)
    else:
        rows = parts.get(_INT32S, []) + parts.get(_INT64S, [])
        numbers = np.array([number for content in rows for number in _whole_numbers(content)], dtype=np.int64)
        # Half-precision numbers are stored as whole ones with the same bits.
        numbers = numbers.astype(np.uint16).view("<f2") if kind == "<f2" else numbers.astype(kind)
    if len(numbers) != math.prod(shape):
        raise ValueError(f"{name} has {len(numbers):,} numbers and the shape {shape}")
    return name, torch.from_numpy(numbers.reshape(shape).copy())


def _whole_numbers(content: int | memoryview) -> list[int]:
    """One number, or a packed row of them; negative ones are stored as 2⁶⁴ less."""
    if isinstance(content, int):
        found = [content]
    else:
        found, place = [], 0
        while place < len(content):
            number, place = _variable(content, place)
            found.append(number)
    return [number - 2**64 if number >= 2**63 else number for number in found]


def _fields(message: memoryview) -> Iterator[_Field]:
    """The numbers of the fields of a message, with their contents."""
    place = 0
    while place < len(message):
        key, place = _variable(message, place)
        number, kind = key >> 3, key & 7
        if kind == _VARIABLE:
            content, place = _variable(message, place)
            yield number, content
            continue
        if kind == _LENGTH:
            length, place = _variable(message, place)
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            length = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError(f"there is no field of kind {kind}")
        if place + length > len(message):
            raise ValueError("it ends in the middle of a field")
        yield number, message[place : place + length]
        place += length


def _variable(message: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits per byte, the lowest first, and the place after it."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _bytes(content: int | memoryview) -> memoryview:
    if isinstance(content, int):
        raise TypeError("a message was expected and a number found")
    return content


def _text(content: int | memoryview) -> str:
    return str(_bytes(content), "utf-8")
