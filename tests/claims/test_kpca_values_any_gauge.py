"""The claim modulo gauge, and the theory that it is decided by."""

from attnaudit.claims.kpca_values_any_gauge import CLAIM
from attnaudit.measures import measure_named
from attnaudit.measures.key_kernel import KeyKernel
from attnaudit.measures.measure_input import PredictedValues
from attnaudit.theories.any_gauge import KernelPCAInAnyGauge
from attnaudit.theories.base import Theory
from tests.heads import random_heads


def test_the_claim_is_about_its_theory_and_decided_by_a_measure_that_exists():
    assert CLAIM.theory == KernelPCAInAnyGauge.name
    assert [measure_named(name).name for name in CLAIM.decided_by] == ["value_subspace_overlap"]


def test_the_theory_says_why_it_predicts_nothing_for_heads_of_one_input():
    theory = KernelPCAInAnyGauge()
    assert isinstance(theory, Theory)
    prediction = PredictedValues(KeyKernel(random_heads(0)), theory).prediction
    assert prediction.values.isnan().all()
    assert prediction.problems == ("its gauge is fitted to other inputs",) * 2
