"""The gauge of a head in which kernel PCA of its keys comes closest to its values, over several inputs.

A gauge belongs to the weights of a head, so all inputs share it. The mean overlap is climbed by limited-memory BFGS
(Nocedal 1980), all heads at a time: each tries a step, takes it if it gains, and shortens it otherwise. So it never
ends below its starts. Some inputs are kept out of the ascent, and of the points on the way the one that is best on
these is taken: a kernel of d = 64 has 2,144 parameters, enough to fit the noise of a few inputs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnaudit.kernel.any_gauge import Gauge
from attnaudit.kernel.gauge_sample import GaugeSample, Parameters
from attnaudit.kernel.gram import PerHead
from attnaudit.kernel.key_frame import KeyFrame
from attnaudit.numerics.threads import torch_threads

#: Evaluations of an ascent.
STEPS = 20
#: Whitened keys of these mean squared lengths are starts, beside the linear limit.
SIZES = (1 / 16, 1 / 4, 1.0, 2.0, 4.0, 8.0)
#: The model's own gauge is a start where it gains this over the others. They are the same in every gauge of the model,
#: and so is a fit that begins with them.
OWN_GAIN = 0.1
#: Every so many inputs, one is kept out of the ascent to choose a point on its way.
CHECKED = 4
#: Pairs of steps and changes of the gradient that the ascent remembers.
_MEMORY = 10
#: The first step, as a share of the length of the parameters, and what a step is shortened to if it does not gain.
_FIRST, _SHORTER = 0.1, 1 / 3


def gauge_fit(
    keys: Sequence[Float[Tensor, "heads _ dim"]],
    values: Sequence[Float[Tensor, "heads _ columns"]],
    scale: PerHead,
    *,
    steps: int = STEPS,
) -> Gauge:
    """The best gauge found for each head.

    Args:
        keys: of each input.
        values: of each input, as orthonormal bases.
        scale: of each head: with it the model's own kernel is exp(scale·k·k').
        steps: how often the overlap and its gradient are computed.
    """
    places = range(len(keys))
    kept = [place for place in places if place % CHECKED == CHECKED - 1] or list(places[1:][-1:])
    used = [place for place in places if place not in kept]
    with torch_threads(1):
        sample = GaugeSample.of([keys[place] for place in used], [values[place] for place in used])
        check = GaugeSample.of(*([x[place] for place in kept or used] for x in (keys, values)))
        linear, *sized, own = _starts(KeyFrame.of(keys), scale)
        reached, start = sample.overlap(sized[0]), sized[0]
        for candidate, gain in (*((size, 0.0) for size in sized[1:]), (own, OWN_GAIN)):
            found = sample.overlap(candidate)
            better = found > reached + gain
            start, reached = candidate.where(better, start), torch.where(better, found, reached)
        flat = sample.overlap(linear)
        best, least = start.where(reached > flat, linear), torch.maximum(reached, flat)
        best_check = check.overlap(best)
        for gauge, value in _ascent(sample, start, steps):
            checked = check.overlap(gauge)
            better = (value >= least) & (checked > best_check)
            best, best_check = gauge.where(better, best), torch.where(better, checked, best_check)
        return best


def _starts(frame: KeyFrame, scale: PerHead) -> list[Gauge]:
    """The linear limit, gauges of whitened keys in several sizes, and the model's own gauge."""
    whitened = frame.axes / frame.axes.shape[-1] ** 0.5
    own = torch.eye(frame.axes.shape[-1]).to(whitened) * scale.to(whitened).sqrt()[:, None, None]
    sized = [Gauge(frame.mean, whitened * size**0.5, torch.zeros_like(frame.mean)) for size in SIZES]
    return [Gauge.linear_limit(frame.mean, whitened), *sized, Gauge.of(own, torch.zeros_like(frame.mean))]


def _gauge(point: Parameters, dim: int) -> Gauge:
    tilt = point[:, dim * dim :]
    return Gauge(torch.zeros_like(tilt), point[:, : dim * dim].reshape(-1, dim, dim), tilt)


def _ascent(sample: GaugeSample, start: Gauge, steps: int) -> Iterator[tuple[Gauge, PerHead]]:
    """The points of the ascent, and their values. It runs in the coordinates in which the start is L = 1, w = 0."""
    sample, dim = sample.transformed(start), start.factor.shape[-1]
    one = torch.eye(dim).to(start.factor).flatten().expand(len(start.factor), -1)
    point = torch.cat([one, torch.zeros_like(start.tilt)], dim=1)
    value, slope = sample.climb(_gauge(point, dim))
    curvature = _Curvature(_FIRST * point.norm(dim=1) / slope.norm(dim=1))
    direction, length = curvature.direction(slope), torch.ones_like(value)
    for _ in range(steps):
        tried = point + length[:, None] * direction
        found, following = sample.climb(_gauge(tried, dim))
        gains = (found > value) & following.isfinite().all(dim=1)
        moved = gains[:, None]
        curvature.add(torch.where(moved, tried - point, 0.0), torch.where(moved, slope - following, 0.0))
        point, slope = torch.where(moved, tried, point), torch.where(moved, following, slope)
        value = torch.where(gains, found, value)
        direction = torch.where(moved, curvature.direction(slope), direction)
        length = torch.where(gains, 1.0, length * _SHORTER)
        if gains.any():
            own = _gauge(point, dim)
            yield Gauge(start.origin, start.factor @ own.factor, (start.factor @ own.tilt[..., None])[..., 0]), value


class _Curvature:
    """What an ascent has learnt of the second derivatives: limited-memory BFGS for every head by itself."""

    def __init__(self, size: PerHead) -> None:
        self._size = size
        self._pairs: deque[tuple[Parameters, Parameters, PerHead]] = deque(maxlen=_MEMORY)

    def add(self, step: Parameters, change: Parameters) -> None:
        """A step, and by how much the gradient fell on it; nothing for heads where it did not, or that did not move."""
        product = (step * change).sum(dim=1)
        falls = product > 1e-10 * step.norm(dim=1) * change.norm(dim=1)
        moved = (step != 0).any(dim=1)
        inverse = torch.where(falls, 1 / product, 0.0)
        self._pairs.append((step, torch.where(falls[:, None], change, 0.0), inverse))
        newest = product / change.square().sum(dim=1)
        self._size = torch.where(falls, newest, torch.where(moved, 2 * self._size, self._size))

    def direction(self, slope: Parameters) -> Parameters:
        """The two loops of Nocedal (1980), or the gradient where they do not lead upwards."""
        found, shares = slope, []
        for step, change, inverse in reversed(self._pairs):
            shares.append(inverse * (step * found).sum(dim=1))
            found = found - shares[-1][:, None] * change
        found = found * self._size[:, None]
        for (step, change, inverse), share in zip(self._pairs, reversed(shares), strict=True):
            found = found + (share - inverse * (change * found).sum(dim=1))[:, None] * step
        upwards = (found * slope).sum(dim=1) > 0
        return torch.where(upwards[:, None], found, slope * self._size[:, None])
