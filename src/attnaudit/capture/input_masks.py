"""Padding as the inputs of a model say it: `attention_mask`, and what it is called for a decoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnaudit.capture.tracing.labels import APART

_MASK = "attention_mask"
#: Names of inputs that belong to one part of a model begin with it.
_PARTS = ("decoder_", "encoder_")


@dataclass(frozen=True)
class InputMasks:
    """Which tokens of the tensors that a model is called with are real, by the number of the tensor."""

    of_tensor: Mapping[int, Bool[Tensor, "inputs tokens"]]

    def real(
        self, sample: Int[Tensor, "heads"], tokens: Int[Tensor, "heads tokens"]
    ) -> Bool[Tensor, "heads tokens"] | None:
        """Which of the tokens are real, each with its number among those of all tensors; None if no mask covers any.

        A token that a model adds, and that is made for none of the inputs, has a number below 0: it counts as padding.
        """
        covered, real = False, tokens >= 0
        for number, mask in self.of_tensor.items():
            own = tokens // APART == number
            if bool(own.any()):
                covered = True
                place = torch.where(own, tokens % APART, 0)
                real &= ~own | mask[sample[:, None], place]
        return real if covered else None


def masks_of(inputs: Any) -> InputMasks:
    """The masks among keyword arguments, (inputs, tokens) of 1 and 0 or booleans, each for the tensors of its part."""
    if not isinstance(inputs, Mapping):
        return InputMasks({})
    tensors = [(name, tensor) for name, tensor in inputs.items() if isinstance(tensor, Tensor)]
    masks = {_part(name): tensor.detach().cpu() == 1 for name, tensor in tensors if _is_mask(name, tensor)}
    covered: dict[int, Tensor] = {}
    for number, (name, tensor) in enumerate(tensors):
        mask = masks.get(_part(name))
        if mask is not None and tensor.shape[:2] == mask.shape:
            covered[number] = mask
    return InputMasks(covered)


def _part(name: str) -> str:
    return next((part for part in _PARTS if name.startswith(part)), "")


def _is_mask(name: str, tensor: Tensor) -> bool:
    return name == _part(name) + _MASK and tensor.dim() == 2 and bool(((tensor == 0) | (tensor == 1)).all())
