"""ONNX files are read field by field: these are written byte by byte."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.onnx_weights import read_onnx

FLOAT, HALF, INT64 = 1, 10, 7


def number(value: int) -> bytes:
    """Seven bits per byte, the lowest first."""
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def field(key: int, content: bytes | int) -> bytes:
    if isinstance(content, int):
        return number(key << 3) + number(content)
    return number(key << 3 | 2) + number(len(content)) + content


def tensor(name: str, sizes: list[int], kind: int, content: bytes) -> bytes:
    return b"".join([*(field(1, size) for size in sizes), field(2, kind), field(8, name.encode()), content])


def node(name: str, operator: str, *inputs: str) -> bytes:
    return b"".join([*(field(1, own.encode()) for own in inputs), field(3, name.encode()), field(4, operator.encode())])


def onnx_file(folder: Path, *parts: tuple[int, bytes]) -> Path:
    """A model of some nodes (1) and initialisers (5), after a version."""
    graph = b"".join(field(key, content) for key, content in parts)
    (folder / "model.onnx").write_bytes(field(1, 8) + field(2, b"pytorch") + field(7, graph))
    return folder / "model.onnx"


def raw(values: Tensor) -> bytes:
    return field(9, values.numpy().tobytes())


def test_raw_numbers_come_back_under_their_name(tmp_path: Path) -> None:
    values = torch.arange(6.0).reshape(2, 3)
    file = onnx_file(tmp_path, (5, tensor("norm.weight", [2, 3], FLOAT, raw(values))))
    assert torch.equal(read_onnx(file)["norm.weight"], values)


def test_packed_numbers_are_read_as_raw_ones(tmp_path: Path) -> None:
    floats = torch.tensor([1.5, -2.0])
    halves = torch.tensor([0.5, -3.0], dtype=torch.half)
    bits = b"".join(number(int(own)) for own in halves.view(torch.uint16).to(torch.int64))
    file = onnx_file(
        tmp_path,
        (5, tensor("floats", [2], FLOAT, field(4, floats.numpy().tobytes()))),
        (5, tensor("halves", [2], HALF, field(5, bits))),
        (5, tensor("whole", [2], INT64, field(7, number(300) + number(2**64 - 1)))),
    )
    found = read_onnx(file)
    assert torch.equal(found["floats"], floats)
    assert torch.equal(found["halves"], halves)
    assert found["whole"].tolist() == [300, -1]


def test_a_weight_without_a_name_gets_that_of_its_layer_and_is_turned_back(tmp_path: Path) -> None:
    weight = torch.arange(6.0).reshape(2, 3)
    file = onnx_file(
        tmp_path,
        (1, node("/model/model.0/layer.1/query/MatMul", "MatMul", "x", "onnx::MatMul_7")),
        (5, tensor("onnx::MatMul_7", [2, 3], FLOAT, raw(weight))),
    )
    found = read_onnx(file)
    assert list(found) == ["model.0.layer.1.query.weight"]
    assert torch.equal(found["model.0.layer.1.query.weight"], weight.T)
    assert found["model.0.layer.1.query.weight"].is_contiguous(), "as safetensors wants it"


@pytest.mark.parametrize("content", [b"", b"no protocol buffer", field(7, field(5, b"\x0a\xff"))])
def test_another_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "odd.onnx").write_bytes(content)
    with pytest.raises(WeightsError, match=r"odd\.onnx cannot be read as an ONNX file"):
        read_onnx(tmp_path / "odd.onnx")


def test_weights_that_do_not_fill_their_shape_are_refused(tmp_path: Path) -> None:
    file = onnx_file(tmp_path, (5, tensor("short", [4], FLOAT, raw(torch.ones(3)))))
    with pytest.raises(WeightsError, match="short has 3 numbers"):
        read_onnx(file)


def test_weights_in_another_file_are_refused(tmp_path: Path) -> None:
    file = onnx_file(tmp_path, (5, tensor("far", [1], FLOAT, field(14, 1))))
    with pytest.raises(WeightsError, match="far is in another file"):
        read_onnx(file)
