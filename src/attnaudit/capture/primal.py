"""Capture what Primal-Attention layers are given, and the heads that it makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from attnaudit.capture.attention_call import Refusal
from attnaudit.capture.primal_heads import PrimalHeads
from attnaudit.numerics.masks import visible
from attnaudit.records.head_id import HeadId


class PrimalFactors(Protocol):
    """What the kernel of a layer is made of, each `(batch, heads, …)` and in float64."""

    @property
    def query(self) -> Tensor:
        """φ of the queries."""

    @property
    def key(self) -> Tensor:
        """φ of the keys."""

    @property
    def rows(self) -> Tensor:
        """F = f(X)."""


class PrimalModule(Protocol):
    """What is known of a Primal-Attention layer; a module with `kernel_factors` is one."""

    num_heads: int
    weight_e: Tensor
    weight_r: Tensor
    root_singular: Tensor

    def kernel_factors(self, x: Tensor) -> PrimalFactors:
        """The factors of the kernel that the layer has for these inputs."""


@dataclass(frozen=True)
class PrimalCall:
    """A layer that ran, and its input; `refusal` says why it cannot be measured."""

    module: PrimalModule
    input: Tensor
    refusal: Refusal | None = None

    @torch.no_grad()
    def heads(self, model: str, inputs: Sequence[str], layer: int) -> PrimalHeads:
        """Its heads on these inputs, in float64, as layer number `layer` of the model."""
        factors, count = self.module.kernel_factors(self.input), len(self.input)

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
            index=tuple(HeadId(model, name, layer, head) for name in inputs for head in range(self.module.num_heads)),
        )


@contextmanager
def recording_primal(model: nn.Module, batch: int, count: int) -> Iterator[Mapping[str, PrimalCall]]:
    """Record Primal-Attention in a forward pass of `batch` inputs; by layer name, of the first `count` inputs."""
    calls: dict[str, PrimalCall] = {}

    def record(name: str) -> Callable[..., None]:
        def hook(module: Any, args: tuple[Any, ...], arguments: dict[str, Any]) -> None:
            source, problem = _input(*args, **arguments)
            if name in calls:
                problem = "it runs several times in a forward pass"
            elif len(source) != batch:
                problem = f"its input of shape {tuple(source.shape)} does not split into {batch} inputs"
            # A copy: the model may change its own tensors in place later.
            first = source[:count].detach().clone()
            calls[name] = PrimalCall(module, first, None if problem is None else Refusal(name, problem))

        return hook

    handles = [
        module.register_forward_pre_hook(record(name or type(module).__name__), with_kwargs=True)
        for name, module in model.named_modules()
        if count and callable(getattr(module, "kernel_factors", None))
    ]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _input(x: Tensor, attn_mask: Tensor | None = None, is_causal: bool = False) -> tuple[Tensor, str | None]:
    """The input among the arguments of a layer's forward, and why there is no single kernel for them, if so."""
    if is_causal:
        return x, "a causal layer has another kernel for every token"
    if attn_mask is not None and not bool(visible(attn_mask).all()):
        return x, "padded inputs have kernels of different sizes"
    return x, None
