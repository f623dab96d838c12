"""All claims: what each says of itself, and which names are refused."""

import re

import pytest

from attnaudit.claims import Claim, RecordKind
from attnaudit.claims.meanings import MEANINGS
from attnaudit.claims.registry import CLAIMS, claims_about, claims_named, theories_for
from attnaudit.errors import UsageError
from attnaudit.measures import measure_named
from attnaudit.records.verdict import Finding

OPEN = {Finding.TOO_FEW_INPUTS, Finding.TOO_WIDE, Finding.NOT_IDENTIFIABLE, Finding.NOT_MEASURED}
#: What the common rule can find, and the rule for gains.
OF_SCORES = OPEN | {
    Finding.IN_ALL_HEADS,
    Finding.IN_SOME_HEADS,
    Finding.ON_AVERAGE,
    Finding.PARTIAL,
    Finding.AT_CHANCE,
    Finding.BELOW_CHANCE,
    Finding.UNREALISABLE,
    Finding.MEASURES_DISAGREE,
}
OF_GAINS = OPEN | {Finding.SHOWN, Finding.NO_GAIN, Finding.LOSS}
OF_OWN_RULES = {
    "ksvd-regularised": OF_SCORES,
    "kpca-eigenvalues": {Finding.IMPOSSIBLE, Finding.NOT_MEASURED},
    "study-similarity": {Finding.SHOWN, Finding.OTHER_NUMBERS, Finding.NOT_MEASURED},
    "jproj-convergence": {Finding.SHOWN, Finding.IMPOSSIBLE, Finding.IN_BETWEEN, Finding.NOT_MEASURED},
    "rpc-robust": OF_GAINS,
    "rpc-because-of-pcp": OF_GAINS,
    "rpc-iterations": OF_GAINS,
    "rpc-cost": {Finding.SHOWN, Finding.OTHER_NUMBERS, Finding.TOO_FEW_INPUTS, Finding.TOO_WIDE},
    "rpc-segments-better": OF_GAINS,
    "rpc-fine-tuned": OF_GAINS,
    "gaussian-regulariser": OF_GAINS,
    "scaled-attention-converges-faster": OF_GAINS,
}


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.name)
def test_every_claim_is_complete(claim):
    assert claim.statement.endswith(".")
    assert re.search(r"\b(19|20)\d\d\b", claim.citation)
    assert claim.formula
    assert claim.rule.endswith(".")
    assert all(claim.decided_by)
    assert claim.needs
    assert claim.command.startswith("attnaudit ")
    assert claim.meanings.keys() >= (OF_OWN_RULES[claim.name] if claim.decide else OF_SCORES)


@pytest.mark.parametrize("claim", claims_about(RecordKind.AUDIT), ids=lambda c: c.name)
def test_claims_about_audits_name_measures_and_scored_ones_have_a_direction(claim):
    for name in (*claim.decided_by, *claim.shown):
        assert measure_named(name).name == name
    if claim.decide is None:
        assert all(measure_named(name).closer in ("higher", "lower") for name in claim.decided_by)


def test_there_are_twenty_six_claims_each_under_its_own_name():
    assert len(CLAIMS) == 26
    assert all(name == claim.name for name, claim in CLAIMS.items())
    found = {claim.name for kind in RecordKind for claim in claims_about(kind)}
    assert found == {name for name, claim in CLAIMS.items() if not claim.on_request}


def test_a_claim_that_takes_long_is_judged_only_if_it_is_named():
    assert CLAIMS["kpca-values-any-gauge"] not in claims_about(RecordKind.AUDIT)
    assert claims_named(["kpca-values-any-gauge"], RecordKind.AUDIT) == (CLAIMS["kpca-values-any-gauge"],)


def test_the_command_judges_the_claim():
    assert CLAIMS["kpca-values"].command == "attnaudit audit MODEL --claims kpca-values"
    assert CLAIMS["rpc-robust"].command == "attnaudit judge RUN… --claims rpc-robust"
    assert all(c.command.startswith("attnaudit gaussian ") for c in claims_about(RecordKind.LABORATORY))


def test_findings_have_meanings_for_every_kind_of_record_and_a_claim_may_have_its_own():
    assert set(MEANINGS) == set(RecordKind)
    own = Claim("x", "s", "c", "f", "r", ("procrustes",), meanings={Finding.PARTIAL: "somewhat"})
    assert own.meanings == {**MEANINGS[RecordKind.AUDIT], Finding.PARTIAL: "somewhat"}


def test_a_claim_must_say_what_it_is_decided_by():
    with pytest.raises(UsageError, match="'x'"):
        Claim("x", "s", "c", "f", "r", ())


def test_claims_bring_the_theories_they_need():
    assert theories_for(claims_named(["kpca-values"], RecordKind.AUDIT)) == ("kpca",)
    assert theories_for(claims_named(["ksvd-values"], RecordKind.AUDIT)) == ("kpca", "ksvd")


def test_an_unknown_claim_is_refused():
    with pytest.raises(UsageError, match=r"'p-equals-np'.*kpca-values"):
        claims_named(["p-equals-np"], RecordKind.AUDIT)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("rpc-robust", "attnaudit judge"),
        ("jproj-convergence", "attnaudit judge"),
        ("gaussian-alignment", "attnaudit gaussian align"),
    ],
)
def test_an_audit_refuses_claims_that_read_other_records_and_names_the_command_for_them(name, command):
    with pytest.raises(UsageError, match=f"^{name} .*{command}"):
        claims_named([name], RecordKind.AUDIT)


def test_trainings_and_evaluations_refuse_claims_about_models():
    with pytest.raises(UsageError, match=r"^kpca-values .*attnaudit audit MODEL"):
        claims_named(["kpca-values"], RecordKind.TRAINING, RecordKind.EVALUATION)
