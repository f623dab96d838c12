"""What the Primal-Attention layers of a model are given in a forward pass, and the heads that it makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attnaudit.attention import PrimalAttention
from attnaudit.capture.attention_call import Refusal
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.numerics.masks import visible
from attnaudit.records.head_id import HeadId


@dataclass(frozen=True)
class PrimalLayer:
    """A layer that ran, and what it was given of the first inputs; `refusal` says why it cannot be measured."""

    name: str
    module: PrimalAttention
    given: Tensor
    refusal: Refusal | None = None

    @torch.no_grad()
    def heads(self, model: str, inputs: Sequence[str], number: int) -> PrimalHeads:
        """Its heads on these inputs, in float64, the layer being number `number` of the model."""
        factors, count = self.module.kernel_factors(self.given), len(self.given)

        def of_all(parameter: Tensor) -> Tensor:
            """The parameter of every head, once for each input."""
            return parameter.double().repeat(count, *[1] * (parameter.dim() - 1))

        return PrimalHeads(
            query=factors.query.flatten(0, 1),
            key=factors.key.flatten(0, 1),
            rows=factors.rows.flatten(0, 1),
            weight_e=of_all(self.module.weight_e),
            weight_r=of_all(self.module.weight_r),
            singular=of_all(self.module.root_singular).square(),
            index=tuple(HeadId(model, name, number, head) for name in inputs for head in range(self.module.num_heads)),
        )


@contextmanager
def primal_layers(model: nn.Module, batch: int, count: int) -> Iterator[Mapping[str, PrimalLayer]]:
    """Watch a forward pass of `batch` inputs inside this block; the layers by name, of the first `count` inputs."""
    seen: dict[str, PrimalLayer] = {}

    def watch(name: str) -> Callable[..., None]:
        def look(module: PrimalAttention, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
            given, problem = _given(*args, **arguments)
            if name in seen:
                problem = "it runs several times in a forward pass"
            elif len(given) != batch:
                problem = f"its batch axis {tuple(given.shape)} does not line up with {batch} inputs"
            # A copy: the model may go on to change its own tensors in place.
            first = given[:count].detach().clone()
            seen[name] = PrimalLayer(name, module, first, None if problem is None else Refusal(name, problem))

        return look

    handles = [
        module.register_forward_pre_hook(watch(name or type(module).__name__), with_kwargs=True)
        for name, module in model.named_modules()
        if count and isinstance(module, PrimalAttention)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _given(x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> tuple[Tensor, str | None]:
    """The input among the arguments of a layer's forward, and what of the others its kernel does not have."""
    if is_causal:
        return x, "a causal layer has another kernel for every token"
    if attn_mask is not None and not bool(visible(attn_mask).all()):
        return x, "padded inputs have kernels of different sizes"
    return x, None
