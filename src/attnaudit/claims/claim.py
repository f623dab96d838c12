"""A published statement, in words and numbers, and how it is decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from attnaudit.errors import UsageError
from attnaudit.measures import REFERENCES, Measure, Reference, measure_named
from attnaudit.records.audit import AuditedModel
from attnaudit.records.head_table import head_table
from attnaudit.records.trials import Trials
from attnaudit.records.verdict import Score, Verdict, VerdictWord
from attnaudit.statistics.decisions import THRESHOLD, combined_word, word_of_score
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.scores import head_score, trial_score
from attnaudit.theories.base import Theory, guard_of
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES


class RecordKind(StrEnum):
    """What a claim is judged on: models of an audit, trainings, evaluations, or trials of a laboratory experiment."""

    AUDIT = "audit"
    TRAINING = "training"
    EVALUATION = "evaluation"
    LABORATORY = "laboratory"


_OF_HEADS = {
    VerdictWord.SUPPORTED: "the observed heads score like heads for which the claim is exactly true",
    VerdictWord.REFUTED: "above chance, but far from the claim",
    VerdictWord.INDISTINGUISHABLE: "no better than references in which the claim cannot be true",
    VerdictWord.NOT_IDENTIFIABLE: "these inputs or measures cannot tell the claim from chance",
    VerdictWord.NOT_MEASURABLE: "too many heads have no number, or what is needed was not computed",
    VerdictWord.INCONCLUSIVE: "the interval is too wide to decide",
}

#: What the words mean, by what a claim is judged on; a claim may have meanings of its own.
MEANINGS: Mapping[RecordKind, Mapping[VerdictWord, str]] = {
    RecordKind.AUDIT: _OF_HEADS,
    RecordKind.LABORATORY: _OF_HEADS,
    RecordKind.TRAINING: {
        VerdictWord.SUPPORTED: "these trainings do what is claimed",
        VerdictWord.REFUTED: "they do what the claim excludes",
        VerdictWord.INDISTINGUISHABLE: "no better than chance or the reference, although the effect would be visible",
        VerdictWord.NOT_IDENTIFIABLE: "these trainings cannot tell the claim from chance",
        VerdictWord.NOT_MEASURABLE: "what is needed was not measured",
        VerdictWord.INCONCLUSIVE: "too few trainings, or too much variation between them, to decide",
    },
    RecordKind.EVALUATION: {
        VerdictWord.SUPPORTED: "every claimed gain is there",
        VerdictWord.REFUTED: "a claimed gain is absent, or is a loss",
        VerdictWord.INDISTINGUISHABLE: "all claimed gains are absent",
        VerdictWord.NOT_IDENTIFIABLE: "no gain to explain is shown, or the attack cannot separate the networks",
        VerdictWord.NOT_MEASURABLE: "what is needed was not evaluated",
        VerdictWord.INCONCLUSIVE: "too few seeds, too much variation between them, or attacks that cannot be trusted",
    },
}
_COMMANDS = {
    RecordKind.AUDIT: "attnaudit audit MODEL --claims {name}",
    RecordKind.TRAINING: "attnaudit judge RUN… --claims {name}",
    RecordKind.EVALUATION: "attnaudit judge RUN… --claims {name}",
}


@dataclass(frozen=True)
class Terms:
    """What a claim is judged by: the score that counts as the claim, and the confidence level of every interval.

    `own` are measures, theories and references of the user's, which no registry has.
    """

    threshold: float = THRESHOLD
    level: float = CONFIDENCE
    own: tuple[Measure | Theory | Reference, ...] = ()

    def measure(self, name: str) -> Measure:
        """The measure of that name, the user's or ours."""
        own = (entry for entry in self.own if isinstance(entry, Measure) and entry.name == name)
        return next(own, None) or measure_named(name)

    @property
    def references(self) -> Mapping[str, Reference]:
        """All references by name."""
        return {**REFERENCES, **{entry.name: entry for entry in self.own if isinstance(entry, Reference)}}

    def guard(self, theory: str) -> str:
        """What a head needs to tell a theory from chance, in words."""
        theories = (*THEORIES.values(), *(entry for entry in self.own if isinstance(entry, Theory)))
        guards = {entry.name: guard_of(entry) for entry in theories} | {PRIMAL_SVD.name: PRIMAL_SVD.guard}
        return guards[theory].text


@dataclass(frozen=True)
class Claim:
    """One statement of one paper, and how it is decided.

    Without `decide` the common rule applies: each measure in `decided_by` is scored between its references (0: chance,
    1: the claim), and the word follows from the intervals of these scores.

    Args:
        name: how commands call it.
        statement: one sentence.
        citation: where it was made.
        formula: the same in mathematics.
        rule: in words, what supports and what refutes it.
        decided_by: the measures that decide, or for a rule of its own what it looks at, in words.
        shown: measures that are shown beside them and do not decide.
        theory: which theory predicts the values that an audit compares.
        reads: what it can be judged on.
        needs: which records it needs, in words.
        command: what judges it.
        meanings: what verdict words mean here, where that differs from `MEANINGS`.
        decide: a rule of its own, from all records of its kind to a verdict for each subject.
        intervals: of a rule of its own, how many intervals it decides by; they are widened to hold together.
    """

    name: str
    statement: str
    citation: str
    formula: str
    rule: str
    decided_by: tuple[str, ...]
    shown: tuple[str, ...] = ()
    theory: str = "kpca"
    reads: tuple[RecordKind, ...] = (RecordKind.AUDIT,)
    needs: str = "an audit of a model with its references"
    command: str = ""
    meanings: Mapping[VerdictWord, str] = field(default_factory=dict)
    decide: Callable[[Sequence[Any], Terms], list[Verdict]] | None = None
    intervals: Callable[[Sequence[Any]], int] | None = None

    def __post_init__(self) -> None:
        if not self.decided_by:
            raise UsageError(f"The claim {self.name!r} must say what it is decided by: decided_by is empty.")
        object.__setattr__(self, "meanings", {**MEANINGS[self.reads[0]], **self.meanings})
        object.__setattr__(self, "command", self.command or _COMMANDS[self.reads[0]].format(name=self.name))

    def judge(self, records: Sequence[Any], terms: Terms) -> list[Verdict]:
        """A verdict for each subject of the records, which are all of one kind that the claim reads."""
        if self.decide is not None:
            return self.decide(records, terms)
        if RecordKind.LABORATORY in self.reads:
            return self._judge_trials(records, terms)
        return self._judge_heads(records, terms)

    def count_intervals(self, records: Sequence[Any]) -> int:
        """How many intervals decide it on these records."""
        if self.intervals is not None:
            return self.intervals(records)
        if self.decide is not None:
            return 0
        if RecordKind.LABORATORY in self.reads:
            return sum(trials.measure in self.decided_by for trials in records)
        return len(records) * len(self.decided_by)

    def verdict(self, subject: str, scores: Sequence[Score], shown: Sequence[Score], terms: Terms) -> Verdict:
        """The common rule: what these scores come to."""
        word = combined_word([word_of_score(score, terms.threshold) for score in scores])
        reason = _reason(word, scores, terms.guard(self.theory))
        return Verdict(self.name, subject, word, reason, tuple(scores), tuple(shown))

    def _judge_heads(self, audits: Sequence[AuditedModel], terms: Terms) -> list[Verdict]:
        def scored(audit: AuditedModel, names: Sequence[str]) -> list[Score]:
            return [score(audit, name, self.theory, terms) for name in names]

        return [
            self.verdict(audit.model, scored(audit, self.decided_by), scored(audit, self.shown), terms)
            for audit in audits
        ]

    def _judge_trials(self, trials: Sequence[Trials], terms: Terms) -> list[Verdict]:
        def scored(subject: str, names: Sequence[str]) -> list[Score]:
            own = [trial for trial in trials if trial.subject == subject and trial.measure in names]
            return [
                trial_score(t.measure, np.array(t.observed), np.array(t.null), t.planted, level=terms.level)
                for t in own
            ]

        subjects = dict.fromkeys(trial.subject for trial in trials if trial.measure in self.decided_by)
        return [
            self.verdict(subject, scored(subject, self.decided_by), scored(subject, self.shown), terms)
            for subject in subjects
        ]


def score(audit: AuditedModel, measure: str, theory: str = "kpca", terms: Terms | None = None) -> Score:
    """The calibrated score of a measure on an audited model."""
    terms = terms or Terms()
    table = head_table(audit.rows, audit.model, measure, theory)
    return head_score(table, terms.measure(measure), level=terms.level, seed=audit.seed, references=terms.references)


def _reason(word: VerdictWord, scores: Sequence[Score], guard: str) -> str:
    """The deciding numbers, or why there are none."""
    if word is VerdictWord.NOT_IDENTIFIABLE:
        lost = max((s.unidentifiable for s in scores), default=0)
        if lost and not any(s.heads for s in scores):
            return f"none of {lost:,} heads has {guard}"
        return "no deciding measure tells planted heads from null ones"
    if word is VerdictWord.NOT_MEASURABLE:
        if all(s.heads + s.rejected == 0 for s in scores):
            return "the run has no references for it"
        worst = max(scores, key=lambda s: s.rejected)
        return f"{worst.rejected:,} of {worst.heads + worst.rejected:,} heads are rejected by {worst.measure}"
    return "; ".join(f"{s.measure} {_number(s)}" for s in scores if s.mean is not None and s.has_power)


def _number(score: Score) -> str:
    if score.interval is None:
        return f"{score.mean:.2f} (one input: no interval)"
    return f"{score.mean:.2f} [{score.interval[0]:.2f}, {score.interval[1]:.2f}]"
