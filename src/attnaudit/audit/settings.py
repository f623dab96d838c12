"""What decides the numbers of an audit; two runs with equal settings and inputs have equal evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from attnaudit.errors import UsageError
from attnaudit.measures import DEFAULT_FAMILIES, FAMILIES
from attnaudit.measures.references import check_references
from attnaudit.protocol import Protocol

#: Inputs per unit of work: small enough to lose little when killed, and independent of the number of workers; a GPU
#: is through with more images in the same time. (Texts of a unit are padded to one length, so theirs are few.)
_SHARD = {"cpu": 4, "cuda": 50}


def shard_size(device: str = "cpu") -> int:
    """Inputs per unit of work on a device."""
    return _SHARD.get(device, _SHARD["cpu"])


@dataclass(frozen=True)
class AuditSettings:
    """Protocol, measures, theories, references and seed of an audit."""

    protocol: Protocol = Protocol.EXACT
    families: tuple[str, ...] = DEFAULT_FAMILIES
    theories: tuple[str, ...] = ("kpca",)
    references: tuple[str, ...] = ()
    repeats: int = 1
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for family in self.families:
            if family not in FAMILIES:
                raise UsageError(f"There is no measure family {family!r}; there are {', '.join(FAMILIES)}.")
        check_references(self.references)
        if self.repeats < 1:
            raise UsageError(f"repeats is {self.repeats}: each random reference is drawn at least once.")

    @property
    def identity(self) -> dict[str, Any]:
        """As plain data that JSON gives back unchanged, for hashes and comparison."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
