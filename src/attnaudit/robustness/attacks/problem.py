"""The input of an attack: a model, images, labels to move away from, and the bounds of pixel values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from attnaudit.robustness.attacks.losses import cross_entropy

Model = Callable[[Tensor], Tensor]
#: (logits, labels) to one number per image, which the attacker maximises.
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Problem:
    """A batch under attack, on one device, with which no method synchronises.

    Args:
        model: images to logits.
        images: the original images, in the space that the model reads.
        labels: the classes that the model should no longer predict.
        generator: the random generator, on the device of the images.
        bounds: smallest and largest pixel value; infinite bounds do not clip.
        room: how many images the model may be shown at a time, where an attack has more than one try for each; as many
            as there are, if None.
        copies: how often every image is there, one after the other.
    """

    model: Model
    images: Float[Tensor, "images 3 height width"]
    labels: Int64[Tensor, "images"]
    generator: torch.Generator
    bounds: tuple[float, float] = (0.0, 1.0)
    room: int | None = None
    copies: int = 1

    @cached_property
    def size(self) -> int:
        """The number of pixel values of an image."""
        return self.images[0].numel()

    def clip(self, images: Tensor) -> Tensor:
        """The images with pixel values clipped to the bounds."""
        return images.clamp(*self.bounds)

    def project(self, images: Tensor, epsilon: float) -> Tensor:
        """The nearest images within ε of the originals and within the bounds."""
        return self.clip(torch.minimum(torch.maximum(images, self.images - epsilon), self.images + epsilon))

    def uniform_noise(self) -> Tensor:
        """Noise in the shape of the images, uniform on [-1, 1]; copies get what they would get one by one."""
        drawn = [torch.empty_like(own).uniform_(-1, 1, generator=self.generator) for own in self.each(self.images)]
        return torch.cat(drawn)

    def random_signs(self, *shape: int) -> Tensor:
        """Random signs, ±1."""
        coins = torch.randint(0, 2, shape, generator=self.generator, device=self.images.device)
        return coins.to(self.images.dtype) * 2 - 1

    def gradient(self, images: Tensor, loss: Loss = cross_entropy) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, gradient and logits of every image."""
        images = images.detach().requires_grad_()
        with torch.enable_grad():
            logits = self.model(images)
            losses = loss(logits, self.labels)
            (gradient,) = torch.autograd.grad(losses.sum(), images)
        return losses.detach(), gradient, logits.detach()

    def logits(self, images: Tensor) -> Tensor:
        """The logits, without a gradient."""
        with torch.no_grad():
            return self.model(images)

    def fooled(self, logits: Tensor) -> Bool[Tensor, "images"]:
        """Which images are misclassified."""
        return logits.argmax(dim=1) != self.labels

    def with_bounds(self, low: float, high: float) -> Problem:
        """The same problem with other bounds."""
        return replace(self, bounds=(low, high))

    @property
    def tries(self) -> int:
        """How many tries for every image have room at a time, one at least."""
        return max(1, (self.room or 0) // len(self.images))

    def together(self, targets: Int64[Tensor, "images targets"]) -> tuple[Tensor, ...]:
        """The targets in groups that have room at a time."""
        return targets.chunk(-(-targets.shape[1] // self.tries), dim=1)

    def repeated(self, copies: int) -> Problem:
        """The same problem with every image there so often, for tries that are made together."""
        images, labels = self.images.repeat(copies, 1, 1, 1), self.labels.repeat(copies)
        return replace(self, images=images, labels=labels, copies=copies)

    def each(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """What belongs to the copies, one by one."""
        return numbers.chunk(self.copies)

    def subset(self, chosen: Bool[Tensor, "images"]) -> Problem:
        """The same problem for some of the images."""
        return replace(self, images=self.images[chosen], labels=self.labels[chosen])


def per_image(numbers: Tensor) -> Tensor:
    """One number per image, shaped to broadcast over images."""
    return numbers.view(-1, 1, 1, 1)


def image_sums(images: Tensor) -> Float[Tensor, "images"]:
    """The sum over all pixel values of every image."""
    return images.flatten(1).sum(dim=1)
