"""The `run.json` of an audit: what was measured on what, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from attnaudit.display import counted
from attnaudit.protocol import Protocol
from attnaudit.records.keep import Keep
from attnaudit.records.later_fields import added_later
from attnaudit.records.run_kind import RunKind


@dataclass(frozen=True)
class AuditConventions:
    """What decides the numbers of an audit: measures, theories and references by name, repeats, seed and device."""

    protocol: Protocol = Protocol.EXACT
    measures: tuple[str, ...] = ()
    theories: tuple[str, ...] = ("kpca",)
    references: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    device: str = "cpu"


@dataclass(frozen=True)
class AuditIdentity:
    """Everything the evidence depends on: models as (label, fingerprint), inputs as (name, hash).

    `own` are measures, theories and references of the user's, as (name, fingerprint). `groups` says which inputs belong
    together, as (name, group).
    """

    settings: AuditConventions
    models: tuple[tuple[str, str], ...]
    inputs: tuple[tuple[str, str], ...]
    own: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, str], ...] = ()
    kind: Literal[RunKind.AUDIT] = RunKind.AUDIT


@dataclass(frozen=True)
class AuditFile:
    """The `run.json` of an audit.

    `loading` says, by model, what was left out of its weights or filled in; `certificates` are the largest replay error
    of every layer, `attention` says what kind of it each layer has, such as "causal, rotary". `parts` hold rows, or
    summaries where `keep` says so.
    """

    format: int
    identity: AuditIdentity
    attnaudit: str
    versions: Mapping[str, str]
    weights: Mapping[str, str]
    loading: Mapping[str, tuple[str, ...]]
    parts: tuple[str, ...]
    certificates: Mapping[str, float]
    eigen_solvers: Mapping[str, int]
    attention: Mapping[str, str] = field(default_factory=dict)
    keep: Keep = added_later(Keep.ROWS)

    @property
    def kinds_of_attention(self) -> list[str]:
        """What kinds of attention the layers have, with their numbers; plain attention goes without saying."""
        counts = Counter(kind for kind in self.attention.values() if kind)
        return [f"{kind} ({counted(count, 'layer')})" for kind, count in counts.items()]
