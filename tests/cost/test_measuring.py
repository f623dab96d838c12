"""A table of costs has every variant of every size, and refuses a count that torch does not confirm."""

import pytest

from attnaudit.cost import measuring
from attnaudit.cost.measuring import measure_costs
from attnaudit.cost.networks import networks
from attnaudit.cost.operations import Operations, operations_by_hand
from attnaudit.errors import NumericalError, UsageError

SMALL = {"image_size": 32, "depth": 1, "classes": 3}


def measure(**settings):
    told = []
    settings = {"sizes": ["tiny"], "batch": 1, "repeats": 2, "device": "cpu"} | settings
    return measure_costs(progress=lambda *words: told.append(words), **settings, **SMALL), told


def test_every_variant_is_measured_beside_symmetric_attention():
    table, told = measure()
    expected = dict(networks("tiny", **SMALL))
    assert [own.attention for own in table.networks] == list(expected)
    for own in table.networks:
        operations = operations_by_hand(expected[own.attention])
        assert (own.inference.operations, own.training.operations) == (operations.inference, operations.training)
        for cost in (own.inference, own.training):
            assert (len(cost.times.own), len(cost.times.symmetric), cost.graph) == (2, 2, None)
            assert cost.memory > 0
    assert told[0] == (0, len(expected), "tiny, softmax")
    assert told[-1][:2] == (len(expected), len(expected))


def test_a_count_that_torch_does_not_confirm_is_an_error(monkeypatch):
    monkeypatch.setattr(measuring, "operations_by_torch", lambda model, architecture: Operations(1, 2))
    with pytest.raises(NumericalError, match=r"^tiny, softmax: .* one of the counts is wrong\.$"):
        measure()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sizes": ["huge"]}, "Unknown size 'huge'"),
        ({"sizes": []}, "No size is given"),
        ({"batch": 0}, "batch must be ≥ 1, got 0"),
        ({"repeats": 1}, "repeats must be ≥ 2, got 1"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_runs(settings, words):
    with pytest.raises(UsageError, match=words):
        measure(**settings)
