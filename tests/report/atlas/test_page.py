"""The page over all models: what it says, and that nothing in it can become markup."""

import re
from dataclasses import replace

import pytest

from attnaudit.records.verdict import Finding, VerdictWord
from attnaudit.report.atlas.page import AtlasPage
from attnaudit.report.atlas.write import atlas_page
from tests.report.atlas.made_up import JUDGED, audit, audits, failure


def text(own, failures=()):
    return atlas_page(own, failures).decode()


def with_verdicts(own, word, finding):
    """The same audit with one verdict on all claims."""
    verdicts = tuple(replace(each, word=word, finding=finding) for each in own.summary.verdicts[: len(JUDGED)])
    return replace(own, summary=replace(own.summary, verdicts=verdicts))


def test_every_model_leads_to_its_page_and_its_card():
    page = text(audits(9))
    for place in range(9):
        assert f'href="model-{place}/report.html"' in page
        assert f'href="model-{place}/card.md"' in page


def test_names_and_reasons_are_escaped():
    hostile = "<script>alert(1)</script>"
    page = text([audit(hostile)], [failure(reason=hostile)])
    assert hostile not in page
    assert page.count("<script>") == 1, "its own"
    assert "Because of <b>" not in page


def test_the_page_needs_nothing_from_elsewhere():
    page = text(audits(9), [failure()])
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page)
    assert "default-src 'none'" in page


def test_a_claim_that_holds_in_some_heads_is_not_said_to_hold_for_the_model():
    models = [audit("a"), audit("b")]
    none = [with_verdicts(own, VerdictWord.REFUTED, Finding.AT_CHANCE) for own in models]
    some = [with_verdicts(own, VerdictWord.SUPPORTED, Finding.IN_SOME_HEADS) for own in models]
    whole = [with_verdicts(own, VerdictWord.SUPPORTED, Finding.ON_AVERAGE) for own in models]
    first = "Of 5 claims about attention in 2 models, "
    assert AtlasPage(none, ()).answers[0] == f"{first}none is supported for a whole model."
    assert AtlasPage(some, ()).answers[0].startswith(f"{first}none is supported for a whole model; in some heads: kpca")
    assert (
        AtlasPage(whole, ()).answers[0].startswith(f"{first}5 are supported for whole models: kpca-values (2 models)")
    )


def test_a_theory_that_is_true_by_construction_stands_last_and_is_not_the_answer():
    page = AtlasPage(audits(9), ())
    assert page.theories[-1] == "inputs-lowrank"
    assert "inputs-lowrank" not in " ".join(page.answers)


def test_bars_count_every_model_once():
    page = AtlasPage(audits(), ())
    assert all(sum(page.tally(claim).values()) == 30 for claim in page.claims)


def test_a_theorem_is_said_once_and_has_no_column():
    page = AtlasPage(audits(9), ())
    assert "kpca-eigenvalues" not in page.claims
    assert page.theorems() == {"kpca-eigenvalues": "Eigenvalues are below 1."}


def test_means_by_field_and_depth_are_over_models_and_layers():
    own = [audit("a", "text", 1), audit("b", "text", 2), audit("c", "music", 3)]
    page, theory = AtlasPage(own, ()), "keys-linear"
    scores = {each.entry.name: each.ranking[theory].mean for each in own}
    both, alone = page.by_field(theory)
    assert list(page.fields) == ["text", "music"]
    assert (both.mean, both.count) == (pytest.approx((scores["a"] + scores["b"]) / 2), 2)
    assert (alone.mean, alone.count) == (pytest.approx(scores["c"]), 1)
    first, *middle, last = page.by_depth(theory)
    assert [cell.count for cell in middle] == [0, 0, 0], "two layers are the first and the last"
    assert first.mean == pytest.approx(sum(scores.values()) / 3)
    assert last.count == 3


@pytest.mark.parametrize(("heads", "size"), [(1, 0), (32, 0), (33, 1), (64, 1), (65, 2), (96, 2), (97, 3)])
def test_a_model_has_one_size(heads, size):
    own = audit("a", "text", 1, layers=1, heads=heads)
    page = AtlasPage([own], ())
    assert page.sizes == (("up to 32 heads", "33 to 64", "65 to 96", "more")[size],), "no empty columns"
    [cell] = page.by_size("keys-linear")
    assert (cell.count, cell.mean) == (1, pytest.approx(own.ranking["keys-linear"].mean))


def test_an_atlas_of_failures_has_a_page():
    page = text([], [failure()])
    assert "No model was audited" in page
    assert "It tells no story." in page


def test_the_page_names_measures_and_the_levels_of_intervals():
    page = text([audit("a", "text", 1)])
    assert "by procrustes: Because of" in page
    assert "at 95 % so that those of all measures of a claim hold together" in page
    assert "Intervals are at 99.38 %, so that those of all theories hold together" in page, "8 theories"


def test_a_mean_below_chance_does_not_look_like_one_at_chance():
    own = audit("a", "text", 1)
    low = tuple(replace(rank, mean=-0.2) for rank in own.summary.ranking)
    assert 'class="below"' in text([replace(own, summary=replace(own.summary, ranking=low))])
    assert 'class="below"' not in text([own])
