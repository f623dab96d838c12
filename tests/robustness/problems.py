"""Small problems whose answers are known: a linear model, and a network that has learned two kinds of stripes."""

from functools import cache

import torch
from torch import nn

from attnaudit.robustness.attacks import Problem

SHAPE = (3, 6, 6)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Linear:
    """Two classes, z = (0, w·x + b); the margin of class 0 is linear in the image."""

    def __init__(self, dtype=torch.float32, seed=0):
        self.weight = torch.randn(SHAPE, generator=generator(seed), dtype=torch.float64).to(dtype)
        self.bias = -(self.weight * 0.5).sum()

    def margin(self, images):
        """How far class 1 is ahead."""
        return (images * self.weight).flatten(1).sum(dim=1) + self.bias

    def __call__(self, images):
        ahead = self.margin(images)
        return torch.stack([torch.zeros_like(ahead), ahead], dim=1)


def linear_problem(dtype=torch.float32, count=8, seed=0):
    """Images in the inner half of the cube, each with the label that the model gives it."""
    model = Linear(dtype, seed)
    images = (0.25 + 0.5 * torch.rand(count, *SHAPE, generator=generator(seed + 1), dtype=torch.float64)).to(dtype)
    return Problem(model, images, model(images).argmax(dim=1), generator(2))


def stripes(count, classes=4, seed=0, noise=0.25):
    """Images whose class is where a bright bar lies, in noise."""
    own = generator(seed)
    labels = torch.randint(0, classes, (count,), generator=own)
    images = 0.4 + noise * (torch.rand(count, 3, 8, 8, generator=own) - 0.5)
    brightness = 0.1 + 0.2 * torch.rand(count, 1, 1, 1, generator=own)  # some are easier than others
    for label in range(classes):
        images[labels == label, :, 2 * label : 2 * label + 2] += brightness[labels == label]
    return images.clamp(0, 1), labels


@cache
def learned(classes=4):
    """A small convolutional network that has learned the stripes."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.GELU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(128, classes)
    )
    images, labels = stripes(512, classes)
    adam = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(60):
        adam.zero_grad()
        nn.functional.cross_entropy(network(images), labels).backward()
        adam.step()
    return network.eval().requires_grad_(False)


def learned_problem(count=32, seed=1):
    images, labels = stripes(count, seed=seed)
    return Problem(learned(), images, labels, generator(3))


def left(problem, adversarial):
    """The share of images that are still right."""
    return float((~problem.fooled(problem.logits(adversarial))).float().mean())
