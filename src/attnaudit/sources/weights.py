"""Read weights safely, and load them into a model or name the keys that do not fit."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import torch
from safetensors.torch import load, load_file
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from attnaudit.errors import WeightsError, first_line
from attnaudit.numerics.digest import content_digest

_WRAPPERS = ("model", "state_dict", "model_state_dict")
_SHOWN = 4
#: Older versions could be made to run code in a file even if told to read tensors only (CVE-2025-32434).
_SAFE_TORCH = "2.6"
#: How a zip archive begins; what is no archive is a row of pickles in the format of older versions of torch.
_ZIP, _OLD_PICKLES = b"PK\x03\x04", 5


def read_weights(path: Path, plain: Sequence[type] = ()) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch file that contains only tensors and plain containers.

    Args:
        path: the file.
        plain: other classes that only hold values, such as `argparse.Namespace`, and that may lie beside the tensors.

    Raises:
        WeightsError: the file is missing or damaged, contains code, or something else than plain tensors by name.
    """
    if not path.is_file():
        raise WeightsError(f"The weights file {path} {'is a folder' if path.is_dir() else 'does not exist'}.")
    try:
        if path.suffix == ".safetensors":
            content = load_file(path) if _is_utf8(path) else load(path.read_bytes())
        else:
            _check_torch_file(path)
            with torch.serialization.safe_globals(list(plain)):
                content = torch.load(path, map_location="cpu", weights_only=True)
    except WeightsError:
        raise
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{path} is refused because it is damaged or contains pickled code, not plain tensors: convert it to "
            "safetensors first, where you trust it."
        ) from error
    except Exception as error:  # what a damaged file makes torch raise has no common class
        raise WeightsError(f"{path} cannot be read as weights ({first_line(error)}).") from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(f"{path} is not a state dictionary (names with tensors).")
    for name, tensor in content.items():
        if fault := _unusable(name, tensor):
            raise WeightsError(f"{path} cannot be used as weights: {fault}.")
    return dict(content)


def _check_torch_file(path: Path) -> None:
    """Refuse what torch itself would read: archives with more content than bytes, and pickles that ask for memory.

    Raises:
        WeightsError: the file is one of these, a part of it does not match its checksum, or torch is too old.
    """
    if TorchVersion(torch.__version__) < _SAFE_TORCH:
        raise WeightsError(
            f"{path} is refused because torch {torch.__version__} might run code in it: install torch ≥ {_SAFE_TORCH}, "
            "or convert the file to safetensors."
        )
    with path.open("rb") as file:
        if file.read(len(_ZIP)) != _ZIP:
            file.seek(0)
            _check_pickles(file, _OLD_PICKLES, path)
            return
    with zipfile.ZipFile(path) as archive:
        parts = archive.infolist()
        stored = all(part.compress_type == zipfile.ZIP_STORED for part in parts)
        if not stored or sum(part.file_size for part in parts) > path.stat().st_size:
            raise WeightsError(f"{path} is refused because its content is larger than the file: it is compressed.")
        if damaged := archive.testzip():
            raise WeightsError(f"{path} is damaged: {damaged} in it does not match its checksum.")
        for part in parts:
            if part.filename.endswith(".pkl"):
                _check_pickles(io.BytesIO(archive.read(part)), 1, path)


def _check_pickles(stream: IO[bytes], count: int, path: Path) -> None:
    """Refuse pickles that make a bytearray, which torch allows and no weights need: it may be of any size."""
    for _ in range(count):
        if not stream.read(1):
            return  # fewer than there should be, which torch says
        stream.seek(-1, io.SEEK_CUR)
        for code, argument, _place in pickletools.genops(stream):
            if code.name == "GLOBAL" and str(argument).endswith(" bytearray"):
                raise WeightsError(f"{path} is refused because it makes bytearrays, not plain tensors.")


def _unusable(name: Any, tensor: Tensor) -> str | None:
    """Why an entry of a file cannot be a weight; None if it can."""
    if not isinstance(name, str):
        return f"the names of its tensors must be text, got {name!r}"
    if fault := without_values(tensor):
        return f"{name} is {fault}"
    if tensor.is_complex():
        return f"{name} is complex ({tensor.dtype}), but weights are real numbers"
    return None


def without_values(tensor: Tensor) -> str | None:
    """In a few words why a tensor does not simply hold its values; None if it does."""
    if tensor.is_meta:
        return "on the meta device and has no values"
    if tensor.is_quantized:
        return "quantised"
    return None if tensor.layout == torch.strided else f"sparse ({tensor.layout})"


def _is_utf8(path: Path) -> bool:
    """Whether safetensors can open a file of that name."""
    return os.fsencode(path).decode(errors="replace") == str(path)


def fit_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path, model_name: str) -> None:
    """Load all weights, or change nothing and name the keys that are missing, unknown, or of another shape or type."""
    own = model.state_dict()
    missing = [key for key in own if key not in weights]
    unknown = [key for key in weights if key not in own]
    common = [key for key in own if key in weights]
    shapes = [
        f"{key} {tuple(weights[key].shape)} instead of {tuple(own[key].shape)}"
        for key in common
        if weights[key].shape != own[key].shape
    ]
    # Whole numbers in place of real ones are quantised weights without their scales.
    types = [
        f"{key} {weights[key].dtype} instead of {own[key].dtype}"
        for key in common
        if weights[key].is_floating_point() != own[key].is_floating_point()
    ]
    faults = [
        f"{len(keys)} {kind} ({some_names(keys)})"
        for kind, keys in (
            ("missing", missing),
            ("unknown", unknown),
            ("of another shape", shapes),
            ("of another type", types),
        )
        if keys
    ]
    if faults:
        raise WeightsError(f"{path} does not fit {model_name}: {', '.join(faults)}.")
    model.load_state_dict(dict(weights))


def fingerprint(model: nn.Module) -> str:
    """A hash of every parameter and persistent buffer, with its name, type and shape."""
    return tensors_fingerprint(sorted(model.state_dict().items()))


def tensors_fingerprint(named: Iterable[tuple[str, Tensor]]) -> str:
    """A hash of tensors, with their names, types and shapes."""

    def chunks() -> Iterator[bytes]:
        for name, tensor in named:
            yield f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode()
            yield tensor_bytes(tensor)

    return content_digest(chunks())


def tensor_bytes(tensor: Tensor) -> bytes:
    """The values of a dense tensor of any type."""
    return (
        tensor.detach().cpu().resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()
    )


def some_names(names: Sequence[str]) -> str:
    """The first few names, for an error."""
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
