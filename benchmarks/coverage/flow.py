"""Follow tensors through a forward pass by the memory they live in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves


class Marks:
    """Marks on memory: views share them by themselves, and memory written in place keeps them.

    Marked memory is held, so that its address is not used again.
    """

    def __init__(self) -> None:
        self._marks: dict[int, tuple[torch.UntypedStorage, set[Any]]] = {}

    def of(self, tensor: Tensor) -> set[Any]:
        """The marks of a tensor; none where it has no memory of its own."""
        storage = _storage(tensor)
        return self._marks[storage._cdata][1] if storage is not None and storage._cdata in self._marks else set()

    def put(self, tensor: Tensor, marks: Iterable[Any]) -> None:
        """Add marks to a tensor."""
        storage, marks = _storage(tensor), set(marks)
        if storage is not None and marks:
            self._marks.setdefault(storage._cdata, (storage, set()))[1].update(marks)


def _storage(tensor: Tensor) -> torch.UntypedStorage | None:
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None


def tensors(tree: Any) -> list[Tensor]:
    """All tensors in nested arguments or results."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor; a nested one, which has none, has as many axes of unknown length."""
    try:
        return tuple(tensor.shape)
    except RuntimeError:
        return (-1,) * tensor.dim()


class RunningModules:
    """The names of the modules whose forward is running, outermost first."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._names: list[str] = []
        self._handles: list[Any] = []

    @property
    def innermost(self) -> str:
        """The name of the module that runs now."""
        return self._names[-1] if self._names else "(outside any module)"

    def __enter__(self) -> RunningModules:
        for name, module in self._model.named_modules():
            label = name or type(module).__name__
            self._handles += [
                module.register_forward_pre_hook(lambda *_, label=label: self._names.append(label)),
                module.register_forward_hook(lambda *_: self._leave(), always_call=True),
            ]
        return self

    def _leave(self) -> None:
        self._names.pop()

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
