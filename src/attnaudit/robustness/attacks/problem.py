"""What an attack is given: images, the classes to lead away from, a model, and how far a pixel may go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attnaudit.robustness.attacks.losses import cross_entropy

Model = Callable[[Tensor], Tensor]
#: (logits, labels) to one number per image, which the attacker wants large.
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Problem:
    """A batch under attack; everything lies on one device, and nothing here waits for it.

    Args:
        model: images to logits.
        images: the originals, in the space that the model reads.
        labels: classes that the attacker wants the model not to see.
        generator: of everything random, on the device of the images.
        bounds: smallest and largest value of a pixel; infinite ones do not clip.
    """

    model: Model
    images: Float[Tensor, "images 3 height width"]
    labels: Int64[Tensor, "images"]
    generator: torch.Generator
    bounds: tuple[float, float] = (0.0, 1.0)

    @cached_property
    def numbers(self) -> int:
        """How many numbers an image has."""
        return self.images[0].numel()

    def inside(self, images: Tensor) -> Tensor:
        """Pixels clipped to the bounds."""
        return images.clamp(*self.bounds)

    def within(self, images: Tensor, epsilon: float) -> Tensor:
        """The nearest images whose pixels are at most ε from their originals, and in the bounds."""
        return self.inside(torch.minimum(torch.maximum(images, self.images - epsilon), self.images + epsilon))

    def uniform(self) -> Tensor:
        """Noise of the images' shape, uniform on [-1, 1]."""
        noise = torch.empty_like(self.images).uniform_(-1, 1, generator=self.generator)
        return noise

    def signs(self, *shape: int) -> Tensor:
        """Random signs."""
        coins = torch.randint(0, 2, shape, generator=self.generator, device=self.images.device)
        return coins.to(self.images.dtype) * 2 - 1

    def gradient(self, images: Tensor, loss: Loss = cross_entropy) -> tuple[Tensor, Tensor, Tensor]:
        """Loss and gradient of every image, and its logits."""
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            logits = self.model(images)
            losses = loss(logits, self.labels)
            (gradient,) = torch.autograd.grad(losses.sum(), images)
        return losses.detach(), gradient, logits.detach()

    def logits(self, images: Tensor) -> Tensor:
        """What the model says, without a gradient."""
        with torch.no_grad():
            return self.model(images)

    def fooled(self, logits: Tensor) -> Bool[Tensor, "images"]:
        """Whose class no longer comes first."""
        return logits.argmax(dim=1) != self.labels

    def clipped_to(self, low: float, high: float) -> Problem:
        """The same problem with other bounds."""
        return replace(self, bounds=(low, high))

    def only(self, chosen: Bool[Tensor, "images"]) -> Problem:
        """The same problem with some of the images."""
        return replace(self, images=self.images[chosen], labels=self.labels[chosen])


def per_image(numbers: Tensor) -> Tensor:
    """One number per image, shaped so that it multiplies images."""
    return numbers.view(-1, 1, 1, 1)


def sums(images: Tensor) -> Float[Tensor, "images"]:
    """The sum of every image."""
    return images.flatten(1).sum(dim=1)
