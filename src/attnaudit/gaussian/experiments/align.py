"""Alignment with v₁ over training: both kernels on Gaussian, isotropic and skewed tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.gaussian.covariance import principal_axes
from attnaudit.gaussian.estimate import Estimate, estimate, simulated_risk
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, chance_alignment, seeded
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.optimum import optimum
from attnaudit.gaussian.readout import cosine, squared_sine
from attnaudit.gaussian.risk import Covariance, finite_prompt
from attnaudit.gaussian.softmax import SoftmaxProfile
from attnaudit.gaussian.tokens import GaussianTokens, SkewedTokens, TokenSource
from attnaudit.gaussian.training import HeadRecipe, Trajectory, descend, random_start, train_on_fresh_prompts
from attnaudit.records.trials import Trials

GAUSSIAN, ISOTROPIC, SKEWED = "gaussian", "isotropic", "skewed"
FLOW = "flow"
_FLOW_STEPS = 4000
#: Small, because directions of little variance forget their initial value slowly.
_START = 0.01


@dataclass(frozen=True)
class AlignRecord:
    """One step of one training; `kernel` is `flow` for gradient descent on the closed form."""

    kernel: str
    data: str
    run: int
    step: int
    squared_sine: float
    readout_squared_sine: float
    size: float


def align(
    covariance: Covariance,
    length: int,
    *,
    runs: int,
    recipe: HeadRecipe,
    seed: int,
    progress: Progress,
) -> Findings:
    """Train `runs` heads of each kernel on each kind of tokens, and compare direction, size and risk with theory."""
    dim, device = len(covariance), str(covariance.device)
    generator = seeded(seed, device)
    first = principal_axes(covariance)[1][:, 0]
    level = torch.eye(dim, dtype=covariance.dtype, device=device) * covariance.trace() / dim
    sources: dict[str, tuple[TokenSource, Covariance]] = {
        GAUSSIAN: (GaussianTokens(covariance), covariance),
        ISOTROPIC: (GaussianTokens(level), level),
        SKEWED: (SkewedTokens(covariance), covariance),
    }
    chance = chance_alignment(dim, generator)
    total = len(sources) * len(Kernel) * runs
    records, trials, checks, done = [], [], [], 0
    for kernel in Kernel:
        ends: list[Float[Tensor, "dim"]] = []
        for data, (source, sigma) in sources.items():
            observed, read = [], []
            for run in range(runs):
                progress(done, total)
                start = random_start(sigma, 1, generator, _START)
                trained = train_on_fresh_prompts(kernel, source, length, start, generator, recipe)
                records += _records(trained, kernel.value, data, run, sigma, first)
                observed.append(float(cosine(trained.end[:, 0], first)) ** 2)
                read.append(float(cosine(sigma @ trained.end[:, 0], first)) ** 2)
                ends += [trained.end[:, 0]] if data == GAUSSIAN else []
                done += 1
            subject = f"{kernel.value}, {data}"
            trials.append(Trials(subject, "alignment", tuple(observed), chance, 1.0))
            trials.append(Trials(subject, "readout_alignment", tuple(read), chance, 1.0))
        checks += _checks(kernel, covariance, length, torch.stack(ends), generator)
    flow = descend(finite_prompt(length), covariance, random_start(covariance, 1, generator), steps=_FLOW_STEPS)
    records += _records(flow, FLOW, GAUSSIAN, 0, covariance, first)
    size = finite_prompt(length).optimal_size(*_leading(covariance))
    checks.append(TheoryCheck("flow on R_L: |cos(Σμ, v₁)|", 1.0, float(cosine(covariance @ flow.end[:, 0], first))))
    checks.append(TheoryCheck("flow on R_L: s", size, _size(flow.end, covariance)))
    progress(total, total)
    return Findings(tuple(checks), tuple(trials), tuple(records))


def _checks(
    kernel: Kernel, covariance: Covariance, length: int, ends: Float[Tensor, "runs dim"], generator: Generator
) -> list[TheoryCheck]:
    name = kernel.value
    first = principal_axes(covariance)[1][:, 0].expand_as(ends)
    best = optimum(kernel, covariance, length, generator)
    sizes = estimate((ends * (ends @ covariance)).sum(dim=1))
    # The predicted size has a standard error too, from its own draws.
    error = math.hypot(sizes.standard_error, best.size.standard_error)
    predicted = _predicted_risk(kernel, ends[0], covariance, length, generator)
    prompts = max(256, 2**20 // (length * len(covariance)))
    measured = simulated_risk(kernel, ends[0], GaussianTokens(covariance), length, prompts, generator, queries=16)
    risk_error = math.hypot(measured.standard_error, predicted.standard_error)
    unknown = "no closed form for the training noise"
    return [
        TheoryCheck(f"{name}: |cos(μ, v₁)|", 1.0, float(cosine(ends, first).mean()), note=unknown),
        TheoryCheck(f"{name}: |cos(Σμ, v₁)|", 1.0, float(cosine(ends @ covariance, first).mean()), note=unknown),
        TheoryCheck(f"{name}: s = μᵀΣμ", best.size.mean, sizes.mean, error),
        TheoryCheck(f"{name}: risk of the trained head", predicted.mean, measured.mean, risk_error),
    ]


def _predicted_risk(
    kernel: Kernel, mu: Float[Tensor, "dim"], covariance: Covariance, length: int, generator: Generator
) -> Estimate:
    """tω + (b/a)g: exact for linear attention; for the softmax with the error of its one-dimensional draws."""
    if kernel is Kernel.LINEAR:
        return Estimate(float(finite_prompt(length)(mu[:, None], covariance)), 0.0)
    size, quotient = _size(mu[:, None], covariance), float((covariance @ mu).square().sum() / (mu @ covariance @ mu))
    profile = SoftmaxProfile(length, max(256, 2**18 // length), generator)
    drawn = estimate(profile.risk(size, float(covariance.trace()) / quotient))
    return Estimate(quotient * drawn.mean, quotient * drawn.standard_error)


def _records(
    trained: Trajectory, kernel: str, data: str, run: int, covariance: Covariance, first: Float[Tensor, "dim"]
) -> list[AlignRecord]:
    return [
        AlignRecord(
            kernel,
            data,
            run,
            step,
            float(squared_sine(weights[:, 0], first)),
            float(squared_sine(covariance @ weights[:, 0], first)),
            _size(weights, covariance),
        )
        for step, weights in zip(trained.steps, trained.weights, strict=True)
    ]


def _size(weights: Float[Tensor, "dim rank"], covariance: Covariance) -> float:
    return float((weights * (covariance @ weights)).sum())


def _leading(covariance: Covariance) -> tuple[float, float]:
    return float(torch.linalg.eigvalsh(covariance)[-1]), float(covariance.trace())
