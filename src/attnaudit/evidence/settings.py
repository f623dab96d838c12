"""What decides the numbers of an audit; two runs with equal settings and inputs have equal evidence."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from attnaudit.errors import UsageError
from attnaudit.measures import DEFAULT_FAMILIES, FAMILIES
from attnaudit.measures.controls import check_controls
from attnaudit.protocol import Protocol

#: Inputs per unit of work: small enough to lose little when killed, and independent of the number of workers.
SHARD = 4


class Settings(BaseModel):
    """Protocol, measures, theories, controls and seed of an audit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: Protocol = Protocol.EXACT
    families: tuple[str, ...] = DEFAULT_FAMILIES
    interpretations: tuple[str, ...] = ("kpca",)
    controls: tuple[str, ...] = ()
    repeats: int = Field(default=1, ge=1)
    seed: int = 0
    device: str = "cpu"

    @field_validator("families")
    @classmethod
    def _known(cls, families: tuple[str, ...]) -> tuple[str, ...]:
        for family in families:
            if family not in FAMILIES:
                raise UsageError(f"There is no measure family {family!r}; there are {', '.join(FAMILIES)}.")
        return families

    @field_validator("controls")
    @classmethod
    def _known_controls(cls, controls: tuple[str, ...]) -> tuple[str, ...]:
        return check_controls(controls)

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data, for hashes and comparison."""
        return self.model_dump(mode="json")
