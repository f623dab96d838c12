"""What a claim can be judged on, and what findings mean there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attnaudit.records.verdict import Finding
from attnaudit.statistics.decisions import LEAST_INPUTS


class RecordKind(StrEnum):
    """What a claim is judged on: models of an audit, trainings, evaluations, trials of the laboratory, or costs."""

    AUDIT = "audit"
    TRAINING = "training"
    EVALUATION = "evaluation"
    LABORATORY = "laboratory"
    COST = "cost"


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
    Finding.IMPOSSIBLE: "no network can have such heads",
    Finding.UNREALISABLE: "no projection of these inputs comes near it, whatever its weights",
    Finding.OTHER_NUMBERS: "the numbers are not those of the claim",
    **_UNDECIDED,
}
_OF_GAINS = {
    Finding.SHOWN: "every claimed gain is there",
    Finding.NO_GAIN: "a claimed gain is absent; smaller gains are not excluded",
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
        Finding.TOO_FEW_INPUTS: "too few trainings to decide, or no spread between them to decide by",
    },
    RecordKind.EVALUATION: {
        **_UNDECIDED,
        **_OF_GAINS,
        Finding.NO_GAIN: "a gain of the claimed size, or of one point where the paper gives no size, is absent; "
        "smaller gains are not excluded",
        Finding.NOT_IDENTIFIABLE: "there is no gain to explain, or the attack, or networks near chance, tell nothing "
        "apart",
        Finding.TOO_FEW_INPUTS: "too few seeds to decide, or no spread between them to decide by",
        Finding.MEASURES_DISAGREE: "evaluations of as many seeds and inputs say different things",
        Finding.TOO_WIDE: "too much variation between seeds, or attacks that cannot be trusted",
        Finding.NOT_MEASURED: "what is needed was not evaluated",
    },
    RecordKind.COST: {
        **_UNDECIDED,
        Finding.SHOWN: "every cost is what is claimed",
        Finding.OTHER_NUMBERS: "at least one cost is not what is claimed",
        Finding.TOO_FEW_INPUTS: "a time was measured once, or its repeats are all equal",
        Finding.NOT_MEASURED: "what is needed was not measured",
    },
}
