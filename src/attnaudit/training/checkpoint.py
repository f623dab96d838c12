"""All that a training needs to go on, in one file that is written whole."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any, TypedDict

import torch
from torch import Tensor

from attnaudit.errors import RunFolderError
from attnaudit.records.files import write_whole

FILE = "checkpoint.pt"
#: What torch's reader raises, depending on which bytes are wrong.
_DAMAGED = (OSError, RuntimeError, EOFError, ValueError, LookupError, AttributeError, TypeError, pickle.UnpicklingError)


class State(TypedDict):
    """`step` steps are done; `loss` is the sum over those of the epoch under way."""

    step: int
    model: dict[str, Tensor]
    average: dict[str, Tensor] | None
    optimiser: dict[str, Any]
    loss: float
    history: list[dict[str, float]]


def save(folder: Path, state: State) -> None:
    """Replace the checkpoint of a folder.

    Raises:
        RunFolderError: it cannot be written, for want of space or rights; the one before it is still there.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_whole(folder / FILE, buffer.getvalue())


def load(folder: Path, device: str) -> State | None:
    """The checkpoint of a folder, None if there is none; nothing but tensors and plain data is read.

    Raises:
        RunFolderError: it is damaged.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        state: State = torch.load(path, map_location=device, weights_only=True)
        missing = State.__annotations__.keys() - state.keys()
    except _DAMAGED as error:
        raise RunFolderError(f"{path} is damaged: delete it to train anew, or give --out another folder.") from error
    if missing:
        raise RunFolderError(f"{path} is no checkpoint of ours (it lacks {', '.join(sorted(missing))}).")
    return state
