"""What an audit measured on one model: the record that claims about models are judged on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnaudit.records.evidence import Evidence


@dataclass(frozen=True)
class AuditedModel:
    """One model of an audit: `rows` hold every head and reference, `observed` the statistics of each measure."""

    model: str
    rows: Evidence
    observed: Mapping[str, Any]
    protocol: str
    seed: int = 0
