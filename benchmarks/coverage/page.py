"""The results as a page."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from benchmarks.coverage.result import NOT_REACHED, SLOW, Result

COUNTS = ("expected", "captured", "refused", "listed as no attention", "missed", "in runs that crash")
#: Reasons of layers that are no softmax attention over tokens.
NOT_OVER_TOKENS = (
    "over channels instead of tokens",
    "(linear attention)",
    "scores come from a linear layer",
    "scores come from a convolution",
    "across the inputs of a batch",
    "keys are parameters",
)


def page(results: Sequence[Result], introduction: str) -> str:
    """Totals by library, then reasons, then what was missed, then every model."""
    measured = [result for result in results if result.measured and result.expected]
    parts = [introduction.strip(), _versions(measured), "## By library", _totals(results), _reached(results)]
    parts += ["## Why layers are refused", _reasons(measured)]
    parts += ["## Listed as no attention", _named(measured, "listed"), "## Missed", _named(measured, "missed")]
    parts += ["## Crashed", _crashed(measured)]
    parts += ["## Attention weights against the model's", _weights(measured)]
    for library in dict.fromkeys(result.library for result in measured):
        parts += [f"## {library}", _models([result for result in measured if result.library == library])]
    parts += ["## Not measured", _not_measured(results)]
    return "\n\n".join(parts) + "\n"


def _versions(results: Sequence[Result]) -> str:
    """What the models of each library were measured with."""
    counts = Counter((result.library, result.versions) for result in results)
    lines = [f"- {library}: {versions} ({count:,} runs)" for (library, versions), count in counts.items()]
    return "\n".join(["Measured with", "", *lines])


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def _totals(results: Sequence[Result]) -> str:
    header = ("library", "runs", "model types", *COUNTS, "share captured")
    libraries = dict.fromkeys(result.library for result in results)
    groups = [(library, [result for result in results if result.library == library]) for library in libraries]
    return _table(header, [_total(name, group) for name, group in [*groups, ("**all**", results)]])


def _reached(results: Sequence[Result]) -> str:
    count = sum(result.not_run != NOT_REACHED for result in results)
    rest = len(results) - count
    end = f"; {rest:,} were not reached" if rest else ""
    return f"{count:,} pairs of model and implementation were tried{end}. What was not measured is listed at the end."


def _total(name: str, results: Sequence[Result]) -> tuple[object, ...]:
    measured = [result for result in results if result.measured and result.expected]
    return (
        name,
        len(measured),
        len({(result.library, result.model) for result in measured}),
        *(sum(column) for column in zip(*map(_counts, measured), strict=True)),
        _share(measured),
    )


def _counts(result: Result) -> tuple[int, ...]:
    crashed = result.expected if result.crashed else 0
    return result.expected, result.captured, result.refusals, len(result.listed), len(result.missed), crashed


def _share(results: Sequence[Result]) -> str:
    """Captured calls among all but those that are no softmax attention over tokens."""
    others = sum(len(result.listed) for result in results)
    others += sum(count for result in results for _, reason, count in result.refused if _is_other(reason))
    share = sum(result.captured for result in results) / max(sum(result.expected for result in results) - others, 1)
    return f"{100 * share:.1f} %"


def _is_other(reason: str) -> bool:
    return any(words in reason for words in NOT_OVER_TOKENS)


def _reasons(results: Sequence[Result]) -> str:
    models: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for result in results:
        for _, reason, count in result.refused:
            models[_general(reason)][f"{result.library} {result.model}"] += count
    rows = [
        (reason, sum(names.values()), ", ".join(f"{name} ({count})" for name, count in names.items()))
        for reason, names in sorted(models.items(), key=lambda entry: -sum(entry[1].values()))
    ]
    return _table(("reason", "layers", "models (layers)"), rows) if rows else "None is."


def _general(reason: str) -> str:
    """The reason without the numbers of one layer."""
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", reason).replace("|", "\\|")


def _named(results: Sequence[Result], kind: str) -> str:
    """The softmaxes of a kind by model, blocks of the same form once."""
    lines = []
    for result in results:
        calls = Counter(re.sub(r"(?<=\.)\d+", "N", call) for call in getattr(result, kind))
        if calls:
            lines.append(f"- {result.name}: {'; '.join(f'{call} ({count})' for call, count in calls.items())}")
    return "\n".join(lines) or "None."


def _crashed(results: Sequence[Result]) -> str:
    return "\n".join(f"- {result.name}: {result.crashed}" for result in results if result.crashed) or "None."


def _weights(results: Sequence[Result]) -> str:
    compared = sum(result.compared for result in results)
    if not compared:
        return "None was compared."
    worst = max(results, key=lambda result: result.difference)
    returned = [result for result in results if result.returned]
    text = (
        f"Of {compared:,} captured calls both are known; the largest difference is {worst.difference:.1e} "
        f"({worst.name}), and the largest replay error {max(result.replay_error for result in results):.1e}."
    )
    if returned:
        worst = max(returned, key=lambda result: result.returned_difference)
        text += (
            f" Of the attention that transformers returns itself (`output_attentions`, "
            f"{sum(result.returned for result in returned):,} tensors of {len(returned)} types), "
            f"{sum(result.returned_found for result in returned):,} are among the captured heads, "
            f"with a largest difference of {worst.returned_difference:.1e} ({worst.name})."
        )
    single = ", ".join(dict.fromkeys(f"{result.library} {result.model}" for result in results if result.inputs == 1))
    return f"{text}\n\nMeasured with one input, since two are packed into one row: {single or 'none'}."


def _models(results: Sequence[Result]) -> str:
    """One row for implementations with the same numbers."""
    rows: dict[tuple[object, ...], list[Result]] = defaultdict(list)
    for result in results:
        rows[result.model, *_counts(result)].append(result)
    header = ("model", "implementation", *COUNTS, "weights differ by")
    return _table(
        header,
        (
            (
                key[0],
                ", ".join(result.implementation for result in group),
                *key[1:],
                f"{max(result.difference for result in group):.0e}" if any(result.compared for result in group) else "",
            )
            for key, group in rows.items()
        ),
    )


def _not_measured(results: Sequence[Result]) -> str:
    """Names only: the reasons are errors of settings and inputs that do not fit together."""
    parts = [
        ("No attention runs in", [r for r in results if r.measured and not r.expected and not r.crashed]),
        ("Part of other models, or without this implementation", [r for r in results if r.unsupported]),
        ("Slow, so that one implementation, or none, was run", [r for r in results if r.not_run and SLOW in r.not_run]),
        ("Not reached", [r for r in results if r.not_run == NOT_REACHED]),
        (
            "Settings or inputs not found",
            [r for r in results if r.not_run and SLOW not in r.not_run and r.not_run != NOT_REACHED],
        ),
    ]
    return "\n\n".join(
        f"{title} ({len(group)}): {', '.join(dict.fromkeys(f'{r.library} {r.model}' for r in group))}."
        for title, group in parts
        if group
    )
