"""Thread limits hold inside their block, and the process has its threads back afterwards."""

import pytest
import torch
from threadpoolctl import threadpool_info

from attnaudit.numerics.threads import half_the_threads, single_threaded, torch_threads


@pytest.fixture(autouse=True)
def four_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("limit", "inside"), [(lambda: torch_threads(3), 3), (half_the_threads, 2), (single_threaded, 1)]
)
def test_limit_holds_inside_and_ends_with_an_exception(limit, inside):
    with limit():
        assert torch.get_num_threads() == inside
    assert torch.get_num_threads() == 4
    with pytest.raises(KeyError), limit():
        raise KeyError
    assert torch.get_num_threads() == 4


def test_single_threaded_reaches_blas():
    with single_threaded():
        assert {library["num_threads"] for library in threadpool_info()} == {1}


def test_half_of_one_thread_is_one():
    torch.set_num_threads(1)
    with half_the_threads():
        assert torch.get_num_threads() == 1
