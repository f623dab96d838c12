"""A table of costs has every variant of every size, and refuses a count that torch does not confirm."""

import pytest
import torch

from attnaudit.cost import measuring
from attnaudit.cost.measuring import check_settings, measure_costs
from attnaudit.cost.networks import networks
from attnaudit.cost.operations import Operations, operations_by_hand
from attnaudit.cost.passes import passes
from attnaudit.errors import AttnAuditError, NumericalError, UsageError
from attnaudit.numerics.threads import torch_threads
from attnaudit.records.cost import PassTimes
from attnaudit.sources.vision_transformer import build_vision_transformer

SMALL = {"image_size": 32, "depth": 1, "classes": 3}
TIMES = [(0.1, 0.1)] * 2


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


def test_the_time_of_a_pass_has_beside_it_that_of_the_same_pass_of_symmetric_attention(monkeypatch):
    """Inference takes as many seconds as the place of the network in the table, and training a hundred more."""
    variants = dict(list(networks("tiny", **SMALL))[:3])
    architectures, place_of, seconds_of = list(variants.values()), {}, {}

    def built(architecture, seed):
        model = build_vision_transformer(architecture, seed)
        place_of[model] = architectures.index(architecture) + 1
        return model

    def noted(model, *rest):
        works = passes(model, *rest)
        seconds_of.update(zip(works, (place_of[model], 100 + place_of[model]), strict=True))
        return works

    monkeypatch.setattr(measuring, "networks", lambda *_, **__: variants)
    monkeypatch.setattr(measuring, "build_vision_transformer", built)
    monkeypatch.setattr(measuring, "passes", noted)
    monkeypatch.setattr(measuring, "seconds_in_turn", lambda works, *_: [(seconds_of[work],) for work in works])
    table, _ = measure()
    assert [own.attention for own in table.networks][:2] == ["softmax", "symmetric"]
    assert [own.inference.times for own in table.networks] == [PassTimes((own,), (2,)) for own in (1, 2, 3)]
    assert [own.training.times for own in table.networks] == [PassTimes((own,), (102,)) for own in (101, 102, 103)]


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
def test_what_cannot_be_measured_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        check_settings(**{"sizes": ["tiny"], "batch": 1, "repeats": 2} | settings)


def test_a_batch_that_does_not_fit_into_memory_is_one_sentence():
    with pytest.raises(AttnAuditError, match=r"of 10,000,000,000,000 images does not fit into the memory of cpu: give"):
        measure(batch=10**13)


def test_other_errors_of_torch_are_not_about_memory(monkeypatch):
    def fails(*_):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(measuring, "seconds_in_turn", fails)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        measure()


def test_a_cpu_is_measured_on_one_thread(monkeypatch):
    threads = []
    monkeypatch.setattr(measuring, "seconds_in_turn", lambda *_: threads.append(torch.get_num_threads()) or TIMES)
    with torch_threads(2):
        measure()
        assert torch.get_num_threads() == 2
    assert set(threads) == {1}
