"""RPC-Attention costs what is claimed if all ratios are within their limits, with all of their intervals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from attnaudit.claims.jury import judge
from attnaudit.claims.registry import CLAIMS
from attnaudit.claims.rpc_cost import COMPARABLE, SLIGHTLY
from attnaudit.records.verdict import Finding, VerdictWord
from tests.cost.tables import FORMS, pass_cost, table

CLAIM = CLAIMS["rpc-cost"]
OURS = FORMS[0]
SUPPORTED = VerdictWord.SUPPORTED, Finding.SHOWN
REFUTED = VerdictWord.REFUTED, Finding.OTHER_NUMBERS


def verdict_on(inference=None, training=None):
    costs = {OURS: (inference or pass_cost(), training or pass_cost())}
    judgement = judge([CLAIM], [table(costs)])
    return next(own for own in judgement.verdicts if own.model == f"tiny: {OURS}")


def decision(**passes):
    found = verdict_on(**passes)
    return found.word, found.finding


def test_the_published_forms_are_judged_in_every_size_and_nothing_else():
    verdicts = judge([CLAIM], [table(sizes=("tiny", "base"))]).verdicts
    assert [own.model for own in verdicts] == [f"{size}: {form}" for size in ("tiny", "base") for form in FORMS]
    assert {(own.word, own.finding) for own in verdicts} == {SUPPORTED}


@pytest.mark.parametrize("name", ["operations", "memory", "time"])
def test_each_cost_has_its_limit(name):
    assert decision(inference=pass_cost(**{name: COMPARABLE - 0.02})) == SUPPORTED
    assert decision(inference=pass_cost(**{name: COMPARABLE + 0.02})) == REFUTED
    assert decision(training=pass_cost(**{name: COMPARABLE + 0.02})) == SUPPORTED
    assert decision(training=pass_cost(**{name: SLIGHTLY - 0.02})) == SUPPORTED
    assert decision(training=pass_cost(**{name: SLIGHTLY + 0.02})) == REFUTED


def test_a_time_whose_interval_contains_the_limit_decides_nothing():
    noisy = pass_cost(time=COMPARABLE, spread=(0.9, 1.1) * 3)
    assert decision(inference=noisy) == (VerdictWord.UNDECIDED, Finding.TOO_WIDE)


def test_what_is_beyond_its_limit_refutes_whatever_is_open():
    noisy = pass_cost(time=COMPARABLE, spread=(0.9, 1.1) * 3, memory=2)
    assert decision(inference=noisy) == REFUTED


def test_of_several_ratios_that_are_open_the_first_gives_the_finding():
    noisy, once = pass_cost(time=COMPARABLE, spread=(0.8, 1.25) * 3), pass_cost(spread=(1.0,))
    assert decision(inference=noisy, training=once) == (VerdictWord.UNDECIDED, Finding.TOO_WIDE)
    assert decision(inference=once, training=noisy) == (VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS)


def test_a_time_of_one_run_decides_nothing():
    once = pass_cost(time=3, spread=(1.0,))
    assert decision(training=once) == (VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS)
    assert "time ×3.00 (no interval)" in verdict_on(training=once).reason


def test_a_time_whose_repeats_are_all_equal_decides_nothing():
    equal = pass_cost(time=3, spread=(1.0,) * 10)
    assert decision(training=equal) == (VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS)


def test_times_of_cuda_graphs_decide_where_there_are_any_and_are_called_so():
    reason = verdict_on(training=pass_cost(time=1, graph=1.4)).reason
    assert "time of a CUDA graph ×1.40" in reason.split("training: ")[1]
    assert "CUDA graph" not in reason.split("training: ")[0]
    assert decision(training=pass_cost(time=3, graph=1.1)) == SUPPORTED
    assert decision(training=pass_cost(time=1, graph=1.4)) == REFUTED


def test_the_interval_is_students_on_logarithms():
    """ln of ratios 1.02 ± 0.5 %, ten repeats, 99.375 % (eight intervals): t₉ = 3.46."""
    reason = verdict_on(training=pass_cost(time=1.02)).reason
    assert reason.startswith("over symmetric attention: inference: operations ×1.00, memory ×1.00, time ×1.00 [0.99, ")
    assert "training: operations ×1.00, memory ×1.00, time ×1.02 [1.01, 1.03]" in reason


def test_the_interval_is_widened_for_two_times_of_every_form_about_the_geometric_mean():
    """Ratios of 50 and 200, five of each, have a geometric mean of 100; eight intervals hold together."""
    reason = verdict_on(training=pass_cost(time=100, spread=(0.5, 2.0) * 5)).reason
    reach = np.exp(stats.t.ppf(1 - 0.05 / (2 * 8), 9) * np.log(2) / 3)  # of ±ln 2, the standard error is ln 2 / √9
    assert f"time ×100.00 [{100 / reach:.2f}, {100 * reach:.2f}]" in reason


def test_the_symmetric_network_is_told_by_what_it_is_and_not_by_its_name():
    """One with a temperature has its name, and costs a tenth."""
    whole, cheap = table(), pass_cost(operations=0.1, memory=0.1, time=0.1)
    (plain,) = (own for own in whole.networks if own.attention == "symmetric")
    tempered = replace(plain.architecture, attention_options={"temperature": 0.3})
    other = replace(plain, architecture=tempered, inference=cheap, training=cheap)
    others = (own for own in whole.networks if own is not plain)
    verdicts = judge([CLAIM], [replace(whole, networks=(replace(plain, attention="plain"), *others, other))]).verdicts
    assert [(own.word, own.finding) for own in verdicts] == [SUPPORTED] * len(FORMS)


@pytest.mark.parametrize("change", [{"depth": 3}, {"image_size": 64}, {"patch_size": 8}, {"heads": 6}, {"classes": 4}])
def test_networks_that_differ_in_more_than_their_attention_are_not_compared(change):
    whole = table()
    networks = [
        replace(own, architecture=replace(own.architecture, **change)) if own.attention == "symmetric" else own
        for own in whole.networks
    ]
    assert judge([CLAIM], [replace(whole, networks=tuple(networks))]).verdicts == ()


def test_a_table_without_symmetric_attention_has_no_verdict():
    whole = table()
    lacking = replace(whole, networks=tuple(own for own in whole.networks if own.attention != "symmetric"))
    assert judge([CLAIM], [lacking]).verdicts == ()
