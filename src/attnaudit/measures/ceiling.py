"""What the best projection of a layer's inputs reaches: the ceiling of any network with these inputs and keys.

The inputs are in two halves. One pass over all of them adds up what the fits need, and keeps some inputs of each half.
On these the overlap is then measured with the projection fitted to the other half, a lower end of the ceiling, and with
the one that was refined on their own half, an upper end (see `kernel.best_projection`). So what is held does not grow
with the number of inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.best_projection import (
    ProjectionSums,
    Weights,
    leading_projection,
    overlaps,
    refined_projection,
    with_constant,
)
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.selection import Selection
from attnaudit.measures.subspace import VALUE_SUBSPACE_OVERLAP, orthonormal
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.theories.base import Theory, impossible

#: How many inputs of a half are kept, and how many a projection is refined on at least: with fewer, it is mostly fitted
#: to their noise and bounds nothing (16 pictures of DeiT-Tiny: reach .21, 30: .17).
KEPT, REFINED_FROM = 40, 20
#: Of an input that is cut into windows, only the first ones are kept.
_WINDOWS = 4
#: What a fit belongs to: theory, layer, half.
_Key = tuple[str, int, int]


@dataclass(frozen=True)
class _Input:
    """The heads of a layer for one input: [X 1], and a basis of the predicted span of every head."""

    index: tuple[HeadId, ...]
    inputs: Float[Tensor, "tokens width"]
    bases: Float[Tensor, "heads tokens dim"]

    @property
    def tokens(self) -> int:
        return len(self.inputs)

    @property
    def dim(self) -> int:
        return self.bases.shape[-1]

    def overlaps(self, weights: Weights) -> Float[Tensor, "heads"]:
        """Of the projected inputs with the predicted spans."""
        return overlaps(weights, self.inputs[None], self.bases[None])[0]


@dataclass
class _Half:
    """What is kept of the inputs of one half: sums over all, and some as they are."""

    sums: ProjectionSums | None = None
    kept: list[_Input] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, own: _Input) -> None:
        """One more input, or window of one."""
        sums = ProjectionSums.of(own.inputs[None], own.bases[None])
        self.sums = sums if self.sums is None else self.sums + sums
        first = own.index[0]
        if first.window < _WINDOWS and (first.input in self.names or len(self.names) < KEPT):
            self.names.add(first.input)
            self.kept.append(own)

    def leading(self) -> Weights:
        """The leading projection of all inputs."""
        assert self.sums is not None
        return leading_projection(self.sums, self.kept[0].dim)

    def refined(self, leading: Weights) -> Weights | None:
        """The one refined on the inputs that are kept, if there are enough of them."""
        if len(self.names) < REFINED_FROM:
            return None
        # Inputs of different lengths are filled up with tokens that are 0 everywhere, which changes no product.
        inputs, bases = _filled([own.inputs for own in self.kept]), _filled([own.bases for own in self.kept])
        return refined_projection(leading, inputs, bases)


def has_ceiling(selection: Selection) -> bool:
    """Whether the best projections are asked for, and what they maximise."""
    asked = any(reference in selection.references for reference in (BEST_PROJECTION, BEST_PROJECTION_FITTED))
    return asked and VALUE_SUBSPACE_OVERLAP in selection.measures


class Ceiling:
    """Fits the best projections of layers to what theories predict for them, and measures them.

    Args:
        theories: whose predictions are approached.
        halves: 0 or 1 for every input, by name.
    """

    def __init__(self, theories: tuple[Theory, ...], halves: Mapping[str, int]) -> None:
        self._theories = theories
        self._halves = halves
        self._kept: dict[_Key, _Half] = {}

    def add(self, keys: KeyKernel) -> None:
        """Take the heads of some inputs into account; those of a layer whose inputs are not known are left out."""
        heads = keys.heads
        if heads.source is None:
            return
        inputs, per_row = with_constant(heads.source), len(heads) // len(heads.source)
        for theory in (each for each in self._theories if not impossible(each, heads)):
            bases = orthonormal(PredictedValues(keys, theory).prediction.values.double())
            for row in range(len(inputs)):
                own = slice(row * per_row, (row + 1) * per_row)
                found = _Input(heads.index[own], inputs[row], bases[own])
                if found.bases.isfinite().all():
                    first = found.index[0]
                    self._kept.setdefault((theory.name, first.layer, self._halves[first.input]), _Half()).add(found)

    def measure(self, protocol: Protocol) -> Iterator[Measurement]:
        """The overlaps that the fits reach, for the inputs that are kept."""
        leading = {key: half.leading() for key, half in self._kept.items()}
        for (theory, layer, number), half in self._kept.items():
            fits = {
                BEST_PROJECTION.name: leading.get((theory, layer, 1 - number)),
                BEST_PROJECTION_FITTED.name: half.refined(leading[theory, layer, number]),
            }
            for name, weights in fits.items():
                for own in half.kept if weights is not None else ():
                    assert weights is not None
                    values = {VALUE_SUBSPACE_OVERLAP.name: own.overlaps(weights)}
                    problems = {VALUE_SUBSPACE_OVERLAP.name: (None,) * len(own.index)}
                    yield Measurement(own, RowKey(theory, name), values, problems, protocol)


def _filled(tensors: list[Tensor]) -> Tensor:
    longest = max(tensor.shape[-2] for tensor in tensors)
    return torch.stack([torch.nn.functional.pad(own, (0, 0, 0, longest - own.shape[-2])) for own in tensors])
