"""Every listed measure keeps its promises, and one of the user's own is held to them."""

import itertools
from dataclasses import replace

import pytest
import torch

from attnaudit.errors import UsageError
from attnaudit.measures import DEFAULT_MEASURES, MEASURES, Cost, Measure, MeasureInput, Scope, evaluate
from attnaudit.measures.primal_input import PrimalInput
from attnaudit.theories import THEORIES
from tests.heads import causal, make_heads, random_heads
from tests.primal_heads import random_primal

#: Measures of what only fitted theories predict.
OF_FITS = ("output_explained_variance", "rank_needed", "step_cosine", "low_pass_share")


def inputs_of(measure):
    if measure.scope is Scope.PRIMAL:
        return PrimalInput.of(random_primal(0))
    heads = random_heads(0, tokens=18)
    heads = make_heads(heads.query, heads.key, 0.01 * heads.value)  # short outputs, as of projections
    at = MeasureInput.of(heads if measure.applies_to(heads) else causal(heads))
    if measure.name not in OF_FITS:
        return at
    outputs = THEORIES["low-pass"].fitting().predict(heads).outputs
    own = {"outputs": outputs, "baseline": heads.value[:, :1], "axes": torch.eye(4).double().repeat(2, 1, 1)}
    return replace(at, predicted=replace(at.predicted, given=replace(at.prediction, **own)))


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_a_measure_gives_one_number_per_head_under_its_own_name(measure):
    (name, numbers), *others = evaluate([measure], inputs_of(measure)).items()
    assert name == measure.name
    assert others == []
    assert numbers.values.shape == (2,)
    assert numbers.values.isfinite().all()
    assert list(numbers.problems) == [None, None]


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda measure: measure.name)
def test_a_measure_says_what_it_is(measure):
    assert measure.text
    assert measure.guard.text
    assert (measure.ideal is None) or measure.closer != "neither"
    assert (measure.name in DEFAULT_MEASURES) == measure.default


def returning(result):
    return Measure("mine", "something else", lambda at: result)


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({"mine": torch.ones(2), "not-declared": torch.ones(2)}, "dict"),
        ({}, "dict"),
        (torch.ones(3), r"\(3,\)"),
        (torch.ones(2, 1), r"\(2, 1\)"),
        (torch.tensor(1.0), r"\(\)"),
        ([1.0, 2.0], "list"),
        (None, "NoneType"),
    ],
)
def test_a_measure_that_returns_anything_else_is_named(result, found):
    with pytest.raises(UsageError, match=f"measure 'mine' .* {found}"):
        evaluate([returning(result)], MeasureInput.of(random_heads(0)))


def test_measures_computed_together_share_their_work():
    calls = []

    def expensive(at):
        calls.append(at)
        return at.heads.value.square().sum(dim=-1)

    measures = [
        Measure("mean", "of it", lambda at: at.shared(expensive).mean(dim=-1)),
        Measure("max", "of it", lambda at: at.shared(expensive).amax(dim=-1)),
    ]
    at = MeasureInput.of(random_heads(0))
    found = evaluate(measures, at)
    assert calls == [at]
    assert (found["max"].values > found["mean"].values).all()


def lost_keys():
    """Two heads, the second with keys that are all alike."""
    heads = random_heads(0)
    key = heads.key.clone()
    key[1] = key[1, :1]
    return replace(heads, key=key)


@pytest.mark.parametrize("names", itertools.permutations(["phi_norm2", "eigenvector_residual", "linear_cka"]))
def test_reasons_depend_on_the_measure_and_not_on_what_was_computed_before(names):
    found = evaluate([MEASURES[name] for name in names], MeasureInput.of(lost_keys()))
    assert list(found["phi_norm2"].problems) == [None, None]
    for name in ("eigenvector_residual", "linear_cka"):
        first, second = found[name].problems
        assert first is None
        assert "all equal" in second
        assert found[name].values.isfinite().tolist() == [True, False]


def test_many_tokens_leave_out_what_compares_every_pair(monkeypatch):
    monkeypatch.setattr("attnaudit.measures.pairs.MOST_TOKENS", 10)
    for measure in MEASURES.values():
        if measure.scope is not Scope.PRIMAL:
            numbers = evaluate([measure], inputs_of(measure))[measure.name]
            left_out = measure.cost in (Cost.PAIRS, Cost.MATCHING)
            assert numbers.values.isnan().all() == left_out, measure.name
            assert all(("pairs of tokens" in (problem or "")) == left_out for problem in numbers.problems)
