"""Every head of every model with its scores, a row per theory and measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from attnaudit.report.atlas.audits import AtlasAudit
from attnaudit.report.data_files import write_parquet

HEADS = "heads.parquet"
SCHEMA = pa.schema(
    [
        ("model", pa.string()),
        ("field", pa.string()),
        ("layer", pa.int16()),
        ("head", pa.int16()),
        ("depth", pa.float64()),
        ("theory", pa.string()),
        ("measure", pa.string()),
        ("score", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("satisfies", pa.bool_()),
        ("above_chance", pa.bool_()),
        ("inputs", pa.int32()),
    ]
)


@dataclass(frozen=True)
class HeadRow:
    """One head by one measure of one theory, on the scale from 0, chance, to 1, the theory itself.

    `depth` is 0 for the first layer and 1 for the last, `low` and `high` are the ends of the interval over `inputs`
    independent inputs.
    """

    model: str
    field: str
    layer: int
    head: int
    depth: float
    theory: str
    measure: str
    score: float
    low: float | None
    high: float | None
    satisfies: bool
    above_chance: bool
    inputs: int


def head_rows(audit: AtlasAudit) -> Iterator[HeadRow]:
    """The heads of one model that have a score."""
    last = max((own.layer for score in audit.scores.values() for own in score.heads), default=0)
    for (theory, measure), score in audit.scores.items():
        for own in score.heads:
            low, high = own.score.interval or (None, None)
            yield HeadRow(
                model=audit.entry.name,
                field=audit.entry.field,
                layer=own.layer,
                head=own.head,
                depth=own.layer / last if last else 0.0,
                theory=theory,
                measure=measure,
                score=own.score.mean,
                low=low,
                high=high,
                satisfies=own.satisfies,
                above_chance=own.above_chance,
                inputs=score.inputs,
            )


def write_heads(audits: Sequence[AtlasAudit], folder: Path) -> None:
    """Write `heads.parquet`."""
    write_parquet([row for audit in audits for row in head_rows(audit)], folder / HEADS, SCHEMA)
