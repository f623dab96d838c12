"""In context: every prompt has its own covariance; all covariances share a spike."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.errors import UsageError
from attnaudit.gaussian.checks import check_degrees, check_length, check_spike
from attnaudit.gaussian.covariance import spiked_scale
from attnaudit.gaussian.estimate import estimate
from attnaudit.gaussian.experiments.findings import Findings, Progress, TheoryCheck, chance_alignment, seeded
from attnaudit.gaussian.head import Kernel, reconstruction_loss
from attnaudit.gaussian.readout import cosine
from attnaudit.gaussian.risk import finite_prompt, infinite_prompt
from attnaudit.gaussian.spike import attention_overlap, bbp_overlap, pooled_overlap
from attnaudit.gaussian.tokens import WishartTokens
from attnaudit.gaussian.training import HeadRecipe, random_start, train_on_fresh_losses
from attnaudit.records.trials import Trials

Weights = Float[Tensor, "dim rank"]
#: Spikes at which recovery is measured, in units of √γ, the transition point of PCA.
MULTIPLES = (0.5, 1.0, 2.0, 3.0, 5.0)
ATTENTION, POOLED = "attention", "pooled PCA"


@dataclass(frozen=True)
class RecoveryRecord:
    """cos² with the spike from K tasks of n vectors; `multiple` is θ/√γ, γ = d/(nK)."""

    method: str
    tasks: int
    degrees: int
    multiple: float
    theta: float
    overlap: float
    standard_error: float
    bbp: float


def in_context(
    dim: int,
    theta: float,
    degrees: int,
    length: int,
    *,
    runs: int,
    recipe: HeadRecipe,
    task_numbers: Sequence[int],
    recovery_dim: int,
    recovery_degrees: Sequence[int],
    repeats: int,
    seed: int,
    progress: Progress,
    device: str = "cpu",
) -> Findings:
    """Compare heads trained on fresh tasks with α*, and minimisers on few tasks with pooled PCA and the BBP curve."""
    check_spike(theta)
    check_degrees(degrees)
    for number in recovery_degrees:
        check_degrees(number)
    check_length(length)
    if min(dim, recovery_dim) < 2 or min(task_numbers, default=0) < 1 or runs < 2 or repeats < 2:
        raise UsageError(
            f"Dimensions, runs and repeats must be ≥ 2 and tasks ≥ 1, got dim={dim}, recovery_dim={recovery_dim}, "
            f"runs={runs}, repeats={repeats} and tasks={list(task_numbers)}."
        )
    generator = seeded(seed, device)
    total = 6 * runs + len(recovery_degrees) * len(task_numbers) * len(MULTIPLES)
    done = 0

    def tick() -> None:
        nonlocal done
        progress(done, total)
        done += 1

    checks, trials = _fresh_tasks(dim, theta, degrees, length, runs, recipe, generator, tick)
    records: list[RecoveryRecord] = []
    for few, number, multiple in itertools.product(recovery_degrees, task_numbers, MULTIPLES):
        tick()
        own = _recovery(recovery_dim, few, number, multiple, repeats, generator)
        records += own
        # On one task, attention is PCA; on several it is not, and theory predicts nothing for it.
        checks += [
            TheoryCheck(f"{record.method}, n={few} K={number} θ={multiple:g}√γ: cos²", record.bbp, record.overlap,
                  record.standard_error, note="BBP: d = ∞")
            for record in own
            if record.method == (ATTENTION if number == 1 else POOLED)
        ]  # fmt: skip
    progress(total, total)
    return Findings(tuple(checks), tuple(trials), tuple(records))


def _fresh_tasks(
    dim: int,
    theta: float,
    degrees: int,
    length: int,
    runs: int,
    recipe: HeadRecipe,
    generator: Generator,
    tick: Callable[[], None],
) -> tuple[list[TheoryCheck], list[Trials]]:
    """Train on infinite prompts, and linear and softmax heads, with the spike and, as a control, without it."""
    direction = torch.randn(dim, generator=generator, dtype=torch.float64, device=generator.device)
    chance = chance_alignment(dim, generator)
    trace, largest = dim + theta, 1 + theta
    # In units where tasks are divided by n: a critical size s is μᵀVμ = α²λ, and 1/n of that without the division.
    sizes: dict[str, float | None] = {
        "infinite": infinite_prompt().over_wishart(degrees).optimal_size(largest, trace) * degrees,
        "linear": finite_prompt(length).over_wishart(degrees).optimal_size(largest, trace) * degrees,
        "softmax": None,
    }
    checks, trials = [], []
    for kind, size in sizes.items():
        for spike in (theta, 0.0):
            source = WishartTokens(spiked_scale(direction, spike), degrees)
            loss = _task_loss(kind, source, length, recipe, generator)
            ends = []
            for _ in range(runs):
                tick()
                start = random_start(source.scale, 1, generator)
                ends.append(train_on_fresh_losses(loss, start, recipe).end[:, 0])
            found = torch.stack(ends)
            cosines = cosine(found, direction.expand_as(found))
            setting = f"{kind}, n = {degrees}, θ = {spike:g}"
            trials.append(Trials(setting, "alignment", tuple(cosines.square().tolist()), chance, 1.0))
            if spike:
                measured = estimate((found @ direction / direction.norm()).square())
                note = "" if size is not None else "no closed form for the softmax"
                predicted = None if size is None else size / largest
                checks.append(TheoryCheck(f"{setting}: |cos(μ, v)|", 1.0, float(cosines.mean()),
                                    note="no closed form for the training noise"))  # fmt: skip
                checks.append(
                    TheoryCheck(f"{setting}: n·α²", predicted, measured.mean, measured.standard_error, note=note)
                )
    return checks, trials


def _task_loss(
    kind: str, source: WishartTokens, length: int, recipe: HeadRecipe, generator: Generator
) -> Callable[[Weights], Float[Tensor, ""]]:
    if kind == "infinite":
        risk = infinite_prompt()
        return lambda weights: risk(weights, source.covariances(recipe.prompts, generator)).mean()
    kernel = Kernel(kind)
    return lambda weights: reconstruction_loss(
        kernel, source.draw(recipe.prompts, length, generator), weights, recipe.queries
    ).mean()


def _recovery(
    dim: int, degrees: int, tasks: int, multiple: float, repeats: int, generator: Generator
) -> list[RecoveryRecord]:
    gamma = dim / (degrees * tasks)
    theta = multiple * math.sqrt(gamma)
    overlaps: dict[str, list[float]] = {ATTENTION: [], POOLED: []}
    for _ in range(repeats):
        direction = torch.randn(dim, generator=generator, dtype=torch.float64, device=generator.device)
        source = WishartTokens(spiked_scale(direction, theta), degrees)
        covariances = source.covariances(tasks, generator)
        overlaps[ATTENTION].append(attention_overlap(covariances, direction, generator))
        overlaps[POOLED].append(pooled_overlap(covariances, direction))
    records = []
    for method, values in overlaps.items():
        found = estimate(torch.tensor(values, dtype=torch.float64))
        numbers = (found.mean, found.standard_error, bbp_overlap(theta, gamma))
        records.append(RecoveryRecord(method, tasks, degrees, multiple, theta, *numbers))
    return records
