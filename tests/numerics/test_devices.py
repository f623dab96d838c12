from contextlib import suppress

import pytest
import torch
from torch import nn

from attnaudit.errors import UsageError
from attnaudit.numerics.devices import device_name, device_of, put_back


@pytest.mark.parametrize("device", ["tpu", "meta", ""])
def test_an_unknown_device_is_named(device):
    with pytest.raises(UsageError, match=f"got {device!r}"):
        device_name(device)


class Movable(nn.Module):
    """A module that can be moved to a device this machine need not have."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def to(self, device):
        self.weight = nn.Parameter(torch.zeros(2, device=device))
        return self


def test_a_module_is_put_back_where_it_was_even_after_an_error():
    module = Movable()
    with suppress(RuntimeError), put_back(module):
        assert device_of(module.to("meta")) == "meta"
        raise RuntimeError
    assert device_of(module) == "cpu"


def test_a_module_without_tensors_is_on_the_cpu():
    assert device_of(nn.ReLU()) == "cpu"
