"""The floor is the time of kernels times how often they are needed."""

import itertools
from dataclasses import replace

import pytest
import torch

from attnaudit.audit import floor
from attnaudit.audit.floor import Stopwatch, floor_by_stage, kernels
from attnaudit.audit.needs import NEEDS, Needs
from tests.heads import random_heads


@pytest.fixture
def heads():
    made = random_heads(0)
    return replace(made, source=torch.randn(1, made.tokens, 6, generator=torch.Generator().manual_seed(1)))


def test_every_kernel_that_is_needed_can_be_timed(heads):
    assert {need.kernel for need in NEEDS} | {"leading projection"} == {name for name, _, _ in kernels(heads)}


def test_every_kernel_can_be_repeated(heads):
    for _, work, _ in kernels(heads):
        work()
        work()


def test_the_floor_is_the_time_of_kernels_times_their_number(heads):
    ticks = itertools.count()
    needs = Needs({("solve", "eigenpairs"): 6, ("solve", "gram"): 2, ("measure", "sort"): 1, ("idle", "factor"): 0}, 2)
    found = floor_by_stage(needs, [heads], Stopwatch(lambda: float(next(ticks))))
    assert found == {"solve": 4.0, "measure": 0.5}  # a kernel takes one tick, and is for two heads


def test_kernels_over_pairs_of_tokens_are_left_out_where_there_are_too_many(heads, monkeypatch):
    monkeypatch.setattr(floor, "too_many_pairs", lambda keys: True)
    assert "assignment of tokens" not in {name for name, _, _ in kernels(heads)}


def test_a_stopwatch_takes_the_fastest_after_a_warm_up():
    times = iter([0, 5, 10, 12, 20, 29])
    calls = []
    assert Stopwatch(lambda: next(times))(lambda: calls.append(1)) == 2
    assert len(calls) == 4
