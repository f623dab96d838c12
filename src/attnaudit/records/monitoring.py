"""The folder of a monitor: its `run.json`, which grows with every step that is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from attnaudit.records.later_fields import added_later
from attnaudit.records.run_kind import RunKind


@dataclass(frozen=True)
class MonitorIdentity:
    """What the numbers of a monitor depend on, except for weights; `inputs` are (name of a batch, fingerprint)."""

    monitor: Mapping[str, Any]
    models: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]
    kind: Literal[RunKind.MONITOR] = RunKind.MONITOR


@dataclass(frozen=True)
class MonitorFile:
    """The `run.json` of a monitor; `steps` has the part of every step that was measured."""

    format: int
    identity: MonitorIdentity
    attnaudit: str
    versions: Mapping[str, str]
    parts: tuple[str, ...] = added_later(())
    steps: Mapping[str, str] | None = added_later(None)
