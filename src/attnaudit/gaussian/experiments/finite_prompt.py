"""Finite data: how the error of the direction falls with the length and the number of prompts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.errors import UsageError
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.covariance import principal_axes, second_moment
from attnaudit.gaussian.estimate import Estimate, estimate
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, chance_alignment, seeded
from attnaudit.gaussian.head import Kernel
from attnaudit.gaussian.optimum import optimum
from attnaudit.gaussian.readout import squared_sine
from attnaudit.gaussian.risk import Covariance
from attnaudit.gaussian.sampling import pca_variance, sampling_inflation
from attnaudit.gaussian.tokens import GaussianTokens, SkewedTokens, TokenSource
from attnaudit.gaussian.training import minimise_on_data, random_start
from attnaudit.records.trials import Trials

#: The repetitions are split into this many groups, each of which gives one slope over all lengths.
_GROUPS = 10
#: The number of prompts from which the variance of a prompt's gradient is estimated.
_SANDWICH = 40_000
ONE_PROMPT, MANY_PROMPTS = "one prompt", "many prompts"


@dataclass(frozen=True)
class ErrorRecord:
    """Mean sin² at one length; `predicted` is Λ/L or κ_LΛ/N."""

    setting: str
    kernel: str
    data: str
    length: int
    prompts: int
    squared_sine: float
    standard_error: float
    predicted: float | None


def finite_prompt_error(
    covariance: Covariance,
    lengths: Sequence[int],
    *,
    repeats: int,
    prompts: int,
    prompt_length: int,
    seed: int,
    progress: Progress,
) -> Findings:
    """`repeats` times one prompt of each length; then `repeats`/10 times `prompts` prompts with one query each."""
    for length in (*lengths, prompt_length):
        check_length(length)
    if len(set(lengths)) < 2 or repeats < 2 * _GROUPS:
        raise UsageError(
            f"A slope needs ≥ 2 lengths and ≥ {2 * _GROUPS} repeats, got {len(set(lengths))} and {repeats}."
        )
    generator = seeded(seed, str(covariance.device))
    variance = pca_variance(covariance)
    total = 2 * len(lengths) + 2 * len(Kernel)
    level = torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    records, checks, sines = [], [], {}
    for place, (data, sigma) in enumerate((("gaussian", covariance), ("isotropic", level))):
        for step, length in enumerate(lengths):
            progress(place * len(lengths) + step, total)
            sines[data, length] = _one_prompt(sigma, covariance, length, repeats, generator)
            found = estimate(sines[data, length])
            predicted = variance / length if data == "gaussian" else None
            records.append(ErrorRecord(ONE_PROMPT, "linear", data, length, 1, *_numbers(found), predicted))
            if predicted is not None:
                scaled = Estimate(found.mean / predicted, found.standard_error / predicted)
                checks.append(TheoryCheck(f"one prompt, L = {length}: sin²·L/Λ", 1.0, *_numbers(scaled)))
    curves = {data: torch.stack([sines[data, n] for n in lengths]) for data in ("gaussian", "isotropic")}
    rate = _slope(lengths, curves["gaussian"])
    checks.insert(0, _identity(covariance, lengths[0], generator))
    checks.append(TheoryCheck("slope of log rms sin in log L", -0.5, *_numbers(rate)))
    chance = chance_alignment(len(covariance), generator)
    trials = _rates(lengths, curves)
    for data, curve in curves.items():
        trials.append(Trials(f"linear, one prompt, {data}", "alignment", tuple((1 - curve[-1]).tolist()), chance, 1.0))
    sources: dict[str, TokenSource] = {"gaussian": GaussianTokens(covariance), "skewed": SkewedTokens(covariance)}
    done = 2 * len(lengths)
    for kernel in Kernel:
        best = optimum(kernel, covariance, prompt_length, generator)
        factor = sampling_inflation(kernel, covariance, prompt_length, best, _SANDWICH, generator)
        for data, source in sources.items():
            progress(done, total)
            done += 1
            found_sines = _many_prompts(kernel, source, covariance, prompts, prompt_length, repeats // 10, generator)
            found = estimate(found_sines)
            predicted = factor.mean * variance / prompts if data == "gaussian" else None
            setting = (MANY_PROMPTS, kernel.value, data, prompt_length, prompts)
            records.append(ErrorRecord(*setting, *_numbers(found), predicted))
            subject = f"{kernel.value}, {prompts} prompts of {prompt_length}, {data}"
            trials.append(Trials(subject, "alignment", tuple((1 - found_sines).tolist()), chance, 1.0))
            if predicted is not None:
                unit = variance / prompts
                error = math.hypot(found.standard_error / unit, factor.standard_error)
                name = f"{kernel.value}, {prompts} prompts of {prompt_length}: sin²·N/Λ = κ_L"
                checks.append(TheoryCheck(name, factor.mean, found.mean / unit, error))
    progress(total, total)
    return Findings(tuple(checks), tuple(trials), tuple(records))


def _one_prompt(
    sigma: Covariance, covariance: Covariance, length: int, repeats: int, generator: Generator
) -> Float[Tensor, "repeats"]:
    """sin² between v₁ and the top eigenvector of Ŝ, which minimises the loss of one prompt."""
    first = principal_axes(covariance)[1][:, 0]
    moments = torch.stack([second_moment(GaussianTokens(sigma).draw(1, length, generator)[0]) for _ in range(repeats)])
    tops = torch.linalg.eigh(moments).eigenvectors[..., -1]
    return squared_sine(tops, first.expand_as(tops))


def _identity(covariance: Covariance, length: int, generator: Generator) -> TheoryCheck:
    """Training on one prompt ends at the top eigenvector of that prompt's Ŝ."""
    prompt = GaussianTokens(covariance).draw(1, length, generator)
    trained = minimise_on_data(Kernel.LINEAR, prompt, random_start(covariance, 1, generator))
    top = torch.linalg.eigh(second_moment(prompt[0])).eigenvectors[:, -1]
    return TheoryCheck(
        f"one prompt, L = {length}: sin²(trained μ, top of Ŝ)", 0.0, float(squared_sine(trained[:, 0], top))
    )


def _many_prompts(
    kernel: Kernel,
    source: TokenSource,
    covariance: Covariance,
    prompts: int,
    length: int,
    repeats: int,
    generator: Generator,
) -> Float[Tensor, "repeats"]:
    first = principal_axes(covariance)[1][:, 0]
    found = []
    for _ in range(repeats):
        data = source.draw(prompts, length, generator)
        trained = minimise_on_data(kernel, data, random_start(covariance, 1, generator), queries=1)
        found.append(squared_sine(trained[:, 0], first))
    return torch.stack(found)


def _rates(lengths: Sequence[int], curves: dict[str, Float[Tensor, "lengths repeats"]]) -> list[Trials]:
    """The rate -slope at which the error falls: ½ if the claim holds, 0 for isotropic tokens."""
    rates = {
        data: tuple(-_slope(lengths, group).mean for group in curve.tensor_split(_GROUPS, dim=1))
        for data, curve in curves.items()
    }
    return [
        Trials(f"linear, one prompt, {data}", "sampling_rate", own, rates["isotropic"], 0.5)
        for data, own in rates.items()
    ]


def _slope(lengths: Sequence[int], sines: Float[Tensor, "lengths repeats"]) -> Estimate:
    """The least-squares slope of ½·log mean sin² over log L, with its standard error."""
    x = torch.tensor([math.log(length) for length in lengths], dtype=sines.dtype, device=sines.device)
    means = sines.mean(dim=1)
    y = means.log() / 2
    errors = sines.std(dim=1) / math.sqrt(sines.shape[1]) / means / 2
    pull = (x - x.mean()) / (x - x.mean()).square().sum()
    return Estimate(float(pull @ y), float((pull * errors).norm()))


def _numbers(found: Estimate) -> tuple[float, float]:
    return found.mean, found.standard_error
