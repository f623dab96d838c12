"""The difference between two audits: heads are paired, and independent inputs are the sampling unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from attnaudit.audit.reduction import input_means
from attnaudit.errors import RunFolderError
from attnaudit.numerics.digest import digest
from attnaudit.records import json_file
from attnaudit.records.audit import AuditRun
from attnaudit.records.schema import OBSERVED
from attnaudit.records.verdict import VerdictWord
from attnaudit.statistics.huge import mean
from attnaudit.statistics.intervals import widened_level
from attnaudit.statistics.means import mean_interval

_HEAD = ["input", "layer", "head", "window", "theory"]


@dataclass(frozen=True)
class Change:
    """One measure of a pair of models: the mean of second minus first over `pairs` of heads, inputs weighted equally.

    `unpaired` counts heads that only the first or only the second run has, `missing` counts pairs with a missing
    number. Inputs of one group count as one. For a single input `interval` and `beyond_noise` are None.
    """

    models: tuple[str, str]
    measure: str
    theory: str
    mean: float | None
    interval: tuple[float, float] | None
    inputs: int
    pairs: int
    missing: int
    unpaired: tuple[int, int]

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the interval excludes 0."""
        return None if self.interval is None else self.interval[0] > 0 or self.interval[1] < 0


@dataclass(frozen=True)
class ChangedVerdict:
    """A claim whose word differs between the runs."""

    model: str
    claim: str
    before: VerdictWord
    after: VerdictWord


@dataclass(frozen=True)
class ChangedSetting:
    """A setting, version, model or set of inputs that differs between the runs."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class Difference:
    """Second run minus first; `level` is the confidence of each interval, so that all hold jointly with 95 %."""

    changes: tuple[Change, ...]
    verdicts: tuple[ChangedVerdict, ...]
    settings: tuple[ChangedSetting, ...]
    level: float


def difference(first: AuditRun, second: AuditRun) -> Difference:
    """Compare two audits.

    Raises:
        RunFolderError: the runs have no model, measure or head in common.
    """
    pairs = _model_pairs(first, second)
    tests = [
        (before, after, measure, theory)
        for before, after in pairs
        for measure, theory in _shared_measures(first, before, second, after)
    ]
    level = widened_level(len(tests))
    changes = [change for test in tests for change in _change(first, second, *test, level)]
    if not changes:
        raise RunFolderError(f"{first.path} and {second.path} cannot be compared: no head and measure occurs in both.")
    return Difference(tuple(changes), tuple(_verdicts(first, second, pairs)), tuple(_settings(first, second)), level)


def _model_pairs(first: AuditRun, second: AuditRun) -> list[tuple[str, str]]:
    """Models with the same name, or the only model of each run, whatever its name."""
    if len(first.models) == len(second.models) == 1:
        return [(first.models[0], second.models[0])]
    return [(model, model) for model in first.models if model in second.models]


def _shared_measures(first: AuditRun, before: str, second: AuditRun, after: str) -> list[tuple[str, str]]:
    def measured(run: AuditRun, model: str) -> dict[tuple[str, str], None]:
        found = run.rows.combinations("model", "reference", "measure", "theory")
        return {(m, theory): None for label, reference, m, theory in found if (label, reference) == (model, OBSERVED)}

    there = measured(second, after)
    return [pair for pair in measured(first, before) if pair in there]


def _change(
    first: AuditRun, second: AuditRun, before: str, after: str, measure: str, theory: str, level: float
) -> Iterator[Change]:
    left, right = _values(first, before, measure, theory), _values(second, after, measure, theory)
    both = left.join(right, keys=_HEAD, join_type="inner", right_suffix="_after")
    if not both.num_rows:
        return
    both = both.append_column("difference", pc.subtract(both["value_after"], both["value"]))
    usable = both.filter(pc.is_finite(both["difference"])).select(["input", "difference"])
    means = input_means(usable.rename_columns(["input", "value"]), {**second.groups, **first.groups})
    yield Change(
        models=(before, after),
        measure=measure,
        theory=theory,
        mean=mean(means) if len(means) else None,
        interval=mean_interval(means, level),
        inputs=len(means),
        pairs=usable.num_rows,
        missing=both.num_rows - usable.num_rows,
        unpaired=(left.num_rows - both.num_rows, right.num_rows - both.num_rows),
    )


def _values(run: AuditRun, model: str, measure: str, theory: str) -> pa.Table:
    rows = run.rows.where(*_HEAD, "value", model=model, measure=measure, theory=theory, reference=OBSERVED)
    for name in ("input", "theory"):  # dictionaries of two files cannot be joined
        rows = rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(pa.string()))
    return rows


def _verdicts(first: AuditRun, second: AuditRun, pairs: list[tuple[str, str]]) -> Iterator[ChangedVerdict]:
    def words(run: AuditRun) -> dict[tuple[str, str], VerdictWord]:
        return {(verdict.model, verdict.claim): verdict.word for verdict in run.verdicts}

    before, after = words(first), words(second)
    for old, new in pairs:
        for (model, claim), word in before.items():
            if model == old and after.get((new, claim), word) != word:
                yield ChangedVerdict(new, claim, word, after[new, claim])


def _settings(first: AuditRun, second: AuditRun) -> Iterator[ChangedSetting]:
    before, after = _facts(first), _facts(second)
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            yield ChangedSetting(name, before.get(name, "–"), after.get(name, "–"))


def _facts(run: AuditRun) -> dict[str, str]:
    """Settings, versions, models and inputs of a run, which could explain a difference."""
    identity = run.settings.identity
    facts: dict[str, Any] = {**json_file.plain(identity.settings), "attnaudit": run.settings.attnaudit}
    facts |= run.settings.versions
    facts["models"] = [f"{name} {fingerprint[:12]}" for name, fingerprint in identity.models]
    facts["inputs"] = f"{len(identity.inputs)} ({digest(identity.inputs, size=6)})"
    return {
        name: ", ".join(map(str, value)) if isinstance(value, list) else str(value) for name, value in facts.items()
    }
