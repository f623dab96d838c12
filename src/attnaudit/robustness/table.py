"""The results, one row per model, condition and image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnaudit.protocol import Protocol
from attnaudit.records.evaluation import Condition, ConditionKind
from attnaudit.robustness.outcome import Outcome

#: Raised when the meaning of a number changes, so that older parts are not taken for newer ones.
VERSION = 2
NAME = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("model", NAME),
        pa.field("protocol", NAME),
        pa.field("kind", NAME),  # clean, corruption, attack, outliers, check
        pa.field("name", NAME),
        pa.field("strength", pa.float64()),  # severity of a corruption, ε of an attack
        pa.field("norm", NAME),  # in which ε is measured
        pa.field("steps", pa.int32()),
        pa.field("image", pa.int32()),  # its place in the data set
        pa.field("label", pa.int32()),  # null for outliers
        pa.field("predicted", pa.int32()),
        pa.field("correct", pa.bool_()),  # null for outliers; of the check `gradient`, whether the loss rose
        pa.field("confidence", pa.float32()),  # the largest probability
        pa.field("perturbation", pa.float32()),  # max |δ| in pixels, null unless attacked
        pa.field("seconds", pa.float32()),  # its share of the batch's time
    ]
)


def rows(
    model: str,
    protocol: Protocol,
    condition: Condition,
    places: list[int],
    labels: list[int],
    outcome: Outcome,
    seconds: float,
) -> pa.Table:
    """The rows of a batch."""
    count, judged = len(places), condition.kind is not ConditionKind.OUTLIERS
    change = outcome.perturbation
    columns = {
        "model": [model] * count,
        "protocol": [protocol.value] * count,
        "kind": [condition.kind.value] * count,
        "name": [condition.name] * count,
        "strength": [condition.strength] * count,
        "norm": [condition.norm] * count,
        "steps": [condition.steps] * count,
        "image": places,
        "label": labels if judged else [None] * count,
        "predicted": outcome.predicted.tolist(),
        "correct": outcome.correct.tolist() if judged else [None] * count,
        "confidence": outcome.confidence.tolist(),
        "perturbation": [None] * count if change is None else change.tolist(),
        "seconds": [seconds / count] * count,
    }
    return pa.table(columns, schema=SCHEMA)


@dataclass(frozen=True)
class Results:
    """All rows of a run, by model and condition, each in the order of the images."""

    groups: Mapping[tuple[str, Condition], pa.Table]

    def under(self, model: str, condition: Condition) -> pa.Table:
        """The rows of one model under one condition."""
        return self.groups[model, condition]

    def right(self, model: str, condition: Condition) -> NDArray[np.bool_]:
        """Which images are right."""
        found: NDArray[np.bool_] = self.under(model, condition)["correct"].to_numpy()
        return found

    @cached_property
    def table(self) -> pa.Table:
        """Everything in one table."""
        return pa.concat_tables(self.groups.values()).unify_dictionaries()
