"""Verdicts and claims for the terminal, of whatever kind of record."""

import io

import pytest
from rich.console import Console

from attnaudit.claims.claim import MEANINGS, RecordKind
from attnaudit.claims.registry import CLAIMS
from attnaudit.records.verdict import Rank, Score, Verdict, VerdictWord
from attnaudit.report.claim_page import claim_page
from attnaudit.report.verdicts import verdict_report

SCORE = Score("alignment", 0.97, (0.9, 1.0), 1.0, 4, 0, 0, 0.98, 0.1, "chance", 1.0)


def printed(content):
    text = io.StringIO()
    Console(file=text, width=10_000).print(content)
    return text.getvalue()


def lines(content):
    return [" ".join(line.split()) for line in printed(content).splitlines() if line.strip()]


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda c: c.name)
def test_the_page_of_a_claim_says_everything_it_knows_of_itself(claim):
    page = printed(claim_page(claim))
    words = (claim.name, claim.statement, claim.citation, claim.formula, claim.rule, claim.needs, claim.command)
    for text in (*words, *claim.decided_by, *claim.shown, *claim.reads):
        assert text in page
    assert all(f"{word.value}: {meaning}" in page for word, meaning in claim.meanings.items())


def test_verdicts_on_audits_are_by_model_and_all_others_by_claim():
    verdicts = [
        Verdict("kpca-values", "vit", VerdictWord.REFUTED, "r"),
        Verdict("mine", "vit", VerdictWord.SUPPORTED, "r"),
    ]
    audited = lines(verdict_report(verdicts, {}, audit=True))
    assert "Verdicts: vit" in audited
    assert {"kpca-values refuted r", "mine supported r"} <= set(audited)
    others = [Verdict("rpc-robust", name, VerdictWord.REFUTED, "r") for name in ("rpc2", "rpc4")]
    evaluated = lines(verdict_report(others, {}))
    assert "Verdicts: rpc-robust" in evaluated
    assert {"rpc2 refuted r", "rpc4 refuted r"} <= set(evaluated)


@pytest.mark.parametrize(
    ("claim", "audit", "kind"),
    [
        ("kpca-values", True, RecordKind.AUDIT),
        ("mine", True, RecordKind.AUDIT),
        ("ksvd-regularised", True, RecordKind.AUDIT),
        ("ksvd-regularised", False, RecordKind.TRAINING),
        ("jproj-convergence", False, RecordKind.TRAINING),
        ("rpc-robust", False, RecordKind.EVALUATION),
        ("gaussian-alignment", False, RecordKind.LABORATORY),
    ],
)
def test_words_are_explained_as_they_were_meant(claim, audit, kind):
    report = lines(verdict_report([Verdict(claim, "subject", VerdictWord.REFUTED, "r")], {claim: 0.975}, audit=audit))
    assert f"refuted: {MEANINGS[kind][VerdictWord.REFUTED]}." in report
    assert sum(line.startswith("refuted:") for line in report) == 1
    assert "at 97.50%, so that all hold" in report[-1]


def test_scores_are_shown_wherever_there_are_some():
    verdict = Verdict("gaussian-alignment", "linear", VerdictWord.SUPPORTED, "r", (SCORE,), (SCORE,))
    report = lines(verdict_report([verdict], {}))
    assert "alignment 0.98 0.1 chance 1 0.97 [0.90, 1.00] 1.00" in report
    assert "(alignment) 0.98 0.1 chance 1 0.97 [0.90, 1.00] 1.00" in report
    assert not any(
        "alignment" in line for line in lines(verdict_report([Verdict("rpc-robust", "x", VerdictWord.REFUTED, "")], {}))
    )


def test_a_ranking_needs_no_verdicts():
    report = lines(verdict_report([], {}, [Rank("vit", "kpca", 0.5, (SCORE,), VerdictWord.REFUTED)], audit=True))
    assert "kpca 0.5 0.97 [0.90, 1.00] refuted" in report
    assert f"refuted: {MEANINGS[RecordKind.AUDIT][VerdictWord.REFUTED]}." in report


def test_models_under_each_word_are_counted_where_there_are_several():
    verdicts = [Verdict("kpca-values", name, VerdictWord.REFUTED, "r") for name in ("a", "b")]
    assert "kpca-values 2" in lines(verdict_report(verdicts, {}, audit=True))
