"""The monitor: a training does not notice it, and what makes no sense is refused at once."""

import random

import numpy as np
import pytest
import torch
from torch import nn

from attnaudit import attention
from attnaudit.errors import CaptureError, InputError, UsageError
from attnaudit.training import Monitor
from tests.training.networks import batch, network, train
from tests.training.rows import quiet


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize("reentrant", [None, True, False])
def test_a_training_with_the_monitor_is_bit_identical_to_one_without(mode, reentrant):
    ends = []
    for watched in (False, True):
        model = network(reentrant=reentrant)
        model.blocks[0].drop.eval()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        random.seed(5), np.random.seed(5), torch.manual_seed(5)
        monitor = Monitor(model, {"train": batch(), "test": batch(seed=3)}, every=2, mode=mode, tell=quiet)
        if watched:
            monitor.attach(optimizer)
        losses = train(model, 5, optimizer)
        assert len(monitor.history) == (3 if watched else 0)
        weights = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        moments = optimizer.state_dict()["state"]
        passes = [block.passes for block in model.blocks]
        ends.append((losses, weights, moments, passes, random.random(), np.random.rand(), torch.rand(3).tolist()))
    torch.testing.assert_close(ends[1], ends[0], rtol=0, atol=0)


def test_the_ksvd_loss_of_a_pass_under_way_survives_a_measurement():
    losses = []
    for watched in (False, True):
        torch.manual_seed(0)
        layers = [attention.SoftmaxAttention(8, 2), attention.PrimalAttention(8, 2, rank=2, tokens=17)]
        model = nn.Sequential(*layers)
        inputs = torch.randn(3, 17, 8)
        task = model(inputs).square().mean()
        lines = []
        if watched:
            monitor = Monitor(model, torch.randn(2, 17, 8), tell=lines.append)
            for step in range(2):
                monitor.measure(step)
            assert not [line for line in lines if "not measured" in line]
        loss = task + attention.ksvd_loss(model)
        loss.backward()
        losses.append((loss, [parameter.grad for parameter in model.parameters()]))
    torch.testing.assert_close(losses[1], losses[0], rtol=0, atol=0)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"every": 0}, "every .* got 0"),
        ({"every": "hour"}, "every .* got 'hour'"),
        ({"every": True}, "every .* got True"),
        ({"scores": 1.5}, "scores must be an integer ≥ 0, got 1.5"),
        ({"scores": -1}, "scores must be ≥ 0, got -1"),
        ({"mode": "both"}, "mode .* got 'both'"),
        ({"references": ["untrained"]}, "'untrained': compare with step 0"),
        ({"references": ["best_projection"]}, "'best_projection': audit the network"),
        ({"references": ["vibes"]}, "'vibes'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(arguments, problem):
    with pytest.raises(UsageError, match=problem):
        Monitor(network(), batch(), **arguments)


@pytest.mark.parametrize("step", [1.5, -1, True])
def test_a_step_is_a_whole_number(step):
    monitor = Monitor(network(), batch())
    for measure in (monitor.measure, lambda at: monitor.attach(torch.optim.SGD(network().parameters()), step=at)):
        with pytest.raises(UsageError, match="step must be "):
            measure(step)
    assert monitor.history == []


def test_a_batch_the_model_refuses_is_named_at_once():
    model = network()
    monitor = Monitor(model, {"train": batch()[..., :2]})
    with pytest.raises(InputError, match=r"Net cannot be called with the batch 'train' \(RuntimeError: "):
        monitor.attach(torch.optim.SGD(model.parameters()))


def test_a_model_without_attention_is_refused_at_once():
    model = nn.Linear(3, 3)
    with pytest.raises(CaptureError, match="it makes no attention call"):
        Monitor(model, torch.randn(2, 3)).attach(torch.optim.SGD(model.parameters()))
