import pytest

from attnaudit.claims.registry import (
    CLAIMS,
    LABORATORY_CLAIMS,
    ROBUSTNESS_CLAIMS,
    TRAINING_CLAIMS,
    claims_named,
    statements,
)
from attnaudit.errors import UsageError
from attnaudit.gaussian.experiments.findings import Trials
from attnaudit.records.verdict import Word

ALIGNMENT = LABORATORY_CLAIMS["gaussian-alignment"]
CHANCE = (0.0, 0.1, 0.2)


def trials(*observed, measure="alignment", subject="linear, gaussian", null=CHANCE, planted=1.0):
    return Trials(subject, measure, observed, null, planted)


@pytest.mark.parametrize(
    ("observed", "word"),
    [
        ((0.99, 1.0, 0.98), Word.SUPPORTED),
        ((0.4, 0.41, 0.42), Word.REFUTED),
        ((0.05, 0.1, 0.12), Word.INDISTINGUISHABLE),
        ((0.5, 1.0), Word.INCONCLUSIVE),
        ((0.99,), Word.INCONCLUSIVE),
    ],
)
def test_repeated_trainings_come_to_a_word(observed, word):
    verdicts, _ = ALIGNMENT.verdicts([trials(*observed)])
    assert [verdict.word for verdict in verdicts] == [word]


def test_a_measure_that_chance_reaches_decides_nothing():
    verdicts, _ = ALIGNMENT.verdicts([trials(0.9, 0.91, null=(1.0, 0.0, 1.0, 0.0))])
    assert verdicts[0].word is Word.NOT_IDENTIFIABLE


def test_what_is_shown_beside_does_not_decide():
    verdicts, level = ALIGNMENT.verdicts([trials(0.99, 1.0, 0.98), trials(0.4, 0.4, 0.41, measure="readout_alignment")])
    assert [verdict.word for verdict in verdicts] == [Word.SUPPORTED]
    assert [score.measure for score in verdicts[0].shown] == ["readout_alignment"]
    assert level == pytest.approx(0.95)


def test_subjects_are_judged_apart_and_measures_together():
    claim = LABORATORY_CLAIMS["gaussian-finite-prompt"]
    rate = trials(0.5, 0.51, 0.49, measure="sampling_rate", null=(0.0, 0.01), planted=0.5)
    verdicts, level = claim.verdicts(
        [
            rate,
            trials(0.99, 0.98, 0.99),
            trials(0.1, 0.12, 0.09, subject="reference"),
            trials(1.0, 1.0, measure="other"),
        ]
    )
    assert [(verdict.model, verdict.word) for verdict in verdicts] == [
        ("linear, gaussian", Word.SUPPORTED),
        ("reference", Word.INDISTINGUISHABLE),
    ]
    assert len(verdicts[0].scores) == 2
    assert level == pytest.approx(1 - 0.05 / 3)


@pytest.mark.parametrize("claim", LABORATORY_CLAIMS.values(), ids=lambda c: c.name)
def test_every_laboratory_claim_is_complete(claim):
    assert claim.statement.endswith(".")
    assert "2026" in claim.citation
    assert claim.judged_by.startswith("attnaudit gaussian ")
    assert set(claim.deciding) <= {"alignment", "sampling_rate"}
    assert set(claim.shown) <= {"readout_alignment"}


def test_no_audit_judges_them():
    assert not set(CLAIMS) & set(LABORATORY_CLAIMS)
    kinds = (CLAIMS, LABORATORY_CLAIMS, TRAINING_CLAIMS, ROBUSTNESS_CLAIMS)
    assert set(statements()) == set().union(*kinds)
    with pytest.raises(UsageError, match="run attnaudit gaussian align"):
        claims_named(["gaussian-alignment"])
