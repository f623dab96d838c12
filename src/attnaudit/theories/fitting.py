"""Theories with parameters that all inputs share: fitted to one half of the inputs, judged on the other, both ways."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.prediction import Prediction
from attnaudit.kernel.spectra import Spectrum
from attnaudit.protocol import Protocol
from attnaudit.theories.base import Identifiability, no_prediction


@typing.runtime_checkable
class Fitted(typing.Protocol):
    """A theory whose parameters are known."""

    def predict(self, heads: Heads) -> Prediction:
        """What it predicts for heads of inputs that it was not fitted to."""


@typing.runtime_checkable
class Fitting(typing.Protocol):
    """Sums over one half of the inputs, for the heads of one layer: what is held must not grow with their number."""

    def add(self, heads: Heads) -> None:
        """Take some inputs into account; every call has the same heads of the layer in the same order, by input."""

    def finish(self) -> Fitted:
        """Fit the parameters."""


@dataclass(frozen=True)
class NothingToFit:
    """For a theory without parameters, which predicts from the other tokens of the same input."""

    predict: Callable[[Heads], Prediction]

    def add(self, heads: Heads) -> None:
        """Nothing."""

    def finish(self) -> NothingToFit:
        """Itself."""
        return self


def _too_few(heads: Heads, spectrum: Spectrum | None) -> tuple[str | None, ...]:
    return ("it has fewer than three tokens" if heads.tokens < 3 else None,) * len(heads)


class FittedTheory(ABC):
    """What a fitted theory of your own is derived from; pass an instance to `attnaudit.audit(theories=[…])`.

    Attributes:
        name: under which its numbers are stored.
        text: what it says, in a line.
        measures: those that decide; the first one says how close it comes.
        shown: measures beside them that decide nothing.
        nulls: the reference that knows nothing of it; the next one where that does not apply.
        context: references that are shown beside it.
        baseline: whether it is true by construction, so that it bounds other theories and does not compete with them.
        guard: which heads can tell it from chance.
    """

    name: str
    text: str
    measures: tuple[str, ...] = ("explained_variance",)
    shown: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ("random_projection", "rotated")
    context: tuple[str, ...] = ()
    baseline: bool = False
    guard: Identifiability = Identifiability("three tokens", _too_few, needs_spectrum=False)
    #: It predicts nothing head by head.
    fitted = True

    @abstractmethod
    def fitting(self) -> Fitting:
        """A new fit, to one half of the inputs."""

    def planted(self, heads: Heads, seed: int) -> Heads | None:
        """Heads for which it is exactly true, to be fitted alike.

        None, the default, if they shall be the heads with what the theory predicts after it was fitted to the observed
        ones, without a fit of their own.
        """
        return None

    def predict(self, heads: Heads, spectrum: Spectrum, protocol: Protocol) -> Prediction:
        """Nothing: it takes more than one input."""
        return no_prediction(heads, "it is fitted to other inputs")


def by_row(tensor: Tensor, heads: Heads) -> Tensor:
    """(rows, heads, …): what belongs to the heads of a layer, input by input."""
    count = heads.per_input
    return tensor.double().reshape(len(heads) // count, count, *tensor.shape[1:])


def with_new_values(heads: Heads, values: Tensor) -> Heads:
    """The same heads with other values, and the outputs that these would have given."""
    return replace(heads, value=values.double(), output=heads.attended(values))
