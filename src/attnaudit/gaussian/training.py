"""Three ways to train a head: on the closed-form risk, on fresh prompts, and on one fixed data set."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from attnaudit.attention.functional import unexplained_variance
from attnaudit.errors import NumericalError, UsageError
from attnaudit.gaussian.checks import check_length
from attnaudit.gaussian.head import Kernel, reconstruction_loss
from attnaudit.gaussian.risk import Batch, Covariance, Risk
from attnaudit.gaussian.tokens import TokenSource

Weights = Float[Tensor, "dim rank"]
Loss = Callable[[Weights], Float[Tensor, ""]]


@dataclass(frozen=True)
class Trajectory:
    """Parameters at some steps of a training, up to the last."""

    steps: tuple[int, ...]
    weights: tuple[Tensor, ...]

    @property
    def end(self) -> Tensor:
        """The trained parameter."""
        return self.weights[-1]


def random_start(
    covariance: Float[Tensor, "dim dim"], rank: int, generator: Generator, size: float = 0.5
) -> Float[Tensor, "dim rank"]:
    """A random direction per column, scaled so that μᵀΣμ = size.

    At finite length the softmax risk is bounded, with a plateau that starts with a ≤ 1 avoid.
    """
    noise = torch.randn(len(covariance), rank, generator=generator, dtype=covariance.dtype, device=covariance.device)
    return noise * (size / (noise * (covariance @ noise)).sum(dim=0)).sqrt()


def descend(
    risk: Risk, covariance: Covariance, start: Batch, *, steps: int, step: float = 0.8, records: int = 50
) -> Trajectory:
    """Gradient descent on a closed-form risk with step size step/H; several starts form a batch.

    H is the curvature along v₁ at the optimum of rank one, the largest there: descent is stable for step < 2.
    """
    largest = float(torch.linalg.eigvalsh(covariance)[-1])
    rate = step / risk.steepest(largest, float(covariance.trace()))
    weights, kept = start, {0: start}
    marks = {round(steps * (i + 1) / records) for i in range(records)}
    for number in range(1, steps + 1):
        weights = weights - rate * risk.gradient(weights, covariance)
        if number in marks:
            kept[number] = weights
    if not weights.isfinite().all():
        raise NumericalError(f"Gradient descent diverged with a step of {step:g}/H: use a step below 2.")
    return Trajectory(tuple(kept), tuple(kept.values()))


def minimise(loss: Loss, start: Weights, iterations: int = 500) -> Weights:
    """The minimiser found by L-BFGS with a strong Wolfe line search; deterministic."""
    weights = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [weights],
        max_iter=iterations,
        max_eval=2 * iterations,
        tolerance_grad=1e-13,
        tolerance_change=1e-16,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def evaluate() -> Tensor:
        optimiser.zero_grad()
        value = loss(weights)
        value.backward()  # type: ignore[no-untyped-call]
        return value

    optimiser.step(evaluate)  # type: ignore[no-untyped-call]
    return weights.detach()


def minimise_on_data(
    kernel: Kernel, prompts: Float[Tensor, "prompts length dim"], start: Weights, queries: int | None = None
) -> Weights:
    """Train on one fixed data set: minimise its mean loss by L-BFGS from `start`."""
    check_length(prompts.shape[1])
    return minimise(lambda weights: reconstruction_loss(kernel, prompts, weights, queries).mean(), start)


class HeadOptimiser(StrEnum):
    """The optimiser for training on fresh prompts."""

    ADAM = "adam"
    SGD = "sgd"


@dataclass(frozen=True)
class HeadRecipe:
    """Settings for training a head on fresh prompts.

    Each step uses `prompts` prompts with `queries` queries each. The learning rate falls to 0 along a cosine, and the
    result is the mean of the last third of the iterates, which removes most gradient noise (Polyak & Juditsky 1992).
    `pca_weight` is γ of the regulariser γ·E‖x - P_μ x‖², PCA's own objective for the direction of μ: its minimum, over
    all μ, is at v₁ whatever the size of μ, so that it moves no minimiser that is there.
    """

    steps: int = 600
    prompts: int = 64
    queries: int = 16
    rate: float = 0.05
    optimiser: HeadOptimiser = HeadOptimiser.ADAM
    records: int = 40
    pca_weight: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.pca_weight < math.inf:
            raise UsageError(f"pca_weight must be ≥ 0 and finite, got {self.pca_weight}.")
        if not 0 < self.rate < math.inf:
            raise UsageError(f"rate must be > 0 and finite, got {self.rate}.")
        for name in ("steps", "prompts", "queries", "records"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be ≥ 1, got {getattr(self, name)}.")


def train_on_fresh_prompts(
    kernel: Kernel,
    source: TokenSource,
    length: int,
    start: Weights,
    generator: Generator,
    recipe: HeadRecipe | None = None,
    *,
    regularised_on: Callable[[Tensor], Tensor] = lambda prompts: prompts,
) -> Trajectory:
    """Train on new prompts at every step, which minimises the population risk itself.

    `regularised_on` makes the tokens of the regulariser from the prompts, which they are by default: others mislead it.
    """
    check_length(length)
    recipe = HeadRecipe() if recipe is None else recipe

    def loss(weights: Weights) -> Float[Tensor, ""]:
        prompts = source.draw(recipe.prompts, length, generator)
        risk = reconstruction_loss(kernel, prompts, weights, recipe.queries).mean()
        if not recipe.pca_weight:
            return risk
        tokens = regularised_on(prompts).flatten(0, 1)
        variance = tokens.var(dim=0, correction=0).sum()
        return risk + recipe.pca_weight * variance * unexplained_variance(tokens, weights)

    return train_on_fresh_losses(loss, start, recipe)


def train_on_fresh_losses(loss: Loss, start: Weights, recipe: HeadRecipe) -> Trajectory:
    """Train on a loss that draws new data in every call."""
    weights = start.clone().requires_grad_()
    kinds: dict[HeadOptimiser, type[torch.optim.Optimizer]] = {
        HeadOptimiser.ADAM: torch.optim.Adam,
        HeadOptimiser.SGD: torch.optim.SGD,
    }
    optimiser = kinds[recipe.optimiser]([weights], lr=recipe.rate)  # type: ignore[call-arg]
    averaged_from = recipe.steps - recipe.steps // 3
    marks = {round(recipe.steps * (i + 1) / recipe.records) for i in range(recipe.records)}
    kept, total = {0: start.clone()}, torch.zeros_like(start)
    for number in range(1, recipe.steps + 1):
        optimiser.param_groups[0]["lr"] = recipe.rate * (1 + math.cos(math.pi * (number - 1) / recipe.steps)) / 2
        optimiser.zero_grad()
        loss(weights).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if number > averaged_from:
            total += weights.detach()
        if number in marks:
            kept[number] = weights.detach().clone()
    if recipe.steps > averaged_from:
        kept[recipe.steps] = total / (recipe.steps - averaged_from)
    if not kept[recipe.steps].isfinite().all():
        raise NumericalError(f"Training diverged: a rate of {recipe.rate:g} is too high for these tokens.")
    return Trajectory(tuple(kept), tuple(kept.values()))
