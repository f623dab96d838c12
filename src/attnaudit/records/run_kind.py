"""The kinds of run folder, and how errors name them."""

from __future__ import annotations

from enum import StrEnum


class RunKind(StrEnum):
    """What a run folder holds."""

    AUDIT = "audit"
    TRAINING = "training"
    ROBUSTNESS = "robustness"
    MONITOR = "monitor"
    HEAD_VIEWS = "head views"

    @property
    def words(self) -> str:
        """For an error."""
        return _WORDS[self]

    @property
    def command(self) -> str:
        """What writes such a folder."""
        return _COMMANDS[self]


_WORDS = {
    RunKind.AUDIT: "an audit",
    RunKind.TRAINING: "a training",
    RunKind.ROBUSTNESS: "an evaluation of robustness",
    RunKind.MONITOR: "the measurements of a monitor",
    RunKind.HEAD_VIEWS: "maps of heads",
}
_COMMANDS = {
    RunKind.AUDIT: "attnaudit audit",
    RunKind.TRAINING: "attnaudit train",
    RunKind.ROBUSTNESS: "attnaudit robust",
    RunKind.MONITOR: "a monitor",
    RunKind.HEAD_VIEWS: "attnaudit audit --keep-maps",
}
