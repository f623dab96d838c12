"""Inputs cut into shards."""

import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
import torch.multiprocessing  # which makes tensors travel as open files
from hypothesis import given
from hypothesis import strategies as st

from attnaudit.sources.inputs import FIRST_INPUTS, cuts, tensor_shards


@given(st.integers(0, 200), st.integers(1, 60), st.booleans())
def test_every_input_is_in_one_shard_in_order_and_none_has_more_than_asked(count, size, first):
    found = [range(count)[own] for own in cuts(count, size, first=first)]
    assert [place for own in found for place in own] == list(range(count))
    assert all(0 < len(own) <= size for own in found)
    assert all(len(own) == size for own in found[1:-1])


def test_the_first_of_large_shards_is_small():
    assert [own.stop - own.start for own in cuts(100, 50)] == [FIRST_INPUTS, 50, 100 - 50 - FIRST_INPUTS]
    assert [own.stop - own.start for own in cuts(100, 50, first=False)] == [50, 50]
    assert [own.stop - own.start for own in cuts(9, 4)] == [4, 4, 1]


@pytest.mark.parametrize("batch", [torch.arange(6.0).view(3, 2), {"rows": torch.ones(3, 2, dtype=torch.bfloat16)}])
def test_a_batch_goes_to_other_processes_as_bytes(batch):
    (shard,) = tensor_shards(batch, 8, names=["a", "b", "c"], groups=["x", "x", "y"])
    sent = bytes(ForkingPickler.dumps(shard))
    assert b"storage" not in sent
    assert pickle.loads(sent).identity == shard.identity
    assert pickle.loads(sent).groups == shard.groups
