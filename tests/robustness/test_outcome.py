"""What a step along the gradient proves: the loss must rise, and rise more than noise makes it."""

import pytest
import torch
from torch import nn

from attnaudit.robustness.conditions import GRADIENT
from attnaudit.robustness.outcome import along_gradient
from attnaudit.robustness.pixels import PixelModel
from tests.robustness.problems import generator
from tests.robustness.subjects import DEVIATION, MEAN, SIZE, loaded

START = 0.5


class Rising(nn.Module):
    """Two classes; the wrong one is ahead by slope·mean(δ) + spread·var(δ) + size·mean(δ²), δ in steps."""

    def __init__(self, slope, *, spread=0.0, size=0.0):
        super().__init__()
        self.slope, self.spread, self.size = slope, spread, size

    def forward(self, images):
        moved = ((images * DEVIATION + MEAN - START) / GRADIENT.strength).flatten(1)
        ahead = self.slope * moved.mean(1) + self.spread * moved.var(1) + self.size * moved.square().mean(1)
        return torch.stack([torch.zeros_like(ahead), ahead], dim=1)


@pytest.mark.parametrize(
    ("network", "proven"),
    [
        (Rising(0.1), True),
        (Rising(0.1, spread=1.0), False),  # equal steps have no spread, random ones do: noise raises the loss more
        (Rising(0.1, size=-1.0), False),  # more than noise, whose mean is nearly 0, and yet less than no step at all
    ],
)
def test_a_step_along_the_gradient_must_raise_the_loss_and_more_than_noise(network, proven):
    pixels = torch.full((4, 3, SIZE, SIZE), START)
    labels = torch.zeros(4, dtype=torch.int64)
    found = along_gradient(PixelModel(loaded(network=network)), pixels, labels, generator())
    assert found.correct.tolist() == [proven] * 4
