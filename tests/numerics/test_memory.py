"""Memory that is too small is told from other errors of torch."""

import pytest
import torch

from attnaudit.numerics.memory import is_out_of_memory


def test_a_cpu_and_a_gpu_say_it_in_their_own_ways():
    with pytest.raises(RuntimeError) as caught:
        torch.empty(10**16)
    assert is_out_of_memory(caught.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))


def test_other_errors_are_not_about_memory():
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2) @ torch.ones(3)
    assert not is_out_of_memory(caught.value)
