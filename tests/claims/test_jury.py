"""The jury gives every claim the records it reads, and widens intervals for those that must hold together."""

import pytest

from attnaudit.claims import Claim, RecordKind, Verdict, VerdictWord
from attnaudit.claims.jury import judge
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.trials import Trials

TRIALS = Trials("subject", "alignment", (0.9, 1.0), (0.0, 0.1), 1.0)


def audited(name):
    return AuditedModel(name, None, {}, Protocol.EXACT)


def claim(name, kind, intervals):
    """A claim whose verdicts say which subjects it saw, and at which level and threshold."""

    def decide(records, terms):
        subjects = [getattr(record, "model", None) or record.subject for record in records]
        return [
            Verdict(name, subject, VerdictWord.REFUTED, f"{terms.level:.4f} {terms.threshold}") for subject in subjects
        ]

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


def test_intervals_of_all_claims_about_audits_hold_together_and_of_any_other_claim_its_own():
    claims = [
        claim("a", RecordKind.AUDIT, 3),
        claim("b", RecordKind.AUDIT, 2),
        claim("without intervals", RecordKind.AUDIT, 0),
        claim("laboratory", RecordKind.LABORATORY, 4),
    ]
    found = judge(claims, [audited("one"), audited("two"), TRIALS])
    shared, own = pytest.approx(1 - 0.05 / 10), pytest.approx(1 - 0.05 / 4)
    assert found.levels == {"a": shared, "b": shared, "without intervals": shared, "laboratory": own}
    assert found.level == shared


def test_the_threshold_reaches_the_claims():
    (verdict,) = judge([claim("a", RecordKind.AUDIT, 1)], [audited("one")], threshold=0.5).verdicts
    assert verdict.reason == "0.9500 0.5"


def test_without_records_of_its_kind_a_claim_has_no_verdict():
    found = judge([claim("a", RecordKind.AUDIT, 1)], [TRIALS])
    assert (found.verdicts, found.level) == ((), 0.95)
