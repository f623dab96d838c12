"""What a step along the gradient proves: the loss must rise, and rise more than noise makes it."""

import math

import pytest
import torch
from torch import nn

from attnaudit.errors import ModelError
from attnaudit.protocol import Protocol
from attnaudit.robustness import evaluate
from attnaudit.robustness.conditions import CLEAN, GRADIENT, attack_conditions, corruption_conditions
from attnaudit.robustness.outcome import along_gradient
from attnaudit.robustness.pixels import PixelModel
from tests.robustness.plans import plan_of
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


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_network_whose_outputs_are_not_finite_has_no_accuracy(data, tmp_path, value):
    model = loaded()
    with torch.no_grad():
        model.module[2].bias[1] = value
    with pytest.raises(
        ModelError, match=r"^model has outputs that are not finite \(clean\), .*: give other weights\.$"
    ):
        evaluate(plan_of(data, models=(model,)), tmp_path / "run")


class BrightOnly(nn.Module):
    """Its outputs are NaN for an image with a pixel that is nearly black."""

    def forward(self, images):
        darkest = (images * DEVIATION + MEAN).flatten(1).amin(dim=1)
        ahead = torch.where(darkest < 0.22, torch.nan, darkest)
        return torch.stack([torch.zeros_like(ahead), ahead], dim=1)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (corruption_conditions(["gaussian_noise"], [5])[0], "gaussian_noise, severity 5"),
        (attack_conditions(["noise"], [0.25], Protocol.EXACT)[0], "noise, ε = 0.25"),
    ],
)
def test_the_condition_is_named_under_which_outputs_are_not_finite(data, tmp_path, condition, words):
    model = loaded(network=BrightOnly())
    assert evaluate(plan_of(data, models=(model,)), tmp_path / "clean").summary.accuracies[0].condition == CLEAN
    with pytest.raises(ModelError, match=rf"not finite \({words}\).*or --precision fp32 instead of tf32\.$"):
        evaluate(plan_of(data, condition, models=(model,), precision="tf32"), tmp_path / "run")
