"""Read weights safely, and load them into a model or name the keys that do not fit."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from attnaudit.errors import WeightsError, first_line
from attnaudit.numerics.digest import content_digest

_WRAPPERS = ("model", "state_dict", "model_state_dict")
_SHOWN = 4


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, or of a torch file that contains only tensors and plain containers."""
    if not path.is_file():
        raise WeightsError(f"The weights file {path} does not exist.")
    try:
        if path.suffix == ".safetensors":
            tensors: dict[str, Tensor] = load_file(path)
            return tensors
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise WeightsError(
            f"{path} is refused because it contains pickled code, not plain tensors: convert it to safetensors first."
        ) from error
    except (SafetensorError, RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        raise WeightsError(f"{path} cannot be read as weights ({first_line(error)}).") from error
    for wrapper in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise WeightsError(f"{path} is not a state dictionary (names with tensors).")
    return dict(content)


def fit_weights(model: nn.Module, weights: Mapping[str, Tensor], path: Path, model_name: str) -> None:
    """Load all weights, or change nothing and name the keys that are missing, unknown or of another shape."""
    own = model.state_dict()
    missing = [key for key in own if key not in weights]
    unknown = [key for key in weights if key not in own]
    shapes = [
        f"{key} {tuple(weights[key].shape)} instead of {tuple(own[key].shape)}"
        for key in own
        if key in weights and weights[key].shape != own[key].shape
    ]
    faults = [
        f"{len(keys)} {kind} ({_some(keys)})"
        for kind, keys in (("missing", missing), ("unknown", unknown), ("of another shape", shapes))
        if keys
    ]
    if faults:
        raise WeightsError(f"{path} does not fit {model_name}: {', '.join(faults)}.")
    model.load_state_dict(dict(weights))


def fingerprint(model: nn.Module) -> str:
    """A hash of every parameter and buffer, with its name, type and shape."""
    return tensors_fingerprint(sorted(model.state_dict().items()))


def tensors_fingerprint(named: Iterable[tuple[str, Tensor]]) -> str:
    """A hash of tensors, with their names, types and shapes."""

    def chunks() -> Iterator[bytes]:
        for name, tensor in named:
            yield f"{name}:{tensor.dtype}:{tuple(tensor.shape)};".encode()
            yield tensor.detach().cpu().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes()

    return content_digest(chunks())


def _some(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_SHOWN]) + (", …" if len(keys) > _SHOWN else "")
