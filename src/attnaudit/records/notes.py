"""What a unit of work reports beside its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Notes:
    """What a unit reports beside its rows; kept in the metadata of its part, so that resuming loses none of it.

    `skipped` are inputs with the reason, `refusals` layers with the reason, `certificate` the replay error by layer,
    `solvers` how many heads each eigen-solver solved, and `attention` what kind of it each layer has, in words.
    """

    skipped: tuple[tuple[str, str], ...] = ()
    certificate: Mapping[str, float] = field(default_factory=dict)
    refusals: tuple[tuple[str, str], ...] = ()
    solvers: Mapping[str, int] = field(default_factory=dict)
    attention: Mapping[str, str] = field(default_factory=dict)
