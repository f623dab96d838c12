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


def contents(batch):
    return [content for shard in tensor_shards(batch, 8) for _, content in shard.identity]


ROWS = torch.arange(24, dtype=torch.int32).view(2, 12)
SAME_BYTES = {
    "of another shape": (ROWS, ROWS.view(2, 3, 4)),
    "turned": (ROWS.view(2, 3, 4), ROWS.view(2, 4, 3)),
    "of another type": (ROWS, ROWS.view(torch.float32)),
    "cut elsewhere": ({"a": ROWS[:, :4], "b": ROWS[:, 4:]}, {"a": ROWS[:, :8], "b": ROWS[:, 8:]}),
    "of another name": ({"a": ROWS}, {"b": ROWS}),
    "in a mapping": (ROWS, {"": ROWS.view(2, 2, 6)}),
}


@pytest.mark.parametrize("pair", SAME_BYTES.values(), ids=SAME_BYTES)
def test_the_same_bytes_are_other_content_if_they_are_other_tensors(pair):
    first, second = map(contents, pair)
    assert not set(first) & set(second)


def test_the_content_of_an_input_does_not_depend_on_the_others_or_on_the_order_of_its_tensors():
    batch = {"a": ROWS[:, :4], "b": ROWS[:, 4:]}
    assert contents(batch) == contents(dict(reversed(batch.items())))
    assert contents({name: tensor[1:] for name, tensor in batch.items()}) == contents(batch)[1:]
    assert contents(ROWS.T.contiguous().T) == contents(ROWS)
