"""What a unit of work has to say beside its rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Notes:
    """What a unit has to say beside its rows; kept in the part's metadata, so that resuming loses none of it."""

    skipped: tuple[tuple[str, str], ...] = ()
    certificate: dict[str, float] = field(default_factory=dict)
    refusals: tuple[tuple[str, str], ...] = ()
    solvers: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> str:
        """For the metadata of a Parquet file."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str | bytes) -> Notes:
        """The reverse."""
        content: dict[str, Any] = json.loads(text)
        pairs = {name: tuple((str(a), str(b)) for a, b in content[name]) for name in ("skipped", "refusals")}
        return Notes(pairs["skipped"], content["certificate"], pairs["refusals"], content.get("solvers", {}))
