"""How close values come to kernel PCA of the keys in the best gauge: the claim modulo what no network determines.

Two passes over the inputs, which are in two halves. The first keeps some inputs of each half and fits a gauge to them
for every head and every kind of values. The second measures each input in the gauge that was fitted to the other half.
What is fitted to the observed values is fitted to references in the same way: a random projection shows what a fit
reaches for values that know nothing of the keys, and values *planted in a hidden gauge* what it reaches if the claim is
exactly true.

The hidden gauge is a moderate one. In a strong gauge a few tokens carry the whole kernel, and a fit finds it only in
part: on DeiT-Tiny, values planted in the model's own gauge, stretched by up to 2 and shifted, come to .83 where random
projections come to .64. So values that satisfy the claim in such a gauge are far above chance, but may fall short of
the threshold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.capture.heads import Heads
from attnaudit.kernel.any_gauge import Gauge, gauge_overlaps, gauge_spans
from attnaudit.kernel.gauge_fit import STEPS, gauge_fit
from attnaudit.kernel.gauge_sample import same_length
from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.key_frame import KeyFrame
from attnaudit.measures.evaluation import Numbers, evaluate
from attnaudit.measures.identifiability import IDENTIFIABLE, POSSIBLE
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import MeasureInput, PredictedValues
from attnaudit.measures.references.base import ReferenceInput
from attnaudit.measures.references.planted import PLANTED
from attnaudit.measures.references.random_projection import RANDOM_PROJECTION
from attnaudit.measures.references.reparametrised import well_conditioned
from attnaudit.measures.references.rotated import ROTATED
from attnaudit.measures.subspace import VALUE_SUBSPACE_OVERLAP, orthonormal
from attnaudit.numerics.randomness import numpy_generator
from attnaudit.records.schema import OBSERVED, Measurement, RowKey
from attnaudit.theories.base import impossible, no_prediction
from attnaudit.theories.registry import ANY_GAUGE, THEORIES

#: Inputs of a half that a gauge is fitted to, with those that its ascent is checked on.
FITTED_ON = 12
#: Inputs with more tokens are left out: every step of a fit solves for all eigenvectors of every input.
MOST_TOKENS = 1024
#: The mean squared length of keys in a hidden gauge before it is stretched: the kernel is neither linear nor the unit
#: matrix there.
HIDDEN_SIZE = 1.25
#: Of values: a reference and its repeat.
_Kind = tuple[str, int]
_Bases = Float[Tensor, "heads tokens columns"]


@dataclass
class _HalfOfKeys:
    """Some inputs of a layer: keys of all heads, and bases of the values of each kind."""

    scale: PerHead
    keys: list[Float[Tensor, "heads tokens dim"]] = field(default_factory=list)
    values: dict[_Kind, list[_Bases]] = field(default_factory=dict)


class Gauges:
    """Fits gauges to heads, and measures other inputs in them.

    Args:
        halves: 0 or 1 for every input, by name.
        seed: of random references and hidden gauges.
        repeats: how often the null is drawn.
        inputs: of a half that a gauge is fitted to.
        steps: of a fit.
    """

    def __init__(
        self, halves: Mapping[str, int], seed: int, repeats: int, *, inputs: int = FITTED_ON, steps: int = STEPS
    ) -> None:
        self._halves, self._seed, self._repeats = halves, seed, repeats
        self._inputs, self._steps = inputs, steps
        self._kept: dict[tuple[int, int], _HalfOfKeys] = {}
        self._hidden: dict[int, Gauge] = {}
        self._fits: dict[tuple[int, int], dict[_Kind, Gauge]] = {}

    def add(self, keys: KeyKernel) -> None:
        """Take the heads of some inputs into account."""
        heads = keys.heads
        if not _fits(heads):
            return
        values: dict[_Kind, _Bases] = {}
        for rows in _rows(heads):
            entry = heads.index[rows.start]
            place = entry.layer, self._halves[entry.input]
            half = self._kept.setdefault(place, _HalfOfKeys(heads.scale[rows].double()))
            if len(half.keys) < self._inputs:
                values = values or dict(self._values(heads))
                if all(own[rows].isfinite().all() for own in (heads.key, *values.values())):
                    half.keys.append(heads.key[rows].double())
                    for kind, bases in values.items():
                        half.values.setdefault(kind, []).append(bases[rows])

    def fit(self) -> None:
        """End the first pass."""
        for layer in sorted({layer for layer, _ in self._kept}):
            halves = {half: self._kept.pop((layer, half)) for half in (0, 1) if (layer, half) in self._kept}
            keys = [own for half in halves.values() for own in half.keys]
            if not keys:
                continue
            self._hidden[layer] = self._hidden_gauge(layer, KeyFrame.of(keys))
            for place, half in halves.items():
                if half.keys:
                    self._fits[layer, place] = self._fitted(half, self._hidden[layer])

    def measured(self, keys: KeyKernel) -> Iterator[Measurement]:
        """The second pass: heads and references in the gauges that were fitted to the other half."""
        heads, theory = keys.heads, THEORIES[ANY_GAUGE]
        at = MeasureInput(heads, keys, PredictedValues(keys, theory))
        if impossible(theory, heads):
            yield _measurement(keys, RowKey(theory.name), evaluate([POSSIBLE], at))
            return
        guard, nothing = evaluate([IDENTIFIABLE], at), (None,) * len(heads)
        for reference, repeat, overlaps in self.overlaps(keys):
            numbers = {VALUE_SUBSPACE_OVERLAP.name: Numbers(overlaps, nothing)}
            own = numbers | guard if reference == OBSERVED else numbers
            yield _measurement(keys, RowKey(theory.name, reference, repeat), own)

    def overlaps(self, keys: KeyKernel) -> Iterator[tuple[str, int, PerHead]]:
        """In the second pass: a reference, its repeat, and the overlap of every head; NaN without a fit."""
        heads = keys.heads
        values = dict(self._values(heads)) if _fits(heads) else {}
        places: dict[tuple[int, int], list[slice]] = {}
        for rows in _rows(heads) if values else ():
            entry = heads.index[rows.start]
            places.setdefault((entry.layer, self._halves[entry.input]), []).append(rows)
        for kind in (*values, (PLANTED.name, 0)) if values else ():
            found = torch.full((len(heads),), torch.nan, dtype=torch.float64, device=heads.key.device)
            for (layer, half), inputs in places.items():
                gauge = self._fits.get((layer, half ^ 1), {}).get(kind)
                if gauge is None:
                    continue
                own = [heads.key[rows].double() for rows in inputs]
                bases = (
                    _spans(self._hidden[layer], own, heads.value.shape[-1])
                    if kind not in values
                    else [values[kind][rows] for rows in inputs]
                )
                for group in same_length(own):
                    stacked = (torch.stack([x[place] for place in group], dim=1) for x in (own, bases))
                    for place, overlaps in zip(group, gauge_overlaps(gauge, *stacked).unbind(dim=1), strict=True):
                        found[inputs[place]] = overlaps
            yield *kind, found

    def _fitted(self, half: _HalfOfKeys, hidden: Gauge) -> dict[_Kind, Gauge]:
        """The gauges of all kinds of values, fitted together as if they were more heads."""
        columns = next(iter(half.values.values()))[0].shape[-1]
        values = {**half.values, (PLANTED.name, 0): _spans(hidden, half.keys, columns)}
        count = len(values)
        found = gauge_fit(
            [own.repeat(count, 1, 1) for own in half.keys],
            [torch.cat(bases) for bases in zip(*values.values(), strict=True)],
            half.scale.repeat(count),
            steps=self._steps,
        )
        parts = zip(*(part.chunk(count) for part in (found.origin, found.factor, found.tilt)), strict=True)
        return dict(zip(values, (Gauge(*part) for part in parts), strict=True))

    def _values(self, heads: Heads) -> Iterator[tuple[_Kind, _Bases]]:
        """The observed values, and those of the null: a random projection, or without inputs of the layer, rotated."""
        yield (OBSERVED, 0), orthonormal(heads.value.double())
        null = ROTATED if heads.source is None else RANDOM_PROJECTION
        assert null.values is not None
        unused = no_prediction(heads, "it is not needed")
        for repeat in range(self._repeats):
            drawn = null.values(ReferenceInput(heads, unused, None, self._seed, repeat))
            assert drawn is not None
            yield (null.name, repeat), orthonormal(drawn)

    def _hidden_gauge(self, layer: int, frame: KeyFrame) -> Gauge:
        """A gauge for each head that the fit does not know.

        In the coordinates of `KeyFrame`, in which keys have covariance 1, L = √(size/d)·M with M as in
        `RandomGauge`, and c ~ N(0, 1), as large as the keys' own spread.
        """
        count, dim = frame.mean.shape
        drawn = [numpy_generator(f"{self._seed}/hidden_gauge/{layer}/{head}") for head in range(count)]
        stretched = torch.stack([well_conditioned(draw, dim) for draw in drawn]).to(frame.axes)
        shift = torch.stack([torch.from_numpy(draw.standard_normal((dim, 1))) for draw in drawn]).to(frame.axes)
        root = stretched * (HIDDEN_SIZE / dim) ** 0.5
        return Gauge(frame.mean, frame.axes @ root, (frame.axes @ root @ root.mT @ shift)[..., 0])


def _measurement(keys: KeyKernel, key: RowKey, numbers: Mapping[str, Numbers]) -> Measurement:
    values = {name: own.values for name, own in numbers.items()}
    problems = {name: own.problems for name, own in numbers.items()}
    return Measurement(keys.heads, key, values, problems, keys.protocol)


def _spans(gauge: Gauge, keys: Sequence[Float[Tensor, "heads _ dim"]], columns: int) -> list[_Bases]:
    """Bases of the values that a gauge predicts for each input."""
    found: dict[int, _Bases] = {}
    for group in same_length(keys):
        spans = gauge_spans(gauge, torch.stack([keys[place] for place in group], dim=1), columns)
        found |= dict(zip(group, spans.unbind(dim=1), strict=True))
    return [found[place] for place in range(len(keys))]


def _fits(heads: Heads) -> bool:
    """Whether the overlap says something, and can be fitted; of causal heads, a theorem says it all."""
    return heads.value.shape[-1] < heads.tokens <= MOST_TOKENS and not heads.causal


def _rows(heads: Heads) -> Iterator[slice]:
    """The heads of each input or window."""
    for _, places in groupby(range(len(heads)), key=lambda place: heads.index[place]._replace(head=0)):
        own = list(places)
        yield slice(own[0], own[-1] + 1)
