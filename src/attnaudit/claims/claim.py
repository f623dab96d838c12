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
from attnaudit.records.verdict import Finding, HeadScore, Score, Verdict, VerdictWord
from attnaudit.statistics.decisions import CHANCE, LEAST_INPUTS, THRESHOLD, combine, decide_score, decides
from attnaudit.statistics.intervals import CONFIDENCE
from attnaudit.statistics.scores import Bounds, head_score, trial_score
from attnaudit.theories.base import Theory, guard_of
from attnaudit.theories.registry import PRIMAL_SVD, THEORIES


class RecordKind(StrEnum):
    """What a claim is judged on: models of an audit, trainings, evaluations, or trials of a laboratory experiment."""

    AUDIT = "audit"
    TRAINING = "training"
    EVALUATION = "evaluation"
    LABORATORY = "laboratory"


_UNDECIDED = {
    Finding.TOO_FEW_INPUTS: f"fewer than {LEAST_INPUTS} independent inputs decide nothing",
    Finding.TOO_WIDE: "the interval is too wide to decide",
    Finding.NOT_IDENTIFIABLE: "these inputs or measures cannot tell the claim from chance",
    Finding.MEASURES_DISAGREE: "one measure supports the claim, another is too uncertain",
    Finding.NOT_MEASURED: "what is needed was not computed, or too many heads have no number",
}
_OF_HEADS = {
    Finding.IN_ALL_HEADS: "every head scores like one for which the claim is exactly true",
    Finding.IN_SOME_HEADS: "these heads score like ones for which the claim is exactly true, the others do not",
    Finding.ON_AVERAGE: "the mean over heads is that of heads for which the claim is exactly true",
    Finding.SHOWN: "the numbers are those of the claim",
    Finding.PARTIAL: "closer to the claim than chance, but far from it",
    Finding.AT_CHANCE: "not clearly closer to the claim than chance",
    Finding.BELOW_CHANCE: "farther from the claim than chance",
    Finding.IMPOSSIBLE: "impossible for any network, by a theorem",
    Finding.UNREALISABLE: "no projection of these inputs comes near it, whatever its weights",
    Finding.OTHER_NUMBERS: "the numbers are not those of the claim",
    **_UNDECIDED,
}
_OF_GAINS = {
    Finding.SHOWN: "every claimed gain is there",
    Finding.NO_GAIN: "a claimed gain is absent: smaller gains than the claimed one are not excluded",
    Finding.LOSS: "there is a loss where a gain is claimed",
}

#: What findings mean, by what a claim is judged on; a claim may have meanings of its own.
MEANINGS: Mapping[RecordKind, Mapping[Finding, str]] = {
    RecordKind.AUDIT: _OF_HEADS,
    RecordKind.LABORATORY: {
        **_OF_HEADS,
        Finding.ON_AVERAGE: "the heads are those that the theory predicts",
        Finding.PARTIAL: "closer to the theory than chance, but far from it",
        Finding.AT_CHANCE: "no closer to the theory than chance",
        Finding.BELOW_CHANCE: "farther from the theory than chance",
        Finding.TOO_FEW_INPUTS: "one repetition decides nothing",
    },
    RecordKind.TRAINING: {
        **_UNDECIDED,
        **_OF_GAINS,
        Finding.SHOWN: "these trainings do what is claimed",
        Finding.IMPOSSIBLE: "they do what the claim excludes",
        Finding.IN_BETWEEN: "they do neither what is claimed nor what it excludes",
        Finding.TOO_FEW_INPUTS: "too few trainings to decide",
    },
    RecordKind.EVALUATION: {
        **_UNDECIDED,
        **_OF_GAINS,
        Finding.NOT_IDENTIFIABLE: "there is no gain to explain, or the attack cannot separate the networks",
        Finding.TOO_FEW_INPUTS: "too few seeds to decide",
        Finding.TOO_WIDE: "too much variation between seeds, or attacks that cannot be trusted",
        Finding.NOT_MEASURED: "what is needed was not evaluated",
    },
}
_COMMANDS = {
    RecordKind.AUDIT: "attnaudit audit MODEL --claims {name}",
    RecordKind.TRAINING: "attnaudit judge RUN… --claims {name}",
    RecordKind.EVALUATION: "attnaudit judge RUN… --claims {name}",
}


@dataclass(frozen=True)
class Terms:
    """What a claim is judged by: the scores that count as the claim and as chance, and the confidence of intervals.

    `own` are measures, theories and references of the user's, which no registry has.
    """

    threshold: float = THRESHOLD
    chance: float = CHANCE
    level: float = CONFIDENCE
    own: tuple[Measure | Theory | Reference, ...] = ()

    def measure(self, name: str) -> Measure:
        """The measure of that name, the user's or ours."""
        own = (entry for entry in self.own if isinstance(entry, Measure) and entry.name == name)
        return next(own, None) or measure_named(name)

    @property
    def references(self) -> Mapping[str, Reference]:
        """All references by name, the user's first."""
        return {**{entry.name: entry for entry in self.own if isinstance(entry, Reference)}, **REFERENCES}

    def guard(self, theory: str) -> str:
        """What a head needs to tell a theory from chance, in words."""
        theories = (*THEORIES.values(), *(entry for entry in self.own if isinstance(entry, Theory)))
        guards = {entry.name: guard_of(entry) for entry in theories} | {PRIMAL_SVD.name: PRIMAL_SVD.guard}
        return guards[theory].text


@dataclass(frozen=True)
class Claim:
    """One statement of one paper, and how it is decided.

    Without `decide` the common rule applies: each measure in `decided_by` is scored between its references (0: chance,
    1: the claim), and the word follows from the intervals of these scores, of all heads and of each by itself.

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
        limits: what no verdict on it says.
        on_request: whether it must be named to be judged, because what it needs takes long.
        meanings: what findings mean here, where that differs from `MEANINGS`.
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
    limits: str = ""
    on_request: bool = False
    meanings: Mapping[Finding, str] = field(default_factory=dict)
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
        return len(self.decided_by)

    def verdict(self, subject: str, scores: Sequence[Score], shown: Sequence[Score], terms: Terms) -> Verdict:
        """The common rule: what these scores come to, for all heads and for each by itself."""
        least = 2 if RecordKind.LABORATORY in self.reads else LEAST_INPUTS
        word, finding = combine([decide_score(s, terms.threshold, terms.chance, least=least) for s in scores])
        heads = _Heads.of([score for score in scores if decides(score, least)])
        if heads.satisfying:
            word = VerdictWord.SUPPORTED
            finding = Finding.IN_ALL_HEADS if len(heads.satisfying) == len(heads.all) else Finding.IN_SOME_HEADS
        reason = _reason(finding, scores, heads, terms.guard(self.theory), least)
        return Verdict(
            self.name,
            subject,
            word,
            finding,
            reason,
            tuple(scores),
            tuple(shown),
            len(heads.satisfying),
            len(heads.all),
        )

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


@dataclass(frozen=True)
class _Heads:
    """The heads that every deciding measure has, those that satisfy the claim or are above chance by all of them."""

    all: list[HeadScore]
    satisfying: list[HeadScore]
    above_chance: list[HeadScore]

    @staticmethod
    def of(scores: Sequence[Score]) -> _Heads:
        by_head = [{(own.layer, own.head): own for own in score.heads} for score in scores]
        common = sorted(set.intersection(*map(set, by_head))) if by_head else []
        # A head is as good as the measure that says least of it.
        worst = [min((heads[name] for heads in by_head), key=lambda own: own.score.mean) for name in common]
        return _Heads(
            worst,
            [own for own, name in zip(worst, common, strict=True) if all(heads[name].satisfies for heads in by_head)],
            [
                own
                for own, name in zip(worst, common, strict=True)
                if all(heads[name].above_chance for heads in by_head)
            ],
        )

    def __str__(self) -> str:
        if not self.all:
            return ""
        best = max(self.all, key=lambda own: own.score.mean)
        counts = (
            f"{len(self.satisfying)} of {len(self.all)} heads satisfy it, {len(self.above_chance)} are above chance"
        )
        return f"{counts}; the best is layer {best.layer}, head {best.head}, whose lowest score is {best.score}"


def score(audit: AuditedModel, measure: str, theory: str = "kpca", terms: Terms | None = None) -> Score:
    """The score of a measure on an audited model."""
    terms = terms or Terms()
    table = head_table(audit.rows, audit.model, measure, theory, audit.groups)
    bounds = Bounds(terms.threshold, terms.chance, terms.level)
    return head_score(table, terms.measure(measure), bounds, terms.references)


def _reason(finding: Finding, scores: Sequence[Score], heads: _Heads, guard: str, least: int) -> str:
    """The deciding numbers, or why there are none."""
    if finding is Finding.NOT_IDENTIFIABLE:
        lost = max((s.unidentifiable for s in scores), default=0)
        if lost and not any(s.informative for s in scores):
            return f"none of {lost:,} heads has {guard}"
        return "no deciding measure tells planted heads from null ones"
    if finding is Finding.NOT_MEASURED:
        if all(s.informative + s.rejected == 0 for s in scores) or all(s.null is None for s in scores):
            return "the run has no references for it"
        worst = max(scores, key=lambda s: s.rejected)
        return f"{worst.rejected:,} of {worst.informative + worst.rejected:,} heads are rejected by {worst.measure}"
    numbers = "scores: " + "; ".join(f"{s.measure} {s.score}" for s in scores if s.score is not None)
    if finding is Finding.TOO_FEW_INPUTS:
        inputs = max(s.inputs for s in scores)
        numbers = f"{inputs} inputs, and {least} are needed. {numbers[0].upper()}{numbers[1:]}"
    return ". ".join(part for part in (numbers, str(heads)) if part)
