"""The jury gives every claim the records it reads, and widens intervals for those that must hold together."""

import pytest

from attnaudit.claims import Claim, Finding, RecordKind, Verdict, VerdictWord
from attnaudit.claims.jury import judge
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.trials import Trials

TRIALS = Trials("subject", "alignment", (0.9, 1.0), (0.0, 0.1), 1.0)


def audited(name):
    return AuditedModel(name, None, {}, Protocol.EXACT)


def claim(name, kind, intervals):
    """A claim whose verdicts say which subjects it saw, and on which terms."""

    def decide(records, terms):
        subjects = [getattr(record, "model", None) or record.subject for record in records]
        words = f"{terms.level:.4f} {terms.threshold} {terms.chance}"
        return [Verdict(name, subject, VerdictWord.REFUTED, Finding.LOSS, words) for subject in subjects]

    counted = (lambda records: intervals * len(records)) if intervals else None
    return Claim(name, "s", "c", "f", "r", ("x",), reads=(kind,), command="c", decide=decide, intervals=counted)


def test_each_claim_sees_the_records_it_reads():
    claims = [claim("heads", RecordKind.AUDIT, 1), claim("laboratory", RecordKind.LABORATORY, 1)]
    found = judge(claims, [audited("one"), TRIALS, audited("two")])
    assert [(v.claim, v.model) for v in found.verdicts] == [
        ("heads", "one"),
        ("heads", "two"),
        ("laboratory", "subject"),
    ]


def test_a_claim_that_reads_two_kinds_is_judged_on_both_apart():
    both = claim("both", RecordKind.AUDIT, 1)
    object.__setattr__(both, "reads", (RecordKind.AUDIT, RecordKind.LABORATORY))
    found = judge([both], [TRIALS, TRIALS, audited("one")])
    assert [(v.model, v.reason.split()[0]) for v in found.verdicts] == [
        ("one", "0.9500"), ("subject", "0.9750"), ("subject", "0.9750"),
    ]  # fmt: skip


def test_intervals_of_a_claim_hold_together_whatever_else_is_judged():
    claims = [
        claim("a", RecordKind.AUDIT, 3),
        claim("b", RecordKind.AUDIT, 2),
        claim("without intervals", RecordKind.AUDIT, 0),
        claim("laboratory", RecordKind.LABORATORY, 4),
    ]
    found = judge(claims, [audited("one"), audited("two"), TRIALS])
    level = {count: pytest.approx(1 - 0.05 / count) for count in (1, 4, 6)}
    assert found.levels == {"a": level[6], "b": level[4], "without intervals": level[1], "laboratory": level[4]}
    assert found.level == level[6]
    for own in claims:
        assert judge([own], [audited("one"), audited("two"), TRIALS]).levels == {own.name: found.levels[own.name]}


def test_threshold_and_chance_reach_the_claims():
    (verdict,) = judge([claim("a", RecordKind.AUDIT, 1)], [audited("one")], threshold=0.5, chance=0.1).verdicts
    assert verdict.reason == "0.9500 0.5 0.1"


def test_without_records_of_its_kind_a_claim_has_no_verdict():
    found = judge([claim("a", RecordKind.AUDIT, 1)], [TRIALS])
    assert (found.verdicts, found.level) == ((), 0.95)
