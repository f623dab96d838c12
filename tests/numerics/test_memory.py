"""Memory that is too small is told from other errors of torch."""

import pytest
import torch

from attnaudit.numerics.memory import is_out_of_memory


@pytest.mark.parametrize("shape", [(10**16,), (10**14, 3, 224, 224)])
def test_a_cpu_says_it_in_words(shape):
    with pytest.raises(RuntimeError) as caught:
        torch.randn(*shape)
    assert is_out_of_memory(caught.value)


def test_a_gpu_has_an_error_of_its_own():
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))


def test_other_errors_are_not_about_memory():
    with pytest.raises(RuntimeError) as caught:
        torch.ones(2) @ torch.ones(3)
    assert not is_out_of_memory(caught.value)
