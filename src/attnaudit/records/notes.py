"""What a unit of work reports beside its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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

    @staticmethod
    def merged(notes: Sequence[Notes]) -> Notes:
        """What several units report together: the largest error of each layer, and numbers added."""
        certificate: dict[str, float] = {}
        solvers: Counter[str] = Counter()
        for note in notes:
            solvers.update(note.solvers)
            for layer, error in note.certificate.items():
                certificate[layer] = max(error, certificate.get(layer, 0.0))
        return Notes(
            tuple(dict.fromkeys(pair for note in notes for pair in note.skipped)),
            certificate,
            tuple(dict.fromkeys(pair for note in notes for pair in note.refusals)),
            dict(solvers),
            {layer: kind for note in notes for layer, kind in note.attention.items()},
        )
