"""Steps are those that an optimiser really takes."""

import pytest
import torch
from torch import nn

from attnaudit.errors import UsageError
from attnaudit.training import Monitor
from tests.training.networks import WIDTH, batch, network
from tests.training.rows import quiet


def test_steps_are_those_of_the_optimiser_not_micro_batches():
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    monitor = Monitor(model, batch(), every=2, scores=0, tell=quiet).attach(optimizer)
    for micro in range(12):
        model(batch()).sum().backward()
        if micro % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()
    assert [reading.step for reading in monitor.history] == [0, 2, 4]


@pytest.mark.parametrize("fused", [False, True])
def test_steps_that_a_scaler_skips_do_not_count(fused):
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    taken, due = 0, []
    monitor = Monitor(model, batch(), every=3, scores=0, tell=quiet).attach(optimizer)
    for round in range(12):
        optimizer.zero_grad()
        scaler.scale(model(batch()).sum()).backward()
        if round in (1, 2, 5):
            model.head.bias.grad.fill_(torch.inf)
        else:
            taken += 1
            due += [round] if taken % 3 == 0 else []
        before = len(monitor.history)
        scaler.step(optimizer)
        assert (len(monitor.history) > before) == (round in due)
        scaler.update()
    assert [reading.step for reading in monitor.history] == [0, 3, 6, 9]


def test_what_is_no_optimiser_is_refused():
    with pytest.raises(UsageError, match="is no torch optimiser"):
        Monitor(network(), batch()).attach(nn.Linear(WIDTH, 1))
    with pytest.raises(UsageError, match="where an epoch ends"):
        Monitor(network(), batch(), every="epoch").attach(torch.optim.SGD(network().parameters()))
