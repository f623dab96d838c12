"""The batches of a monitor: they reach the model unchanged, and invalid ones are refused."""

import pyarrow.compute as pc
import pytest
import torch
from torch import nn

from attnaudit.errors import InputError, UsageError
from attnaudit.training import Monitor
from tests.training.networks import batch, network
from tests.training.rows import quiet


def test_keyword_and_positional_arguments_reach_the_model():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = network()

        def forward(self, left, right):
            return self.net(left + 2 * right)

    left, right = batch(seed=1), batch(seed=2)
    plain = Monitor(network(), left + 2 * right, name="n", tell=quiet).measure(0)
    assert Monitor(Both(), (left, right), name="n", tell=quiet).measure(0).equals(plain)
    by_name = Monitor(Both(), {"batch": {"right": right, "left": left}}, name="n", tell=quiet).measure(0)
    assert by_name.equals(plain)


@pytest.mark.parametrize(
    ("batches", "error", "problem"),
    [
        ({}, UsageError, "at least one batch, got none"),
        ({"a/b": batch()}, UsageError, "slash, got 'a/b'"),
        ({"x": batch()}, UsageError, r"arguments of Net \(x\)"),
        ([batch()], InputError, "'batch' .* got a list"),
        ({"train": "words"}, InputError, "'train' holds no tensor"),
        ({"train": torch.tensor(1.0)}, InputError, "'train' holds no tensor"),
    ],
)
def test_invalid_batches_are_refused(batches, error, problem):
    with pytest.raises(error, match=problem):
        Monitor(network(), batches)


def test_each_batch_is_measured_in_its_own_mode():
    inputs = {"train": batch(), "test": batch()}
    rows = Monitor(network(), inputs, scores=0, mode={"train": "train"}, tell=quiet).measure(0)
    same = Monitor(network(), inputs, scores=0, tell=quiet).measure(0)
    for name, differs in (("train", True), ("test", False)):
        values = [t.filter(pc.equal(t["input"], name))["value"].to_pylist() for t in (rows, same)]
        assert (values[0] != values[1]) is differs
