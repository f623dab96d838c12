"""The average of weights: its formula, and that it is nobody's but its own."""

import torch
from torch import nn

from attnaudit.training.average import WeightAverage


def test_an_average_follows_its_recursion_and_leaves_the_model_alone():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    average = WeightAverage(model, 0.5)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(6):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter))
            model[1].running_mean.add_(1)
        average.turn_to(step)
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = [decay * e + (1 - decay) * p.detach() for e, p in zip(expected, model.parameters(), strict=True)]
    for own, wanted in zip(average.module.parameters(), expected, strict=True):
        torch.testing.assert_close(own, wanted)
        assert not own.requires_grad
    assert torch.equal(average.module[1].running_mean, model[1].running_mean)
    assert model.training
    assert not average.module.training
    assert model[0].weight.requires_grad
