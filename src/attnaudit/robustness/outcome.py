"""The predictions of a model for a batch of images under one condition."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attnaudit.errors import ModelError
from attnaudit.numerics.finite import first_not_finite
from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition
from attnaudit.robustness.attacks import Norm, Problem, attack_named, distance
from attnaudit.robustness.attacks.losses import cross_entropy
from attnaudit.robustness.conditions import CLEAN, EVERYTHING, GRADIENT, TRANSFER
from attnaudit.robustness.pixels import PixelModel
from attnaudit.robustness.sentences import SentenceModel


@dataclass(frozen=True)
class Outcome:
    """For every image: the predicted class, its probability, whether it is correct, and the largest change.

    `perturbation` is max |δ| in pixel values between 0 and 1, also if the attack used normalised pixels.
    """

    predicted: Int64[Tensor, "images"]
    confidence: Float[Tensor, "images"]
    correct: Bool[Tensor, "images"]
    perturbation: Float[Tensor, "images"] | None = None


def finite_logits(model: PixelModel | SentenceModel, inputs: Tensor, condition: Condition) -> Tensor:
    """The logits, without gradients.

    Raises:
        ModelError: one is not finite. The largest of them would be found all the same, and be right by accident.
    """
    with torch.no_grad():
        logits = model(inputs)
    if first_not_finite(logits) is not None:
        low = "" if model.precision == "fp32" else f", or --precision fp32 instead of {model.precision}"
        raise ModelError(
            f"{model.label} has outputs that are not finite ({condition.words}), so it predicts nothing: give other "
            f"weights{low}."
        )
    return logits


def plain(model: PixelModel | SentenceModel, inputs: Tensor, labels: Tensor, condition: Condition = CLEAN) -> Outcome:
    """The outcome for these inputs of a classifier, without an attack; `condition` is what made them."""
    confidence, predicted = finite_logits(model, inputs, condition).softmax(dim=1).max(dim=1)
    return Outcome(predicted, confidence, predicted == labels)


def attacked(
    model: PixelModel,
    source: PixelModel,
    condition: Condition,
    pixels: Tensor,
    labels: Tensor,
    protocol: Protocol,
    generator: torch.Generator,
    room: int | None = None,
) -> Outcome:
    """The outcome after an attack on `source`, which is the model itself or its twin, shown `room` images at a time.

    exact: ε in pixel values, pixels clipped to [0, 1], away from the true labels; images that the model already gets
    wrong are not attacked, because the ball contains the original. paper: ε on normalised pixels, no clipping, away
    from the model's predictions, as in Teo & Nguyen's code.
    """
    attack = attack_named("pgd" if condition.name in (TRANSFER, EVERYTHING.name) else condition.name, protocol)
    original = plain(model, pixels, labels)
    if source is not model:
        finite_logits(source, pixels, CLEAN)
    if protocol is Protocol.PAPER:
        images = source.normalised(pixels)
        predicted = source(pixels).argmax(dim=1)
        problem = Problem(source.on_normalised, images, predicted, generator, (-torch.inf, torch.inf), room)
        adversarial = attack(problem, condition.strength, condition.steps) * source.deviation + source.mean
    else:
        targets = original.correct if attack.adaptive else torch.ones_like(original.correct)
        adversarial = pixels.clone()
        if bool(targets.any()):
            problem = Problem(source, pixels[targets], labels[targets], generator, room=room)
            adversarial[targets] = attack(problem, condition.strength, condition.steps)
    return replace(plain(model, adversarial, labels, condition), perturbation=distance(adversarial - pixels, Norm.MAX))


def along_gradient(model: PixelModel, pixels: Tensor, labels: Tensor, generator: torch.Generator) -> Outcome:
    """`correct` is True if a small step along the gradient's signs raises the loss, more than along random signs."""
    problem = Problem(model, pixels, labels, generator)
    before, gradient, _ = problem.gradient(pixels)
    step = GRADIENT.strength
    along, random = (
        cross_entropy(problem.logits(pixels + step * signs), labels)
        for signs in (gradient.sign(), problem.random_signs(*pixels.shape))
    )
    largest = torch.full_like(before, step)
    return replace(plain(model, pixels, labels), correct=(along > before) & (along > random), perturbation=largest)
