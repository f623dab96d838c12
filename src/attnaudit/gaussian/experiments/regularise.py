"""Does a PCA-like regulariser speed attention up on its way to v₁? With and without, from the same starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from attnaudit.errors import UsageError
from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, seeded
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.readout import squared_sine
from attnaudit.gaussian.risk import Covariance
from attnaudit.gaussian.tokens import GaussianTokens, TokenSource
from attnaudit.gaussian.training import HeadRecipe, Trajectory, random_start, train_on_fresh_prompts
from attnaudit.numerics.randomness import derived_seed
from attnaudit.records.trials import Trials
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

GAUSSIAN, ISOTROPIC, MISLED = "gaussian", "isotropic", "misled"
#: What is compared: log₁₀ of sin² without the regulariser less with it, on average over training and at its end.
SPEED, END = "speed", "end"
_START = 0.01
#: sin² below this is training noise.
_FLOOR = 1e-6


@dataclass(frozen=True)
class RegulariserRecord:
    """sin²(μ, v₁) at one step of one training."""

    kernel: str
    data: str
    strength: float
    run: int
    step: int
    squared_sine: float


def regularise(
    covariance: Covariance,
    length: int,
    *,
    strengths: Sequence[float],
    runs: int,
    recipe: HeadRecipe,
    seed: int,
    progress: Progress,
) -> Findings:
    """Train `runs` heads of each kernel without the regulariser and at every strength, from one start, on one stream.

    Three kinds of tokens: Gaussian; isotropic, where there is nothing to find; and Gaussian with a regulariser that is
    misled, because it is computed on tokens whose axes are in reverse order, so that it pulls towards the least
    direction instead of the first.
    """
    check_strengths(strengths)
    strengths = list(dict.fromkeys(strengths))  # duplicates count once
    dim, device = len(covariance), str(covariance.device)
    axes = principal_axes(covariance)[1]
    level = torch.eye(dim, dtype=covariance.dtype, device=device) * covariance.trace() / dim
    reverse = axes @ axes.flip(1).mT
    sources: dict[str, tuple[TokenSource, Covariance]] = {
        GAUSSIAN: (GaussianTokens(covariance), covariance),
        ISOTROPIC: (GaussianTokens(level), level),
        MISLED: (GaussianTokens(covariance), covariance),
    }
    total, done = len(Kernel) * len(sources) * runs * (1 + len(strengths)), 0
    records: list[RegulariserRecord] = []
    for kernel in Kernel:
        for data, (source, sigma) in sources.items():
            for run in range(runs):
                for strength in (0.0, *strengths):
                    progress(done, total)
                    # The same start and the same prompts at every strength, so that runs are compared in pairs.
                    stream = seeded(derived_seed(seed, kernel.value, data, run) % 2**63, device)
                    start = random_start(sigma, 1, stream, _START)
                    trained = train_on_fresh_prompts(
                        kernel, source, length, start, stream, replace(recipe, pca_weight=strength),
                        regularised_on=partial(torch.matmul, other=reverse) if data == MISLED else _unchanged,
                    )  # fmt: skip
                    records += _records(trained, kernel.value, data, strength, run, axes[:, 0])
                    done += 1
    progress(total, total)
    trials = [
        trial
        for kernel in Kernel
        for data in sources
        for strength in strengths
        for trial in _trials(records, kernel.value, data, strength)
    ]
    return Findings(tuple(_checks(records, strengths)), tuple(trials), tuple(records))


def check_strengths(strengths: Sequence[float]) -> None:
    """Check that there are strengths to compare with none.

    Raises:
        UsageError: there are none, or one is not positive and finite.
    """
    if not strengths or not all(0 < strength < math.inf for strength in strengths):
        got = ", ".join(map(str, strengths)) or "none"
        raise UsageError(f"Strengths of the regulariser must be > 0 and finite, got {got}.")


def _unchanged(prompts: Tensor) -> Tensor:
    return prompts


def _records(
    trained: Trajectory, kernel: str, data: str, strength: float, run: int, first: Tensor
) -> list[RegulariserRecord]:
    steps = zip(trained.steps, trained.weights, strict=True)
    return [
        RegulariserRecord(kernel, data, strength, run, step, float(squared_sine(weights[:, 0], first)))
        for step, weights in steps
    ]


def logarithms(records: Sequence[RegulariserRecord], kernel: str, data: str, strength: float) -> np.ndarray:
    """log₁₀ sin² of every run (rows) at every recorded step (columns)."""
    own = [r for r in records if (r.kernel, r.data, r.strength) == (kernel, data, strength)]
    runs = sorted({r.run for r in own})
    return np.log10([[max(r.squared_sine, _FLOOR) for r in own if r.run == run] for run in runs])


def _trials(records: Sequence[RegulariserRecord], kernel: str, data: str, strength: float) -> list[Trials]:
    """Gains of every run, beside what is known to make a difference: what the misled regulariser loses."""
    gains = _gains(records, kernel, data, strength)
    misled = {name: -float(values.mean()) for name, values in _gains(records, kernel, MISLED, strength).items()}
    subject = f"{kernel}, {data}, γ = {strength:g}"
    return [Trials(subject, name, tuple(values.tolist()), (0.0,), misled[name]) for name, values in gains.items()]


def _gains(records: Sequence[RegulariserRecord], kernel: str, data: str, strength: float) -> dict[str, np.ndarray]:
    plain, pulled = (logarithms(records, kernel, data, own) for own in (0.0, strength))
    return {SPEED: (plain - pulled)[:, 1:].mean(axis=1), END: (plain - pulled)[:, -1]}


def _checks(records: Sequence[RegulariserRecord], strengths: Sequence[float]) -> list[TheoryCheck]:
    """Mean log₁₀ sin² over training and at the end, with its interval over runs."""
    checks = []
    for kernel in Kernel:
        for data in (GAUSSIAN, ISOTROPIC, MISLED):
            for strength in (0.0, *strengths):
                found = logarithms(records, kernel.value, data, strength)
                end = found[:, -1]
                low, high = student_interval(end, CONFIDENCE) or (float("nan"), float("nan"))
                note = f"mean over training {found[:, 1:].mean():.2f}; 95 % [{low:.2f}, {high:.2f}] at the end"
                name = f"{kernel.value}, {data}, γ = {strength:g}: log₁₀ sin² at the end"
                checks.append(
                    TheoryCheck(name, None, float(end.mean()), float(end.std(ddof=1)) / len(end) ** 0.5, note)
                )
    return checks
