"""What is known of a tensor in a forward pass: which step of softmax(QKᵀ·scale + bias)V it is, and its labels."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from attnaudit.capture.tracing.labels import Labels, Move
from attnaudit.capture.tracing.lazy import Lazy

NO_PRODUCT = "its logits are no product of queries and keys"


@dataclass(frozen=True, slots=True)
class Scaled:
    """An activation times a number, as in `q = q * self.scale`."""

    scale: float


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A tensor as the model has it, and how often it had been written to; torch does not count in inference mode."""

    tensor: Tensor
    times: int | None

    @staticmethod
    def now(tensor: Tensor) -> Written:
        """Up to now."""
        return Written(tensor, None if tensor.is_inference() else tensor._version)

    @property
    def again(self) -> bool:
        """Whether it was written to since."""
        return self.times is not None and self.times != self.tensor._version


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """(left @ right)·scale·factor + bias, its elements arranged as their labels `batch`, `row` and `column` say.

    With a `softcap` c it is c·tanh((left @ right)·scale / c) + bias. `factor` and `bias` have the shape of the tensor,
    or broadcast to it. The bias holds the operands that the model added, and never what is missing to its logits: that
    would make any queries and keys replay well. `dropped` is true where scores were multiplied by 0. `content` says
    that both operands depend on the input and that it sums over features, as scores do; with `mixes` it sums over
    something else, such as tokens. `written` says whether the left operand is still the same; `origin` is the same
    object in everything computed from this product.
    """

    left: Tensor
    right: Tensor
    left_fact: Fact | None
    right_fact: Fact | None
    content: bool
    mixes: bool = False
    scale: float = 1.0
    factor: Lazy[Tensor] | None = None
    bias: Lazy[Tensor] | None = None
    bias_from_input: bool = False
    dropped: Lazy[Tensor] | None = None
    softcap: float | None = None
    written: Written | None = None
    origin: object = field(default_factory=object)

    def moved(self, move: Move, shape: torch.Size) -> Product:
        """The product rearranged, from this shape."""
        if self.bias is None and self.factor is None and self.dropped is None:
            return self
        factor, bias, dropped = (
            None if term is None else term.then(lambda tensor: move(tensor.expand(shape)))
            for term in (self.factor, self.bias, self.dropped)
        )
        return replace(self, factor=factor, bias=bias, dropped=dropped)

    def times(self, number: float) -> Product:
        """The product times a number; with a softcap c·tanh(s·x / c), c and s grow together."""
        bias = None if self.bias is None else self.bias.then(lambda tensor: tensor * number)
        softcap = None if self.softcap is None else self.softcap * number
        return replace(self, scale=self.scale * number, bias=bias, softcap=softcap)

    def times_each(self, factor: Tensor) -> Product:
        """The product times one number for each head, as in cosine attention."""
        own = Lazy(lambda: factor) if self.factor is None else self.factor.then(lambda tensor: tensor * factor)
        bias = None if self.bias is None else self.bias.then(lambda tensor: tensor * factor)
        return replace(self, factor=own, bias=bias)

    def without(self, dropped: Tensor) -> Product:
        """The product with 0 in some places."""
        own = Lazy(lambda: dropped) if self.dropped is None else self.dropped.then(lambda tensor: tensor | dropped)
        return replace(self, dropped=own)

    def plus(self, term: Tensor, from_input: bool) -> Product:
        """The product plus a mask or position term."""
        bias = Lazy(lambda: term) if self.bias is None else self.bias.then(lambda tensor: tensor + term)
        return replace(self, bias=bias, bias_from_input=self.bias_from_input or from_input)

    def capped(self) -> Product:
        """Tanh of the product."""
        return replace(self, softcap=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """The softmax of scores, with product and labels of its input.

    The labels of the tensor itself are its coordinates there, by number of axis, and the input.
    """

    softmax: Softmax
    product: Product | None
    labels: Labels | None


@dataclass(frozen=True, slots=True)
class Changed:
    """Computed from scores or attention weights in a way that the formula does not have; the reason says how."""

    reason: str
    origin: object


@dataclass(frozen=True, slots=True)
class Convolved:
    """What a convolution made of activations."""


@dataclass(frozen=True, slots=True)
class Dropout:
    """A random mask, which attention weights are multiplied by."""


Form = Scaled | Product | Weights | Changed | Convolved | Dropout


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """What is known of a tensor; `activation` if it depends on the input, `rotated` if a position was multiplied in."""

    labels: Labels | None
    form: Form | None = None
    activation: bool = True
    rotated: bool = False

    def moved(self, move: Move, shape: torch.Size) -> Fact:
        """The fact of the tensor rearranged, from this shape."""
        labels = None if self.labels is None else self.labels.moved(move)
        form = self.form.moved(move, shape) if isinstance(self.form, Product) else self.form
        return Fact(labels, form, self.activation, self.rotated)

    def label(self, name: str) -> Tensor | None:
        """One of its labels, if that is known."""
        return None if self.labels is None else self.labels.get(name)


@dataclass(slots=True, eq=False)
class Softmax:
    """One softmax of a forward pass, and what became of it; it is listed to the end, and keeps no tensors of size.

    `known` says that its input is a product, `content` that this is one of two activations; `reason` why it is not
    attention of the known form, and `otherwise` why not if its weights are multiplied by values and `known` is false.
    `changed` says what became of its weights, which counts only if they are not multiplied by values as they are: a
    model may compute their entropy besides. `zeroed` is true for queries whose weights were set to 0. `applied` is set
    when its weights are multiplied by values, `settled` when it is captured or refused.
    """

    layer: str
    shape: tuple[int, ...]
    axis: int
    precision: torch.dtype
    reason: str | None
    known: bool
    content: bool
    otherwise: str = NO_PRODUCT
    changed: str | None = None
    zeroed: Tensor | None = None
    applied: bool = False
    settled: bool = False
