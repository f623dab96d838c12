"""The study's figures of heads, Figures 2, 3 and 5, in print style."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path

from attnaudit.papers.head_figures import GammaRecord, NormRecord
from attnaudit.report.drawing import BLUE, GREEN, VERMILION, drawing


def norm_figure(records: Sequence[NormRecord], paths: Sequence[Path]) -> None:
    """Figures 2 and 5: ‖φ(q)‖² and ‖h‖² against depth, medians and quartiles, a panel per model."""
    models = list(dict.fromkeys(record.model for record in records))
    columns = min(len(models), 3)
    rows = -(-len(models) // columns)
    looks = {"phi_norm2": (r"$\|\varphi(q)\|^2$", BLUE, "o"), "output_norm2": (r"$\|h\|^2$", VERMILION, "s")}
    with drawing(paths, rows, columns, (max(3.4, 2.3 * columns), 0.3 + 2.1 * rows)) as axes:
        for place, axis in enumerate(axes.flat):
            if place >= len(models):
                axis.set_visible(False)
                continue
            for quantity, (label, colour, marker) in looks.items():
                own = [r for r in records if r.model == models[place] and r.quantity == quantity]
                layers = [r.layer for r in own]
                axis.plot(layers, [r.median for r in own], color=colour, marker=marker, markersize=3, label=label)
                axis.fill_between(layers, [r.lower for r in own], [r.upper for r in own], color=colour, alpha=0.2, lw=0)
            axis.set(yscale="log", title=textwrap.fill(models[place], 27, break_long_words=False))
            axis.xaxis.get_major_locator().set_params(integer=True)
            if place % columns == 0:
                axis.set_ylabel("squared norm")
            if place + columns >= len(models):
                axis.set_xlabel("layer")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        axes.flat[0].figure.legend(handles, labels, loc="outside upper center", ncols=2)


def gamma_figure(records: Sequence[GammaRecord], paths: Sequence[Path]) -> None:
    """Figure 3: |γ_i - γ_j| per component for true (top) and perturbed (bottom) eigenvectors."""
    with drawing(paths, 2, 2, (6.4, 4.0)) as axes:
        for row, vectors in enumerate(("true", "perturbed")):
            for column, (kind, colour) in enumerate((("absolute", BLUE), ("relative", GREEN))):
                axis = axes[row, column]
                own = [r for r in records if r.vectors == vectors and r.kind == kind]
                x, means = [r.component for r in own], [r.mean for r in own]
                axis.plot(x, means, color=colour)
                low, high = [r.mean - r.std for r in own], [r.mean + r.std for r in own]
                axis.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)
                axis.set_title(f"{vectors} eigenvectors, {kind}", loc="right")
                axis.ticklabel_format(axis="y", scilimits=(-2, 3), useMathText=True)
                if row:
                    axis.set_xlabel("component")
        axes[0, 0].figure.suptitle(records[0].model)
        axes[0, 0].figure.supylabel(r"mean $|\gamma_i-\gamma_j|$ over pairs of tokens")
