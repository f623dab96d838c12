"""Random streams follow from their parts alone, and are what they always were: every published number depends on it."""

import random

import numpy as np
import pytest
import torch

from attnaudit.numerics.randomness import (
    derived_seed,
    drawn,
    normal_draws,
    numpy_generator,
    preserved_random_state,
    seed_everything,
    seeded,
    torch_generator,
)


def global_draws():
    return random.random(), np.random.random(), torch.rand(()).item()


def test_streams_have_not_moved():
    assert derived_seed(0, "order", 3) == 386106667988085106
    assert derived_seed("swap", 7) == 1193080803297884189
    assert torch.randint(1000, (3,), generator=torch_generator(0, "order", 3)).tolist() == [42, 871, 910]
    assert numpy_generator("0/1/shuffle/cat.png/2/1/0").integers(0, 1000, 3).tolist() == [428, 145, 426]


def test_seeding_everything_reaches_all_three_global_generators():
    with preserved_random_state():
        seed_everything(1, "step", 2, 0)
        assert (random.randrange(1000), np.random.randint(1000), torch.randint(1000, ()).item()) == (872, 471, 799)


def test_seeded_draws_follow_from_the_seed_and_leave_the_generator_as_it_was():
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    with seeded(4):
        assert torch.randint(1000, (3,)).tolist() == [530, 694, 631]
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("fails", [False, True])
def test_global_state_is_preserved_even_after_an_exception(fails):
    with preserved_random_state():
        seed_everything(0)
        expected = global_draws()
        seed_everything(0)
        try:
            with preserved_random_state():
                global_draws()
                if fails:
                    raise KeyError
        except KeyError:
            pass
        assert global_draws() == expected


def test_many_draws_are_those_of_each_name_whatever_the_number_of_threads():
    names = [f"head {place}" for place in range(100)]
    expected = np.stack([numpy_generator(name).standard_normal((3, 2)) for name in names])
    assert np.array_equal(normal_draws(names, (3, 2), torch.device("cpu")).numpy(), expected)
    for threads in (False, True):
        found = np.zeros((100, 3, 2))
        drawn(names, lambda place, own, found=found: own.standard_normal(out=found[place]), threads=threads)
        assert np.array_equal(found, expected)


def test_an_error_in_a_thread_is_raised():
    def fail(place, generator):
        raise ArithmeticError(place)

    with pytest.raises(ArithmeticError):
        drawn([str(place) for place in range(100)], fail, threads=True)
