"""The study's numbers beside ours, by hand."""

from dataclasses import dataclass

import pytest

from attnaudit.claims.registry import CLAIMS
from attnaudit.claims.study_similarity import TOLERANCE
from attnaudit.papers.published_tables import TABLE1
from attnaudit.protocol import Protocol
from attnaudit.records.audit import AuditedModel
from attnaudit.records.audit_summary import Statistic
from attnaudit.statistics.decisions import LEAST_INPUTS

MODEL = "vit_tiny_patch16_224"
PUBLISHED = {name: own[0] for name, own in TABLE1[MODEL].items()}
MEASURES = {"matched_cosine_mean": "MOC", "linear_cka": "LCKA", "kernel_cka": "KCKA"}


@dataclass(frozen=True)
class Counted:
    """Heads of which only the number of inputs is known."""

    inputs: int

    def means(self, group):
        return self


def judged(inputs=LEAST_INPUTS, protocol=Protocol.PAPER, model=MODEL, **numbers):
    """The verdict on the published numbers, or on these in their place; None is a measure without a number."""
    ours = {name: PUBLISHED[column] for name, column in MEASURES.items()} | numbers
    others = dict.fromkeys(("direct_cosine_mean", "direct_cosine_max", "matched_cosine_max"), 0.0)
    observed = {name: Statistic(own, own, own, own, None, None, 36, {}) for name, own in (others | ours).items()}
    return CLAIMS["study-similarity"].decide([AuditedModel(model, Counted(inputs), observed, protocol)], None)


def test_the_published_numbers_repeat_within_the_tolerance():
    for change, word in ((0.9, "supported"), (1.1, "refuted (other numbers)")):
        (verdict,) = judged(kernel_cka=PUBLISHED["KCKA"] + change * TOLERANCE)
        assert verdict.words == word, change


@pytest.mark.parametrize(
    ("how", "words", "missing"),
    [
        ({"kernel_cka": None}, "undecided (not measured)", "the run has no number for KCKA"),
        ({"inputs": LEAST_INPUTS - 1}, "undecided (too few inputs)", "7 independent inputs, and 8 are needed"),
        ({"model": "another"}, "undecided (not measured)", "the study has no row for this model"),
    ],
)
def test_what_is_missing_decides_nothing(how, words, missing):
    (verdict,) = judged(**how)
    assert (verdict.words, verdict.missing) == (words, missing)


def test_only_the_convention_of_the_study_is_judged():
    assert judged(protocol=Protocol.EXACT) == []
