"""What the best projection of a layer's inputs reaches: the ceiling of any network with these inputs and keys.

The inputs are in two halves. One pass over all of them adds up what the fits need, and keeps some inputs of each half.
On these the overlap is then measured with the projection fitted to the other half, a lower end of the ceiling, and with
the one that was refined on their own half, an upper end (see `kernel.best_projection`). So what is held does not grow
with the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from attnaudit.capture.heads import Heads
from attnaudit.kernel.best_projection import (
    ProjectionSums,
    Weights,
    leading_projections,
    overlaps,
    refined_projections,
    with_constant,
)
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.measures.references.best_projection import BEST_PROJECTION, BEST_PROJECTION_FITTED
from attnaudit.measures.selection import Selection
from attnaudit.measures.subspace import VALUE_SUBSPACE_OVERLAP, predicted_basis
from attnaudit.protocol import Protocol
from attnaudit.records.head_id import HeadId
from attnaudit.records.schema import Measurement, RowKey
from attnaudit.theories.base import Theory, impossible

#: How many inputs of a half are kept, and how many a projection is refined on at least: with fewer, it is mostly fitted
#: to their noise and bounds nothing (16 pictures of DeiT-Tiny: reach .21, 30: .17).
KEPT, REFINED_FROM = 40, 20
#: Of an input that is cut into windows, only the first ones are kept.
_WINDOWS = 4
#: What fits that are made at the same time may take, in bytes: on a CPU no more than a few.
_TOGETHER = {"cpu": 2**24, "cuda": 2**32}
#: What a fit belongs to: theory, layer, half.
_Key = tuple[str, int, int]


@dataclass(frozen=True)
class PredictedSpans:
    """What the best projections need of a batch of heads: what their layer was given, and bases of predicted spans.

    Each row of `source` belongs to the same number of heads; bases are by name of the theory.
    """

    index: tuple[HeadId, ...]
    source: Float[Tensor, "rows tokens width"]
    bases: Mapping[str, Float[Tensor, "heads tokens dim"]]

    @staticmethod
    def of(
        keys: KeyKernel, theories: Sequence[Theory], predictions: Sequence[PredictedValues] = ()
    ) -> PredictedSpans | None:
        """Those of theories that can be true of the heads; None if the inputs of their layer are not known.

        `predictions` are what theories predict for them, as far as it is known already.
        """
        heads, known = keys.heads, {own.theory.name: own for own in predictions}
        if heads.source is None:
            return None
        possible = [theory for theory in theories if not impossible(theory, heads)]
        predicted = [known.get(theory.name) or PredictedValues(keys, theory) for theory in possible]
        # In one order of memory, since the last digits of products with them depend on it.
        bases = {own.theory.name: own.shared(predicted_basis).contiguous() for own in predicted}
        return PredictedSpans(heads.index, heads.source, bases)


@dataclass(frozen=True)
class _Inputs:
    """The heads of a layer for some inputs of one length: [X 1], and a basis of the predicted span of every head."""

    index: tuple[HeadId, ...]
    inputs: Float[Tensor, "inputs tokens width"]
    bases: Float[Tensor, "inputs heads tokens dim"]

    @property
    def tokens(self) -> int:
        return self.inputs.shape[1]

    @property
    def dim(self) -> int:
        return self.bases.shape[-1]

    def part(self, places: Sequence[int]) -> _Inputs:
        """Some of the inputs, copied, so that the others can go."""
        per_row = len(self.index) // len(self.inputs)
        index = tuple(entry for place in places for entry in self.index[place * per_row : (place + 1) * per_row])
        return _Inputs(index, self.inputs[list(places)], self.bases[list(places)])

    @staticmethod
    def cat(parts: Sequence[_Inputs]) -> _Inputs:
        """All of them as one."""
        return _Inputs(
            tuple(entry for part in parts for entry in part.index),
            torch.cat([part.inputs for part in parts]),
            torch.cat([part.bases for part in parts]),
        )


@dataclass
class _Half:
    """What is kept of the inputs of one half: sums over all, and some as they are."""

    sums: ProjectionSums | None = None
    kept: list[_Inputs] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, own: _Inputs) -> None:
        """More inputs, or windows of some."""
        sums = ProjectionSums.of(own.inputs, own.bases)
        self.sums = sums if self.sums is None else self.sums + sums
        places = []
        for place, first in enumerate(own.index[:: len(own.index) // len(own.inputs)]):
            if first.window < _WINDOWS and (first.input in self.names or len(self.names) < KEPT):
                self.names.add(first.input)
                places.append(place)
        if places:
            self.kept.append(own.part(places))

    def by_length(self) -> list[_Inputs]:
        """What is kept, inputs of one length together."""
        lengths = dict.fromkeys(own.tokens for own in self.kept)
        return [_Inputs.cat([own for own in self.kept if own.tokens == tokens]) for tokens in lengths]

    def filled(self) -> tuple[Tensor, Tensor]:
        """Inputs and bases, filled up to one length with tokens that are 0 everywhere, which changes no product."""
        longest = max(own.tokens for own in self.kept)
        inputs = [pad(own.inputs, (0, 0, 0, longest - own.tokens)) for own in self.kept]
        bases = [pad(own.bases, (0, 0, 0, longest - own.tokens)) for own in self.kept]
        return torch.cat(inputs), torch.cat(bases)


def has_ceiling(selection: Selection) -> bool:
    """Whether the best projections are asked for, and what they maximise."""
    asked = any(reference in selection.references for reference in (BEST_PROJECTION, BEST_PROJECTION_FITTED))
    return asked and VALUE_SUBSPACE_OVERLAP in selection.measures


def kept_bytes(layers: Sequence[Heads], selection: Selection) -> int:
    """What a ceiling of these layers and any number of inputs holds at most: float64 inputs and predicted bases."""
    theories = len(selection.predicting)
    return sum(
        2 * KEPT * 8 * heads.tokens * (heads.source.shape[-1] + 1 + theories * heads.per_input * heads.value.shape[-1])
        for heads in layers
        if heads.source is not None
    )


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

    def add(self, keys: KeyKernel, predictions: Sequence[PredictedValues] = ()) -> None:
        """Take the heads of some inputs into account; those of a layer whose inputs are not known are left out."""
        spans = PredictedSpans.of(keys, self._theories, predictions)
        if spans is not None:
            self.add_spans(spans)

    def add_spans(self, spans: PredictedSpans) -> None:
        """The same from what was predicted before."""
        inputs, rows = with_constant(spans.source), len(spans.source)
        firsts = spans.index[:: len(spans.index) // rows]
        for theory, own_bases in spans.bases.items():
            bases = own_bases.view(rows, -1, *own_bases.shape[1:])
            places: dict[_Key, list[int]] = {}
            for place, finite in enumerate(bases.isfinite().flatten(1).all(dim=1).tolist()):
                if finite:
                    key = theory, firsts[place].layer, self._halves[firsts[place].input]
                    places.setdefault(key, []).append(place)
            every = _Inputs(spans.index, inputs, bases)
            for key, own in places.items():
                self._kept.setdefault(key, _Half()).add(every.part(own))

    def of_layers(self, part: int, parts: int) -> Ceiling:
        """What was added of the layers whose number modulo `parts` is `part`."""
        found = Ceiling(self._theories, self._halves)
        found._kept = {key: half for key, half in self._kept.items() if key[1] % parts == part}
        return found

    def measure(self, protocol: Protocol) -> Iterator[Measurement]:
        """The overlaps that the fits reach, for the inputs that are kept."""
        leading = self._leading()
        refined = self._refined(leading)
        for key, half in self._kept.items():
            theory, layer, number = key
            fits = {
                BEST_PROJECTION.name: leading.get((theory, layer, 1 - number)),
                BEST_PROJECTION_FITTED.name: refined.get(key),
            }
            for name, weights in fits.items():
                for own in half.by_length() if weights is not None else ():
                    assert weights is not None
                    values = {VALUE_SUBSPACE_OVERLAP.name: overlaps(weights, own.inputs, own.bases).flatten()}
                    problems = {VALUE_SUBSPACE_OVERLAP.name: (None,) * len(own.index)}
                    yield Measurement(own, RowKey(theory, name), values, problems, protocol)

    @property
    def _device(self) -> torch.device:
        return next((half.kept[0].inputs.device for half in self._kept.values()), torch.device("cpu"))

    def _leading(self) -> dict[_Key, Weights]:
        """The leading projections of all inputs of each half."""
        sums = {key: half.sums for key, half in self._kept.items() if half.sums is not None}
        found: dict[_Key, Weights] = {}
        shapes = {key: (*own.predicted.shape, self._kept[key].kept[0].dim) for key, own in sums.items()}
        for some in _alike(shapes, lambda key: 8 * sums[key].predicted.nbytes, self._device):
            weights = leading_projections([sums[key] for key in some], shapes[some[0]][-1])
            found |= dict(zip(some, weights, strict=True))
        return found

    def _refined(self, leading: Mapping[_Key, Weights]) -> dict[_Key, Weights]:
        """The projections refined on the inputs that are kept, where there are enough of them."""
        waiting = {key: half.filled() for key, half in self._kept.items() if len(half.names) >= REFINED_FROM}
        shapes = {key: (*bases.shape, *leading[key].shape) for key, (_, bases) in waiting.items()}
        found: dict[_Key, Weights] = {}

        def size(key: _Key) -> int:
            """Of products of the inputs with each other, and of a few of their products with bases."""
            inputs, heads, width = len(waiting[key][0]), *leading[key].shape[:2]
            return 8 * inputs * width * (width + 4 * heads * leading[key].shape[2])

        for some in _alike(shapes, size, self._device):
            starts = torch.stack([leading[key] for key in some])
            inputs, bases = (torch.stack(own) for own in zip(*(waiting[key] for key in some), strict=True))
            found |= dict(zip(some, refined_projections(starts, inputs, bases), strict=True))
        return found


def _alike(
    shapes: Mapping[_Key, tuple[int, ...]], size: Callable[[_Key], int], device: torch.device
) -> Iterator[list[_Key]]:
    """Keys of one shape together, as many as there is room for: a GPU waits for the slowest anyway."""
    room = _TOGETHER.get(device.type, _TOGETHER["cpu"])
    by_shape: dict[tuple[int, ...], list[_Key]] = {}
    for key, shape in shapes.items():
        by_shape.setdefault(shape, []).append(key)
    for keys in by_shape.values():
        step = max(1, room // size(keys[0]))
        yield from (keys[first : first + step] for first in range(0, len(keys), step))
