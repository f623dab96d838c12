import pytest

from attnaudit.claims.claim import MEANINGS
from attnaudit.claims.registry import CLAIMS, claims_named, theories_for
from attnaudit.errors import UsageError
from attnaudit.measures import measure_named
from attnaudit.records.verdict import Word


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.name)
def test_every_claim_is_complete(claim):
    assert claim.statement.endswith(".")
    assert any(year in claim.citation for year in ("2023", "2024", "2025", "2026"))
    for name in (*claim.deciding, *claim.shown):
        assert measure_named(name).name == name
    if claim.decide is None:
        assert all(measure_named(name).closer in ("higher", "lower") for name in claim.deciding)


def test_every_word_has_a_meaning():
    assert set(MEANINGS) == set(Word)


def test_claims_bring_the_theories_they_need():
    assert theories_for(claims_named(["kpca-values"])) == ("kpca",)
    assert theories_for(claims_named(["ksvd-values"])) == ("kpca", "ksvd")


def test_an_unknown_claim_is_refused():
    with pytest.raises(UsageError, match="no claim 'p-equals-np'; there are kpca-values"):
        claims_named(["p-equals-np"])
