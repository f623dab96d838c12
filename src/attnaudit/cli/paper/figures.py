"""Figures 2, 3 and 5: the heads of a few inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attnaudit.cli.console import progress_bar
from attnaudit.cli.delivery import deliver
from attnaudit.cli.paper.heads import batch_of, captured
from attnaudit.errors import UsageError

if TYPE_CHECKING:
    from attnaudit.sources.model import ModelSpec
    from attnaudit.sources.selection import InputSelection


def draw_norms(
    name: str, specs: Sequence[ModelSpec], choice: InputSelection, device: str, out: Path, json: bool, *, language: bool
) -> None:
    """Figure 2, and for `language` Figure 5: ‖φ(q)‖² and ‖h‖² by layer, a panel per model."""
    from attnaudit.papers.head_figures import norm_records
    from attnaudit.report.head_figures import norm_figure

    batch = batch_of(specs, choice)
    records = []
    with progress_bar(name) as progress:
        for done, spec in enumerate(specs):
            progress(done, len(specs))
            records += norm_records(spec.label, captured(spec, batch, device), language=language)
        progress(len(specs), len(specs))
    deliver(name, records, norm_figure, out, json)


def draw_gammas(
    name: str, specs: Sequence[ModelSpec], choice: InputSelection, device: str, out: Path, json: bool
) -> None:
    """Figure 3: differences of γ in the third block of one model."""
    from attnaudit.papers.head_figures import gamma_records
    from attnaudit.report.head_figures import gamma_figure

    if len(specs) > 1:
        raise UsageError(f"Figure 3 shows one model, got {len(specs)}: name one.")
    spec = specs[0]
    layers = captured(spec, batch_of(specs, choice), device)
    with progress_bar(name) as progress:
        progress(0, 1)
        records = gamma_records(spec.label, layers, choice.seed)
        progress(1, 1)
    deliver(name, records, gamma_figure, out, json)
