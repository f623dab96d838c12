"""Scaled Attention is ahead of softmax attention over the first epochs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from attnaudit.attention.resolved import ResolvedAttention
from attnaudit.claims.claim import Claim, Terms
from attnaudit.claims.meanings import RecordKind
from attnaudit.display import counted, told_apart
from attnaudit.errors import UsageError
from attnaudit.records import json_file
from attnaudit.records.architecture import ATTENTION_FIELDS
from attnaudit.records.training import TrainingRun
from attnaudit.records.verdict import Finding, Verdict, VerdictWord
from attnaudit.statistics.decisions import decide_gain
from attnaudit.statistics.intervals import share_coarseness, student_interval

_EPOCHS, _LEAST_EPOCHS = 50, 10
#: Accuracies that were added up in another order differ in later digits.
_DIGITS = 12
#: The published gain of the scalar variant at the end of training: 73.02 against 72.18 %.
_PUBLISHED_GAIN = 0.0084


#: The trainings of one variant, by seed.
BySeed = Mapping[int, TrainingRun]


def _comparisons(trainings: Sequence[TrainingRun]) -> list[tuple[str, BySeed, BySeed]]:
    """Every variant of Scaled Attention, its trainings, and those of softmax attention with the same recipe."""
    groups: dict[str, dict[ResolvedAttention, dict[int, TrainingRun]]] = defaultdict(lambda: defaultdict(dict))
    for training in trainings:
        if not training.accuracies:
            continue
        attention = ResolvedAttention.of(training.recipe.model)
        if attention.is_softmax or attention.is_scaled:
            runs = groups[_setting(training)][attention]
            if training.seed in runs:
                raise UsageError(f"{training.path} repeats {runs[training.seed].path}: give one of them.")
            runs[training.seed] = training
    found = [
        (_words(attention), runs, softmax)
        for by_attention in groups.values()
        for baseline, softmax in by_attention.items()
        if baseline.is_softmax
        for attention, runs in by_attention.items()
        if attention.is_scaled
    ]
    names = told_apart([words for words, _, _ in found], [str(next(iter(runs.values())).path) for _, runs, _ in found])
    return [(name, runs, softmax) for name, (_, runs, softmax) in zip(names, found, strict=True)]


def _judge(trainings: Sequence[TrainingRun], terms: Terms) -> list[Verdict]:
    return [_verdict(variant, runs, softmax, terms.level) for variant, runs, softmax in _comparisons(trainings)]


def _setting(training: TrainingRun) -> str:
    """The data and everything in the recipe except attention, name and monitor, as a key."""
    recipe = json_file.plain(training.recipe)
    same = {name: value for name, value in recipe.items() if name not in ("name", "about", "monitor")}
    same["model"] = {name: value for name, value in recipe["model"].items() if name not in ATTENTION_FIELDS}
    return json.dumps([same, training.data], sort_keys=True)


def _words(attention: ResolvedAttention) -> str:
    """A variant: its form, and layers and options where they are not the defaults."""
    options = {"form": "alpha"} | json.loads(attention.options)
    more = [f"{name} {value}" for name, value in options.items() if name != "form"]
    layers = [] if attention.other is None else [f"layers {', '.join(map(str, attention.layers))}"]
    mixed = [f"{attention.name} elsewhere"] if attention.other == attention.name else []
    return ", ".join([attention.name, str(options["form"]), *layers, *mixed, *more])


def _verdict(variant: str, runs: BySeed, softmax: BySeed, level: float) -> Verdict:
    seeds = sorted(runs.keys() & softmax.keys())
    pairs = [(runs[seed].accuracies, softmax[seed].accuracies) for seed in seeds]
    epochs = min([_EPOCHS, *(len(accuracies) for pair in pairs for accuracies in pair)])
    gains = np.array([np.mean(ours[:epochs]) - np.mean(theirs[:epochs]) for ours, theirs in pairs])
    interval = student_interval(gains.round(_DIGITS), level, _coarseness([*runs.values(), *softmax.values()]))
    if len(seeds) < 2 or epochs < _LEAST_EPOCHS:
        common = f"{counted(len(seeds), 'seed')} and {counted(epochs, 'epoch')}" if seeds else "no seed"
        reason = f"{common} in common with softmax attention, but 2 seeds and {_LEAST_EPOCHS} epochs are needed"
        return Verdict(CLAIM.name, variant, VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS, reason)
    course = f"mean test accuracy over epochs 1 to {epochs} is {100 * gains.mean():+.2f} points"
    if interval is None:
        reason = f"{course} against softmax in each of {len(seeds)} seeds, without a spread to judge it by"
        return Verdict(CLAIM.name, variant, VerdictWord.UNDECIDED, Finding.TOO_FEW_INPUTS, reason)
    low, high = (100 * bound for bound in interval)
    reason = f"{course} [{low:+.2f}, {high:+.2f}] against softmax, {len(seeds)} seeds"
    return Verdict(CLAIM.name, variant, *decide_gain(interval, _PUBLISHED_GAIN), reason)


def _coarseness(trainings: Sequence[TrainingRun]) -> float:
    """How finely a difference of accuracies is known, from the size of the test half; 0 if a folder does not say it."""
    return max(share_coarseness(training.settings.test_examples) for training in trainings)


CLAIM = Claim(
    name="scaled-attention-converges-faster",
    statement="Scaled Attention reaches a given accuracy in fewer epochs than softmax attention.",
    citation="Teo & Nguyen 2024, Figures 3 and 4: 73.02 against 72.18 % top-1 at the end, ahead before",
    formula="softmax(QKᵀ/√d)(I - S)V with S learned, S = α softmax(KKᵀ/√d), or S exact",
    rule=(
        "The mean test accuracy over the first 50 epochs (fewer if a run has fewer, at least 10), less that of softmax "
        "attention in all layers, without options, by the same recipe, data and seed; Student's t over seeds, widened "
        "for several variants. Layers without Scaled Attention must have softmax attention. Supported if the interval "
        "lies above 0, refuted if it lies below 0 (a loss) or excludes the published gain of 0.84 points (no gain)."
    ),
    decided_by=("mean test accuracy over the first epochs, compared with softmax attention",),
    reads=(RecordKind.TRAINING,),
    decide=_judge,
    intervals=lambda trainings: len(_comparisons(trainings)),
    needs="runs with attention: scaled and with attention: softmax by the same recipe, at least two seeds of each",
)
