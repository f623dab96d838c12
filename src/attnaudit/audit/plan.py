"""What an audit will compute, and the name of exactly that."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from attnaudit.audit.settings import AuditSettings
from attnaudit.audit.unit import AuditUnit
from attnaudit.sources.inputs import Shard
from attnaudit.sources.model import LoadedModel, ModelSpec, load_model
from attnaudit.theories.registry import Theory, theory_named


@dataclass(frozen=True)
class AuditPlan:
    """Models (as given, and built), inputs and settings, with the units of work they come to."""

    models: tuple[ModelSpec | LoadedModel, ...]
    loaded: tuple[LoadedModel, ...]
    shards: tuple[Shard, ...]
    settings: AuditSettings
    theories: tuple[Theory, ...]

    @cached_property
    def units(self) -> tuple[tuple[AuditUnit, ...], ...]:
        """Units of each model, in order of inputs."""
        return tuple(
            tuple(
                AuditUnit(model.label, model.fingerprint, shard, self.settings, self.theories) for shard in self.shards
            )
            for model in self.loaded
        )

    @property
    def keys(self) -> list[str]:
        """The names of all parts."""
        return [unit.key for units in self.units for unit in units]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything the evidence depends on, as plain data."""
        return {
            "settings": self.settings.identity,
            "models": [[model.label, model.fingerprint] for model in self.loaded],
            "inputs": [list(entry) for shard in self.shards for entry in shard.identity],
        }

    @property
    def name(self) -> str:
        """A folder name: the first model, the protocol, and a hash of the identity."""
        digest = hashlib.blake2b(json.dumps(self.identity, sort_keys=True).encode(), digest_size=4).hexdigest()
        label = file_name(self.loaded[0].label)
        more = f"-and-{len(self.loaded) - 1}-more" if len(self.loaded) > 1 else ""
        return f"{label}{more}-{self.settings.protocol.value}-{digest}"


def file_name(label: str) -> str:
    """A model's label as part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", label).strip("-.")[:64]


def plan_audit(
    models: Sequence[ModelSpec | LoadedModel],
    shards: Sequence[Shard],
    settings: AuditSettings,
    extra_theories: Sequence[Theory] = (),
) -> AuditPlan:
    """Build the models and lay out the work; `extra_theories` are compared beside those the settings name."""
    loaded = tuple(model if isinstance(model, LoadedModel) else load_model(model) for model in models)
    theories = (*(theory_named(name) for name in settings.theories), *extra_theories)
    names = tuple(theory.name for theory in theories)
    settings = replace(settings, theories=names)
    return AuditPlan(tuple(models), loaded, tuple(shards), settings, theories)
