"""What the independent count sees: every softmax and every fused attention kernel of a forward pass.

A softmax may be written out: the exponential of a product of two activations counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass
class Event:
    """One softmax, or one call of a fused kernel, in the order they ran.

    `module` is the module that was running, and `contracted_in` the one that multiplied the weights with something, if
    any did. `weights` is what the softmax returned, or would have returned inside a fused kernel, its axis last.
    """

    kernel: str
    module: str
    shape: tuple[int, ...]
    of_product: bool = False
    contracted_in: str | None = None
    weights: Tensor | None = None

    @property
    def is_attention(self) -> bool:
        """Whether weights over at least three axes, or of a product of two activations, are contracted with something.

        Routers, gates and class probabilities select or multiply; they are never an operand of a matrix product.
        """
        return self.contracted_in is not None and (self.of_product or len(self.shape) >= 3)

    @property
    def is_pooling(self) -> bool:
        """Whether its scores come from one activation, as in linear attention and in pooling by learned queries."""
        return self.is_attention and not self.of_product

    @property
    def places(self) -> tuple[str, ...]:
        """The modules by whose names capture may speak of it."""
        return (self.module,) if self.contracted_in is None else (self.contracted_in, self.module)
