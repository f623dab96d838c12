"""From heads to measurements: what is computed for whom, and how often."""

from collections import Counter

import pytest
import torch

from attnaudit.measures import MEASURES, REFERENCES, Measure, Reference, Role, Scope, select
from attnaudit.measures.measuring import measure_heads, measure_network, measure_primal
from attnaudit.protocol import Protocol
from attnaudit.theories import THEORIES, Identifiability
from attnaudit.theories.base import is_fitted
from tests.measures.references.audits import simulated_heads
from tests.measures.references.case import labelled
from tests.primal_heads import random_primal


def measured(selection, heads=None, **more):
    heads = simulated_heads(0) if heads is None else heads
    return {(m.key.theory, m.key.reference, m.key.repeat): m for m in measure_heads([heads], selection, **more)}


def test_keys_are_measured_once_values_for_the_first_theory_and_predictions_for_all():
    found = measured(select(theories=("kpca", "pca"), references=["gaussian"]))
    scopes = {
        key: Counter(MEASURES[name].scope for name in m.values if name != "identifiable") for key, m in found.items()
    }
    assert set(scopes[("kpca", "observed", 0)]) == {Scope.KEYS, Scope.VALUES, Scope.PREDICTION}
    assert set(scopes[("kpca", "gaussian", 0)]) == {Scope.VALUES, Scope.PREDICTION}
    assert set(scopes[("pca", "observed", 0)]) == set(scopes[("pca", "gaussian", 0)]) == {Scope.PREDICTION}
    assert "matched_cosine_mean" not in found[("pca", "observed", 0)].values


SHOWN = ("gaussian", "shuffled_tokens", "other_head", "planted")


def test_the_null_that_counts_is_drawn_as_often_as_asked_and_all_others_once():
    selection = select(measures=["procrustes"], references=REFERENCES, repeats=3)
    once = dict.fromkeys(("observed", *SHOWN), 1)
    unknown = Counter(reference for _, reference, _ in measured(selection))
    assert unknown == once | {"rotated": 3}
    known = Counter(reference for _, reference, _ in measured(selection, labelled(simulated_heads(0))))
    assert known == once | {"random_projection": 3, "rotated": 1}


def test_measures_of_all_pairs_of_tokens_are_not_repeated_for_what_is_only_shown():
    selection = select(measures=["matched_cosine_mean", "procrustes"], references=REFERENCES, repeats=2)
    found = measured(selection)
    costly = {key[1:] for key, m in found.items() if "matched_cosine_mean" in m.values}
    assert costly == {("observed", 0), ("rotated", 0), ("planted", 0)}
    assert all("procrustes" in m.values for m in found.values())
    assert not any("matched_cosine_mean" in m.values for m in measured(selection, context=False).values())


@pytest.mark.parametrize("more", [{"references": ()}, {"protocol": Protocol.PAPER}])
def test_what_is_asked_for_without_references_or_decides_the_claims_of_the_study_is_measured_everywhere(more):
    asked = ["matched_cosine_mean", "kernel_cka", "standardised_eigenvalue_max"]
    found = measured(select(**{"measures": asked, "references": ["gaussian"]} | more), context=False)
    assert set(asked) <= set(found["kpca", "observed", 0].values)


def test_without_context_null_and_ideal_have_the_deciding_measures_only():
    selection = select(measures=["procrustes", "linear_cka", "gamma_rel"], references=REFERENCES, repeats=2)
    found = measured(selection, context=False)
    assert {"procrustes", "linear_cka", "gamma_rel"} <= set(found.pop(("kpca", "observed", 0)).values)
    assert {reference for _, reference, _ in found} == {"rotated", "planted"}
    assert all(set(m.values) == {"procrustes"} for m in found.values())


def test_without_context_only_what_decides_is_measured_and_it_is_the_same():
    selection = select(measures=["procrustes"], references=REFERENCES, repeats=2)
    for heads, null in ((simulated_heads(0), "rotated"), (labelled(simulated_heads(0)), "random_projection")):
        every, deciding = measured(selection, heads), measured(selection, heads, context=False)
        assert {reference for _, reference, _ in deciding} == {"observed", null, "planted"}
        for key, own in deciding.items():
            assert torch.equal(own.values["procrustes"], every[key].values["procrustes"])


def test_what_is_shown_for_context_and_further_draws_of_the_null_have_the_deciding_measures_only():
    found = measured(select(measures=["procrustes", "linear_cka"], references=REFERENCES, repeats=2))
    with_cka = {key[1:] for key, m in found.items() if "linear_cka" in m.values}
    assert with_cka == {("observed", 0), ("rotated", 0), ("planted", 0)}


def test_theories_share_the_values_of_a_reference_unless_it_uses_the_prediction():
    drawn = []

    def draw(given):
        drawn.append(given.prediction)
        return given.heads.value.flip(1)

    for shared, times in ((False, 1), (True, 2)):
        drawn.clear()
        own = Reference("own", "values upside down", Role.CONTEXT, draw, random=False, uses_prediction=shared)
        found = measured(select(theories=("kpca", "pca"), measures=["procrustes"], references=[own]))
        assert len(drawn) == times
        assert {("kpca", "own", 0), ("pca", "own", 0)} <= set(found)


def test_predictions_are_handed_on_batch_by_batch():
    handed = []
    selection = select(theories=("kpca", "pca"), measures=["procrustes"])
    measured(selection, on_predicted=lambda keys, predictions: handed.append((len(keys.heads), predictions)))
    ((count, predictions),) = handed
    assert [own.theory.name for own in predictions] == ["kpca", "pca"]
    assert all(len(own.prediction.values) == count for own in predictions)


@pytest.mark.parametrize("measures", [["column_cosine_matched"], ["kernel_rank"], ["linear_cka", "phi_norm2"]])
@pytest.mark.parametrize("theory", [name for name, theory in THEORIES.items() if not is_fitted(theory)])
def test_the_guard_of_a_theory_is_computed_whatever_measures_are_asked_for(measures, theory):
    for reference, expected in ((["gaussian"], True), ([], False)):
        found = measured(select(measures=measures, theories=[theory], references=reference))
        assert ("identifiable" in found[(theory, "observed", 0)].values) == expected
        assert not any("identifiable" in m.values for key, m in found.items() if key[1] != "observed")


def test_each_theory_has_its_own_guard():
    class Picky:
        name, text = "picky", "kernel PCA for the first head only"
        guard = Identifiability("a head that is the first", lambda heads, spectrum: (None, *["no"] * (len(heads) - 1)))
        predict = THEORIES["kpca"].predict

    found = measured(select(measures=["procrustes"], theories=[Picky(), "kpca"], references=["planted"]))
    picky, kpca = (found[(theory, "observed", 0)] for theory in ("picky", "kpca"))
    assert picky.values["identifiable"].isfinite().tolist() == [True] + [False] * 15
    assert picky.problems["identifiable"] == [None] + ["no"] * 15
    assert kpca.values["identifiable"].tolist() == [1.0] * 16


@pytest.mark.parametrize(("tokens", "refused"), [(11, "N = 11 tokens are fewer than 2d = 12"), (12, None)])
def test_too_few_tokens_are_a_reason(tokens, refused):
    found = measured(select(measures=["procrustes"], references=["planted"]), simulated_heads(0, tokens=tokens))
    assert set(found[("kpca", "observed", 0)].problems["identifiable"]) == {refused}


def test_a_kernel_of_low_rank_is_a_reason_for_kernel_pca_alone():
    heads = simulated_heads(0, tokens=24)
    heads.key[0] = heads.key[0, :1] * torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(12)[:, None]
    found = measured(select(measures=["procrustes"], theories=("kpca", "ksvd"), references=["planted"]), heads)
    assert "rank 1, not above d = 6" in found[("kpca", "observed", 0)].problems["identifiable"][0]
    assert found[("ksvd", "observed", 0)].values["identifiable"][0] == 1.0


@pytest.mark.parametrize(("measures", "solved"), [(["phi_norm2"], {}), (["eigenvalue_max"], {"dense": 16})])
def test_solvers_are_counted_where_eigenpairs_are_needed(measures, solved):
    counted = Counter()
    measured(select(measures=measures), solved=counted)
    assert counted == solved


def test_a_measure_and_a_reference_of_ones_own_are_computed_like_the_others():
    size = Measure("size", "of the values", lambda at: at.heads.value.norm(dim=(1, 2)), scope=Scope.VALUES)
    zero = Reference("zero", "no values", Role.NULL, lambda given: torch.zeros_like(given.heads.value), random=False)
    found = measured(select(measures=[size], references=[zero], repeats=2))
    assert (found[("kpca", "observed", 0)].values["size"] > 0).all()
    assert (found[("kpca", "zero", 0)].values["size"] == 0).all()
    assert ("kpca", "zero", 1) not in found


def test_another_network_is_measured_under_the_name_of_its_reference():
    selection = select(measures=["kernel_rank", "procrustes", "matched_cosine_mean"], references=REFERENCES)
    (found,) = measure_network([simulated_heads(0)], REFERENCES["untrained"], selection)
    assert found.key.reference == "untrained"
    assert set(found.values) == {"procrustes"}  # neither what describes nor what takes long


def test_primal_layers_are_measured_beside_their_references():
    selection = select(references=REFERENCES, repeats=2)
    found = {(m.key.reference, m.key.repeat): set(m.values) for m in measure_primal(random_primal(0), selection)}
    own = {name for name, measure in MEASURES.items() if measure.scope is Scope.PRIMAL}
    assert found == {
        ("observed", 0): own | {"kernel_rank", "identifiable"},
        ("gaussian", 0): own,
        ("gaussian", 1): own,
        ("planted", 0): own,
    }
