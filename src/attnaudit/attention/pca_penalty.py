"""A regulariser that pulls the keys of a network towards the principal components of what its layers read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from attnaudit.attention.functional.explained import unexplained_variance
from attnaudit.attention.layers import SwappableLayer, swappable_layers
from attnaudit.errors import ModelError, UsageError


class PCAPenalty:
    """The mean over layers and heads of the variance of a layer's input that the directions of its keys leave out.

    The rows of a head's key projection span the directions that it can attend by. In the laboratory (Maulen-Soto &
    Boyer 2026) there is one, and training turns it to the leading eigenvector. This adds the pull of PCA itself: see
    `functional.unexplained_variance`. Tokens are data here, as they are there: only keys get a gradient, or a network
    could follow the pull with what its layers read instead. Layers are watched from now on: call the model, then
    `loss`.

    Raises:
        ModelError: the model has no attention layer whose keys are known.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._inputs: dict[nn.Module, Tensor] = {}
        layers = swappable_layers(model)
        if not layers:
            raise ModelError(f"{type(model).__name__} has no attention layer whose keys could be pulled.")
        for layer in layers:
            layer.module.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.is_grad_enabled():  # not in an evaluation, whose batch would be kept
            self._inputs[module] = (args[0] if args else kwargs["hidden_states"]).detach()

    def inputs(self) -> Iterator[tuple[SwappableLayer, Float[Tensor, "tokens width"]]]:
        """Every layer with the tokens that it read in the last forward pass, which are then forgotten."""
        for layer in swappable_layers(self._model):
            if layer.module not in self._inputs:
                raise UsageError("The penalty has seen no forward pass: call the model first.")
            yield layer, self._inputs.pop(layer.module).flatten(0, -2)

    def loss(self) -> Tensor:
        """Of the last forward pass; between 0 and 1."""
        found = [unexplained_variance(tokens, directions_of(layer)).mean() for layer, tokens in self.inputs()]
        return torch.stack(found).mean()


def directions_of(layer: SwappableLayer, projection: str = "k") -> Float[Tensor, "heads width dim"]:
    """The directions of the tokens that a head's keys see, or with "q" its queries."""
    weight, _ = layer.weights[projection]
    return weight.view(layer.num_heads, -1, weight.shape[1]).mT
