"""The laboratory's figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attnaudit.gaussian.experiments.align import FLOW, GAUSSIAN, ISOTROPIC, SKEWED, AlignRecord
from attnaudit.gaussian.experiments.finite_prompt import MANY_PROMPTS, ONE_PROMPT, ErrorRecord
from attnaudit.gaussian.experiments.in_context import ATTENTION, POOLED, RecoveryRecord
from attnaudit.gaussian.experiments.landscape import CRITICAL, PATH, SURFACE, LandscapeRecord
from attnaudit.gaussian.experiments.real_data import VarianceRecord
from attnaudit.gaussian.experiments.regularise import MISLED, RegulariserRecord, logarithms
from attnaudit.report.drawing import BLUE, GREEN, VERMILION, drawing, look

_COLOURS = {"linear": BLUE, "softmax": VERMILION}
_TITLES = {GAUSSIAN: "Gaussian tokens", ISOTROPIC: "isotropic: nothing to find", SKEWED: "skewed: softmax must fail"}
_REGULARISED = {GAUSSIAN: "Gaussian tokens", ISOTROPIC: "isotropic tokens", MISLED: "regulariser misled"}
#: sin² below this is training noise or rounding error.
_FLOOR = 1e-5


def align_figure(records: Sequence[AlignRecord], sizes: dict[str, float], paths: Sequence[Path]) -> None:
    """sin²(μ, v₁) over training, one panel per kind of tokens, and s = μᵀΣμ with its prediction."""
    with drawing(paths, 1, 4, (8.4, 2.3)) as axes:
        for axis, data in zip(axes.flat, _TITLES, strict=False):
            for kernel, run, own in _runs(records, data):
                steps, sines = [r.step for r in own], [max(r.squared_sine, _FLOOR) for r in own]
                axis.plot(steps, sines, color=_COLOURS[kernel], lw=0.8, label=None if run else kernel)
            axis.set(yscale="log", ylim=(_FLOOR, 2), title=_TITLES[data], xlabel="step")
        axes[0, 0].set_ylabel(r"$\sin^2(\mu, v_1)$")
        axes[0, 0].legend(loc="upper right")
        for kernel, _, own in _runs(records, GAUSSIAN):
            axes[0, 3].plot([r.step for r in own], [r.size for r in own], color=_COLOURS[kernel], lw=0.8)
        for kernel, size in sizes.items():
            axes[0, 3].axhline(size, color=_COLOURS[kernel], ls=":", lw=1.2, label=f"theory, {kernel}")
        axes[0, 3].set(title=r"$s=\mu^\top\Sigma\mu$, Gaussian tokens", xlabel="step")
        axes[0, 3].legend(loc="lower right")


def _runs(records: Sequence[AlignRecord], data: str) -> list[tuple[str, int, list[AlignRecord]]]:
    keys = dict.fromkeys((r.kernel, r.run) for r in records if r.data == data and r.kernel != FLOW)
    return [(k, n, [r for r in records if (r.data, r.kernel, r.run) == (data, k, n)]) for k, n in keys]


def regulariser_figure(records: Sequence[RegulariserRecord], paths: Sequence[Path]) -> None:
    """sin²(μ, v₁) over training, a row per kernel, a column per kind of tokens: medians and ranges over runs."""
    kernels, kinds = (list(dict.fromkeys(getattr(r, name) for r in records)) for name in ("kernel", "data"))
    strengths = sorted({r.strength for r in records})
    steps = sorted({r.step for r in records})
    with drawing(paths, len(kernels), len(kinds), (2.4 * len(kinds), 0.5 + 1.8 * len(kernels))) as axes:
        for row, kernel in enumerate(kernels):
            for axis, data in zip(axes[row], kinds, strict=True):
                for number, strength in enumerate(strengths):
                    found = 10 ** logarithms(records, kernel, data, strength)
                    style = look(number)
                    name = f"γ = {strength:g}" if strength else "without"
                    axis.plot(steps, np.median(found, axis=0), label=name, lw=1, **style)
                    low, high = found.min(axis=0), found.max(axis=0)
                    axis.fill_between(steps, low, high, color=style["color"], alpha=0.15, lw=0)
                axis.set(yscale="log", ylim=(_FLOOR, 2), title=f"{kernel}, {_REGULARISED[data]}")
                if row == len(kernels) - 1:
                    axis.set_xlabel("step")
            axes[row, 0].set_ylabel(r"$\sin^2(\mu, v_1)$")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, labels, loc="outside upper center", ncols=len(strengths))


def landscape_figure(records: Sequence[LandscapeRecord], labels: tuple[str, str], paths: Sequence[Path]) -> None:
    """Contours of the risk, paths of the gradient flow, and the critical points."""
    surface = [r for r in records if r.what == SURFACE]
    side = round(len(surface) ** 0.5)
    x, y, risk = (np.array([getattr(r, name) for r in surface]).reshape(side, side) for name in ("x", "y", "risk"))
    lowest = min(r.risk for r in records if r.what == CRITICAL)
    highest = max(r.risk for r in records if r.what == CRITICAL)
    levels = lowest + (highest - lowest) * np.linspace(0.02, 2, 14)
    looks = {"minimum": (GREEN, "o"), "saddle": (VERMILION, "s"), "maximum": ("black", "^")}
    with drawing(paths, 1, 1, (3.8, 3.5)) as axes:
        axis = axes[0, 0]
        axis.contour(x, y, risk, levels=levels, colors="0.75", linewidths=0.5)
        flows = [r for r in records if r.what == PATH]
        for run in dict.fromkeys(r.run for r in flows):
            own = [r for r in flows if r.run == run]
            axis.plot([r.x for r in own], [r.y for r in own], color=BLUE, lw=0.8)
        for kind, (colour, marker) in looks.items():
            own = [r for r in records if r.what == CRITICAL and r.kind == kind]
            if own:
                places = ([r.x for r in own], [r.y for r in own])
                axis.plot(*places, marker, color=colour, ls="", ms=5, label=kind, zorder=3)
        axis.set(xlabel=labels[0], ylabel=labels[1], aspect="equal")
        axis.figure.legend(loc="outside upper center", ncols=3)


def error_figure(records: Sequence[ErrorRecord], paths: Sequence[Path]) -> None:
    """Left: rms sin over the length of one prompt. Right: minimisers on many prompts against κ_LΛ/N."""
    with drawing(paths, 1, 2, (6.4, 2.5)) as axes:
        left, right = axes.flat
        looks = {"gaussian": (BLUE, "o", "Gaussian"), "isotropic": ("0.5", "x", "isotropic control")}
        for data, (colour, marker, label) in looks.items():
            own = [r for r in records if r.setting == ONE_PROMPT and r.data == data]
            _dots(left, [r.length for r in own], own, colour, marker, label)
        own = [r for r in records if r.setting == ONE_PROMPT and r.predicted is not None]
        left.plot([r.length for r in own], [(r.predicted or 0) ** 0.5 for r in own], "k:", lw=1, label="√(Λ/L)")
        left.set(xscale="log", yscale="log", xlabel="tokens of one prompt, L", ylabel=r"rms $\sin(\mu, v_1)$")
        left.legend(loc="lower left")
        many = [r for r in records if r.setting == MANY_PROMPTS]
        names = [f"{r.kernel},\n{'Gaussian' if r.data == 'gaussian' else r.data}" for r in many]
        for place, record in enumerate(many):
            _dots(right, [place], [record], _COLOURS[record.kernel], "o", None)
            if record.predicted is not None:
                right.plot([place - 0.3, place + 0.3], [record.predicted**0.5] * 2, "k:", lw=1)
        right.plot([], [], "k:", lw=1, label="√(κΛ/N)")
        right.set_xticks(range(len(names)), names)
        right.set(yscale="log", ylim=(None, 1.5), ylabel=r"rms $\sin(\mu, v_1)$", xlim=(-0.6, len(names) - 0.4))
        right.set_title(f"{many[0].prompts} prompts of {many[0].length} tokens")
        right.legend(loc="upper left")


def _dots(
    axis: Any, x: Sequence[float], records: Sequence[ErrorRecord], colour: str, marker: str, label: str | None
) -> None:
    roots = np.sqrt([r.squared_sine for r in records])
    errors = 2 * np.array([r.standard_error for r in records]) / (2 * roots)  # two standard errors of the root
    axis.errorbar(x, roots, yerr=errors, color=colour, marker=marker, ms=4, ls="", label=label)


def recovery_figure(records: Sequence[RecoveryRecord], paths: Sequence[Path]) -> None:
    """cos² with the spike over θ/√γ; a row per n, a column per K."""
    degrees = list(dict.fromkeys(r.degrees for r in records))
    tasks = list(dict.fromkeys(r.tasks for r in records))
    looks = {ATTENTION: (VERMILION, "s"), POOLED: (BLUE, "o")}
    with drawing(paths, len(degrees), len(tasks), (2.2 * len(tasks), 0.4 + 1.7 * len(degrees))) as axes:
        for row, few in enumerate(degrees):
            for column, number in enumerate(tasks):
                axis = axes[row, column]
                for method, (colour, marker) in looks.items():
                    own = [r for r in records if (r.method, r.degrees, r.tasks) == (method, few, number)]
                    x, y, error = zip(*((r.multiple, r.overlap, 2 * r.standard_error) for r in own), strict=True)
                    axis.errorbar(x, y, yerr=error, color=colour, marker=marker, ms=3, lw=0.8, label=method)
                own = [r for r in records if (r.method, r.degrees, r.tasks) == (POOLED, few, number)]
                axis.plot([r.multiple for r in own], [r.bbp for r in own], "k:", lw=1, label="BBP")
                axis.set(ylim=(-0.05, 1.05), title=f"n = {few}, K = {number}")
                if row == len(degrees) - 1:
                    axis.set_xlabel("θ/√γ")
            axes[row, 0].set_ylabel(r"$\cos^2(\mu, v)$")
        handles, names = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, names, loc="outside upper center", ncols=3)


def variance_figure(records: Sequence[VarianceRecord], paths: Sequence[Path]) -> None:
    """The variance explained by PCA and by heads of rank k."""
    with drawing(paths, 1, 1, (3.4, 2.4)) as axes:
        axis = axes[0, 0]
        x = [r.components for r in records]
        axis.plot(x, [r.pca for r in records], color=BLUE, marker="o", ms=5, mfc="none", label="PCA")
        axis.plot(x, [r.attention for r in records], color=VERMILION, marker="x", ms=4, ls="", label="span of ΣW")
        axis.set(xlabel="components", ylabel="explained variance", ylim=(0, None))
        axis.legend(loc="lower right")
