"""The results of a robustness evaluation, as tables for the terminal and as plain rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TypeVar

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from attnaudit.records.evaluation import (
    Accuracy,
    ConditionKind,
    EvaluationScore,
    EvaluationSummary,
    MaskingCheck,
    Quantity,
)

Named = TypeVar("Named", Accuracy, EvaluationScore, MaskingCheck)

_TITLES = {quantity: f"{quantity.words[0].upper()}{quantity.words[1:]}" for quantity in Quantity} | {
    Quantity.MEAN_IOU: Quantity.MEAN_IOU.words
}
SCORES = "Scores [95 %, bootstrap over images]"
_TONES = {"pass": "green", "FAIL": "bold red", "not run": "dim"}
_UNDER = {
    ConditionKind.CLEAN: "of clean {examples}",
    ConditionKind.NOISE: "of noisy ones",
    ConditionKind.ATTACK: "under the strongest attack",
    ConditionKind.CORRUPTION: "of corrupted ones",
}
#: The same of networks that segment.
_SHOWN = {ConditionKind.CLEAN: "on clean images", ConditionKind.CORRUPTION: "on corrupted ones"}
#: The number of models side by side in 80 columns, and in a wide table; for more, checks are only counted.
_ABREAST, _WIDE = 2, 4


def robustness_report(summary: EvaluationSummary, *, wide: bool = False) -> RenderableType:
    """The tables of accuracies, scores and checks."""
    summary = with_short_names(summary)
    models = models_of(summary)
    abreast = _WIDE if wide else _ABREAST
    parts: list[RenderableType] = [Text(text, style="bold") for text in robustness_answers(summary)]
    for title, own in tables(summary):
        parts += _side_by_side(title, "condition", own, models, abreast)
    if summary.scores:
        parts += _side_by_side(SCORES, "score", score_lines(summary), models, abreast)
    if summary.checks:
        parts.append(_checks(summary) if len(models) <= _WIDE else _counted_checks(summary))
    return Group(*parts)


def robustness_answers(summary: EvaluationSummary) -> list[str]:
    """How often models are right, at worst under attack and on average under corruption; a sentence for each of a few.

    Models that were evaluated on outliers alone have none: there is nothing to be right about.
    """
    models = models_of(summary)
    found = [_answer(summary, model) for model in models] if len(models) <= _WIDE else [_range_answer(summary, models)]
    return [text for text in found if text]


def _answer(summary: EvaluationSummary, model: str) -> str:
    shares = _shares(summary, model)
    if summary.segments:
        parts = [f"{share:.1%} {_SHOWN[kind]}" for kind, share in shares.items()]
        return f"{model} has an mIoU of {_listed(parts)}." if parts else ""
    attacked = summary.of(model, ConditionKind.ATTACK)
    strongest = min(attacked, key=lambda entry: entry.accuracy).condition.words if attacked else ""
    parts = [f"{share:.1%} {_UNDER[kind].format(examples=summary.examples)}" for kind, share in shares.items()]
    text = _listed(parts).replace("the strongest attack", f"the strongest attack ({strongest})")
    failed = [check.name for check in summary.checks if check.model == model and check.word == "FAIL"]
    doubt = f"; but the attacks cannot be trusted ({', '.join(failed)} failed)" if failed else ""
    return f"{model} is right on {text}{doubt}." if parts else ""


def _range_answer(summary: EvaluationSummary, models: Sequence[str]) -> str:
    found = [_shares(summary, model) for model in models]
    parts = []
    for kind, words in (_SHOWN if summary.segments else _UNDER).items():
        if own := [shares[kind] for shares in found if kind in shares]:
            parts.append(f"{min(own):.1%} to {max(own):.1%} {words.format(examples=summary.examples)}")
    said = "have an mIoU of" if summary.segments else "are right on"
    return f"{len(models)} models {said} {_listed(parts)}." if parts else ""


def _shares(summary: EvaluationSummary, model: str) -> dict[ConditionKind, float]:
    """How often a model is right: clean, under its strongest attack, and on average under corruption or noise."""
    of_kind = {kind: [entry.accuracy for entry in summary.of(model, kind)] for kind in _UNDER}
    return {
        kind: min(values) if kind is ConditionKind.ATTACK else fmean(values)
        for kind, values in of_kind.items()
        if values
    }


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def with_short_names(summary: EvaluationSummary) -> EvaluationSummary:
    """The same summary, with the common folder removed from the names of the models."""
    models = models_of(summary)
    folders = {model.rpartition("/")[0] for model in models}
    if len(models) < 2 or len(folders) > 1:
        return summary

    def short(entries: Sequence[Named]) -> tuple[Named, ...]:
        return tuple(replace(entry, model=entry.model.rpartition("/")[2]) for entry in entries)

    return replace(
        summary,
        accuracies=short(summary.accuracies),
        scores=short(summary.scores),
        checks=short(summary.checks),
    )


def tables(summary: EvaluationSummary) -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """A title and lines for each quantity that was measured."""
    return [(_table_title(own), lines(own)) for own in map(summary.only, summary.quantities)]


def _table_title(summary: EvaluationSummary) -> str:
    """Of a summary with one quantity: what it is, of how many images, and how many classes are missing from it."""
    if not summary.accuracies:
        return "Accuracy"
    first, missing = summary.accuracies[0], max(entry.missing for entry in summary.accuracies)
    title = f"{_TITLES[first.quantity]} on {first.images:,} {summary.examples} [95 %]"
    return f"{title}, without {missing} of the classes, which no pixel has" if missing else title


def lines(summary: EvaluationSummary) -> list[tuple[str, list[str]]]:
    """Each condition and the accuracy of every model; the severities of a corruption are one line."""
    grouped: dict[str, dict[str, list[Accuracy]]] = {}
    for entry in summary.accuracies:
        own = entry.condition
        words = own.name if own.kind is ConditionKind.CORRUPTION else own.words
        grouped.setdefault(words, {}).setdefault(entry.model, []).append(entry)
    models = models_of(summary)
    return [
        (_title(words, cells[models[0]]), [_cell(cells[model]) for model in models]) for words, cells in grouped.items()
    ]


def models_of(summary: EvaluationSummary) -> list[str]:
    """The models, in the order of the command."""
    return list(dict.fromkeys(entry.model for entry in summary.accuracies))


def accuracy_rows(summary: EvaluationSummary) -> list[dict[str, object]]:
    """Every accuracy with its interval, for CSV."""
    return [
        {
            "model": entry.model,
            "kind": entry.condition.kind.value,
            "name": entry.condition.name,
            "strength": entry.condition.strength,
            "quantity": entry.quantity.value,
            "missing_classes": entry.missing,
            "norm": entry.condition.norm,
            "steps": entry.condition.steps,
            "images": entry.images,
            "right": entry.right,
            "accuracy": entry.accuracy,
            "low": None if entry.interval is None else entry.interval[0],
            "high": None if entry.interval is None else entry.interval[1],
            "perturbation": entry.perturbation,
            "seconds": entry.seconds,
        }
        for entry in summary.accuracies
    ]


def _title(words: str, entries: Sequence[Accuracy]) -> str:
    first = entries[0].condition
    if first.kind is ConditionKind.CORRUPTION:
        severities = ", ".join(f"{entry.condition.strength:.0f}" for entry in entries)
        return f"{words}, severity {severities}" if len(entries) == 1 else f"{words}, mean of severities {severities}"
    return words if first.norm in (None, "max") else f"{words} ({first.norm})"


def _cell(entries: Sequence[Accuracy]) -> str:
    if len(entries) > 1:  # the same images several times: no binomial interval
        return f"{fmean(entry.accuracy for entry in entries):.1%}"
    (entry,) = entries
    ends = "" if entry.interval is None else " [{:.1%}, {:.1%}]".format(*entry.interval)
    return f"{entry.accuracy:.1%}{ends}"


def _side_by_side(
    title: str, corner: str, lines: Sequence[tuple[str, list[str]]], models: Sequence[str], abreast: int
) -> Iterator[Table]:
    """Lines with a cell for every model, a few models at a time."""
    for place in range(0, len(models), abreast):
        table = Table(title=None if place else Text(title), title_justify="left", box=box.SIMPLE_HEAD)
        table.add_column(corner)
        for model in models[place : place + abreast]:
            table.add_column(Text(model), justify="right")
        for words, cells in lines:
            table.add_row(Text(words), *cells[place : place + abreast])
        yield table


def score_lines(summary: EvaluationSummary) -> list[tuple[str, list[str]]]:
    """Each score and its value for every model."""
    models, cells = models_of(summary), {(score.name, score.model): score for score in summary.scores}
    names = dict.fromkeys(score.name for score in summary.scores)
    return [(name, [_score(cells.get((name, model))) for model in models]) for name in names]


def _score(score: EvaluationScore | None) -> str:
    if score is None:
        return "–"
    ends = "" if score.interval is None else " [{:.3f}, {:.3f}]".format(*score.interval)
    return f"{score.value:.3f}{ends}"


def _checks(summary: EvaluationSummary) -> Table:
    table = Table(title="Can the attacks be trusted?", title_justify="left", box=box.SIMPLE_HEAD)
    several = len(models_of(summary)) > 1
    for name in (*(("model",) if several else ()), "check", "", "found"):
        table.add_column(name)
    for check in summary.checks:
        subject = (Text(check.model),) if several else ()
        table.add_row(*subject, check.name, Text(check.word, _TONES[check.word]), Text(check.finding))
    return table


def _counted_checks(summary: EvaluationSummary) -> Table:
    """The number of models that pass each check, and the names of those that fail."""
    table = Table(title="Can the attacks be trusted?", title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("check")
    for word, tone in _TONES.items():
        table.add_column(Text(word, tone), justify="right")
    table.add_column("fails for")
    for name in dict.fromkeys(check.name for check in summary.checks):
        own = [check for check in summary.checks if check.name == name]
        counts = [str(sum(check.word == word for check in own)) for word in _TONES]
        table.add_row(name, *counts, Text(", ".join(check.model for check in own if check.word == "FAIL")))
    return table
