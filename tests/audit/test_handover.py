"""What a worker leaves of its inputs is what another one would have predicted."""

from dataclasses import dataclass, replace

import pytest
import torch

from attnaudit.audit.handover import Handover, Leaving
from attnaudit.measures.ceiling import PredictedSpans
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.theories import THEORIES
from tests.heads import random_heads
from tests.measures.references.case import labelled

PLENTY = 1 << 30


@dataclass(frozen=True)
class Shard:
    identity: tuple


def spans(layer):
    heads = labelled(random_heads(layer, heads=4, tokens=20, dim=4), inputs=2)
    moved = replace(heads, index=tuple(entry._replace(layer=layer) for entry in heads.index))
    found = PredictedSpans.of(KeyKernel(moved), [THEORIES["pca"], THEORIES["kpca"]])
    assert found is not None
    return found


def leaving(room=PLENTY, layers=5):
    left = Leaving(room)
    for layer in range(layers):
        left.add(spans(layer))
    return left


@pytest.fixture
def handover(tmp_path):
    return Handover(tmp_path, ("model", "fingerprint"), parts=2)


def test_layers_come_back_to_the_bit_and_in_order(handover):
    handover.leave(Shard(("a", "b")), leaving())
    found = [handover.taken(Shard(("a", "b")), part) for part in (0, 1)]
    assert [[own.index[0].layer for own in part] for part in found] == [[0, 2, 4], [1, 3]]
    for own in (own for part in found for own in part):
        expected = spans(own.index[0].layer)
        assert own.index == expected.index
        assert torch.equal(own.source, expected.source)
        assert list(own.bases) == list(expected.bases) == ["pca", "kpca"]
        for theory, basis in own.bases.items():
            assert torch.equal(basis, expected.bases[theory])
            assert basis.data_ptr() % 64 == 0  # as torch begins matrices, so that products have the same digits


def test_other_inputs_models_and_parts_have_files_of_their_own(handover):
    handover.leave(Shard(("a",)), leaving())
    assert handover.has(Shard(("a",)), 1)
    assert not handover.has(Shard(("b",)), 1)
    assert not replace(handover, model=("model", "other")).has(Shard(("a",)), 1)
    assert not replace(handover, parts=3).has(Shard(("a",)), 1)


def test_a_unit_leaves_nothing_rather_than_too_much(handover):
    one = spans(0)
    size = one.source.nbytes + sum(own.nbytes for own in one.bases.values())
    handover.leave(Shard(("a",)), leaving(3 * size, layers=4))
    assert not handover.has(Shard(("a",)), 0)
    handover.leave(Shard(("a",)), leaving(4 * size, layers=4))
    assert handover.has(Shard(("a",)), 0)


def test_layers_whose_inputs_are_not_known_are_left_out():
    left = Leaving(PLENTY)
    left.add(PredictedSpans.of(KeyKernel(random_heads(0)), [THEORIES["pca"]]))
    assert left.spans == []
