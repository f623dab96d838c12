"""Claims that are judged on trainings and evaluations."""

import pytest

from attnaudit.claims.registry import CLAIMS, ROBUSTNESS_CLAIMS, TRAINING_CLAIMS, claims_named
from attnaudit.errors import UsageError


def test_an_audit_refuses_claims_about_robustness():
    assert not set(CLAIMS) & set(ROBUSTNESS_CLAIMS)
    with pytest.raises(UsageError, match="rpc-robust is about robustness, not about heads: run attnaudit judge"):
        claims_named(["rpc-robust"])


@pytest.mark.parametrize("claim", [*TRAINING_CLAIMS.values(), *ROBUSTNESS_CLAIMS.values()], ids=lambda c: c.name)
def test_every_claim_says_where_it_comes_from_how_it_is_decided_and_what_it_needs(claim):
    assert claim.statement
    assert claim.citation
    assert claim.rule
    assert claim.needs
    assert claim.judged_by == "attnaudit judge RUN…"
