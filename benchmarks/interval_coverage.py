"""How often intervals of a mean miss it, for numbers that are normal, skewed, or have heavy tails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from itertools import product
from math import exp

import numpy as np

from attnaudit.numerics.randomness import numpy_generator
from attnaudit.statistics.intervals import Numbers, widened_level
from attnaudit.statistics.means import mean_interval

Draw = Callable[[np.random.Generator, int], Numbers]

#: Numbers of a kind, and their mean.
KINDS: Mapping[str, tuple[Draw, float]] = {
    "normal": (lambda generator, size: generator.standard_normal(size), 0.0),
    "gamma, shape 2": (lambda generator, size: generator.gamma(2.0, 1.0, size), 2.0),
    "exponential": (lambda generator, size: generator.exponential(1.0, size), 1.0),
    "log-normal, σ = ½": (lambda generator, size: generator.lognormal(0.0, 0.5, size), exp(0.125)),
    "Student's t, 5 degrees": (lambda generator, size: generator.standard_t(5, size), 0.0),
    "Student's t, 3 degrees": (lambda generator, size: generator.standard_t(3, size), 0.0),
    "5 % outliers, 5 times as wide": (
        lambda generator, size: generator.standard_normal(size) * np.where(generator.random(size) < 0.05, 5, 1),
        0.0,
    ),
}
COUNTS = (8, 12, 25, 50)
#: Measures that decide a claim, for which its intervals are widened.
MEASURES = (1, 2, 3)


def missed(kind: str, count: int, measures: int, draws: int, seed: int) -> float:
    """The share of intervals that do not contain the mean."""
    draw, mean = KINDS[kind]
    generator = numpy_generator(f"{seed}/{kind}/{count}")
    level = widened_level(measures)
    intervals = (mean_interval(draw(generator, count), level) for _ in range(draws))
    return sum(found is None or not found[0] <= mean <= found[1] for found in intervals) / draws


def coverage_table(draws: int, seed: int, pool: Executor) -> str:
    """In Markdown: a row per kind and number of measures, a column per number of inputs."""
    jobs = list(product(KINDS, MEASURES, COUNTS))
    found = dict(
        zip(jobs, pool.map(missed, *zip(*((k, c, m, draws, seed) for k, m, c in jobs), strict=True)), strict=True)
    )
    heading = ["numbers", "nominal", *(f"n = {count}" for count in COUNTS)]
    rows = [
        [kind, _percent(1 - widened_level(measures)), *(_percent(found[kind, measures, count]) for count in COUNTS)]
        for kind, measures in product(KINDS, MEASURES)
    ]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heading, ["---"] * len(heading), *rows))


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
