"""A batch of images under one condition: what the model makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition
from attnaudit.robustness.attacks import Norm, Problem, attack_named, distance
from attnaudit.robustness.attacks.losses import cross_entropy
from attnaudit.robustness.conditions import EVERYTHING, GRADIENT, TRANSFER
from attnaudit.robustness.pixels import PixelModel


@dataclass(frozen=True)
class Outcome:
    """Of every image: the class that comes first, its probability, whether it is right, and the largest change.

    `perturbation` is max |δ| in pixels between 0 and 1, whatever space the attack worked in.
    """

    predicted: Int64[Tensor, "images"]
    confidence: Float[Tensor, "images"]
    correct: Bool[Tensor, "images"]
    perturbation: Float[Tensor, "images"] | None = None


def plain(model: PixelModel, pixels: Tensor, labels: Tensor) -> Outcome:
    """The images as they are."""
    with torch.no_grad():
        confidence, predicted = model(pixels).softmax(dim=1).max(dim=1)
    return Outcome(predicted, confidence, predicted == labels)


def attacked(
    model: PixelModel,
    maker: PixelModel,
    condition: Condition,
    pixels: Tensor,
    labels: Tensor,
    protocol: Protocol,
    generator: torch.Generator,
) -> Outcome:
    """The images as an attack on `maker` leaves them; `maker` is the model itself, or its twin.

    exact: ε in pixels, pixels stay between 0 and 1, away from the true labels; images that the model gets wrong
    anyway are left alone, since the ball holds the original too. paper: ε on normalised pixels, no clipping, away from
    what the model predicts, as Teo & Nguyen's code does.
    """
    attack = attack_named("pgd" if condition.name in (TRANSFER, EVERYTHING.name) else condition.name, protocol)
    original = plain(model, pixels, labels)
    if protocol is Protocol.PAPER:
        images = maker.normalised(pixels)
        shown = maker(pixels).argmax(dim=1)
        problem = Problem(maker.on_normalised, images, shown, generator, (-torch.inf, torch.inf))
        made = attack(problem, condition.strength, condition.steps) * maker.deviation + maker.mean
    else:
        worth = original.correct if attack.adaptive else torch.ones_like(original.correct)
        made = pixels.clone()
        if bool(worth.any()):
            problem = Problem(maker, pixels[worth], labels[worth], generator)
            made[worth] = attack(problem, condition.strength, condition.steps)
    return replace(plain(model, made, labels), perturbation=distance(made - pixels, Norm.MAX))


def along_gradient(model: PixelModel, pixels: Tensor, labels: Tensor, generator: torch.Generator) -> Outcome:
    """`correct` says whether a small step along the gradient's signs raises the loss, and more than random signs do."""
    problem = Problem(model, pixels, labels, generator)
    before, gradient, _ = problem.gradient(pixels)
    step = GRADIENT.strength
    along, random = (
        cross_entropy(problem.logits(pixels + step * signs), labels)
        for signs in (gradient.sign(), problem.signs(*pixels.shape))
    )
    largest = torch.full_like(before, step)
    return replace(plain(model, pixels, labels), correct=(along > before) & (along > random), perturbation=largest)
