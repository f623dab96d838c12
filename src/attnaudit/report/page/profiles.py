"""Quantities by depth: eigenvalues with their bound, norms, and the parts of the projection error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from attnaudit.records.measured_heads import LayerQuartiles
from attnaudit.report.page.numbers import compact

_EIGENVALUES = {f"eigenvalue_{name}": name for name in ("max", "mean", "min")}
_BOUND = "eigenvalue_bound_ratio"
_NORMS = {"phi_norm2": "‖φ(q)‖²", "output_norm2": "‖h‖²"}
_FLOOR = "projection_error_floor"
_EXCESS = {"projection_error_matched": "added, order and signs", "projection_error_rotated": "added, rotation"}
#: The measures that charts over layers show.
PROFILED = frozenset((*_EIGENVALUES, _BOUND, *_NORMS, _FLOOR, *_EXCESS))


@dataclass(frozen=True)
class Line:
    """One curve of a profile, with a band if `lower` and `upper` are given."""

    name: str
    layers: list[int]
    middle: list[float | None]
    lower: list[float | None]
    upper: list[float | None]


@dataclass(frozen=True)
class Profile:
    """A small chart of curves over layers; `bound` is a value that no curve can exceed."""

    title: str
    caption: str
    axis: str
    logarithmic: bool
    lines: list[Line]
    bound: float | None = None


def profiles(measured: Mapping[str, LayerQuartiles]) -> list[Profile]:
    """The charts whose measures the run has."""
    charts = [
        Profile(
            "Eigenvalues of K̃",
            "Median over heads and inputs, with quartiles, of statistics of the leading eigenvalues of each head.",
            "eigenvalue (log scale)",
            True,
            [_quartiles(label, measured[n]) for n, label in _EIGENVALUES.items() if n in measured],
        ),
        Profile(
            "Largest eigenvalue over its provable bound",
            "μ₁ · min g, which is at most 1 for all keys: μ₁ ≤ 1/min g for every network.",
            "μ₁ · min g",
            False,
            [_quartiles(n, measured[n]) for n in (_BOUND,) if n in measured],
            bound=1.0,
        ),
        Profile(
            "Norms by depth (as in Figure 2)",
            "‖φ(q)‖² and ‖h‖², averaged over tokens; median and quartiles over heads and inputs. Claim: both agree.",
            "squared norm (log scale)",
            True,
            [_quartiles(label, measured[n]) for n, label in _NORMS.items() if n in measured],
        ),
        Profile(
            "Projection error J_proj and its floor",
            "Means over heads and inputs. The floor is the error of kernel PCA itself; the rest is added by the head.",
            "J_proj (log scale)",
            True,
            _projection(measured),
        ),
    ]
    return [chart for chart in charts if any(line.layers for line in chart.lines)]


def _quartiles(name: str, of: LayerQuartiles) -> Line:
    lower, middle, upper = ([compact(value) for value in values] for values in (of.lower, of.middle, of.upper))
    return Line(name, of.layers, middle, lower, upper)


def _projection(measured: Mapping[str, LayerQuartiles]) -> list[Line]:
    if _FLOOR not in measured:
        return []
    floor = dict(zip(measured[_FLOOR].layers, measured[_FLOOR].mean, strict=True))
    lines = [Line("floor", list(floor), [compact(mean) for mean in floor.values()], [], [])]
    for name, label in _EXCESS.items():
        if name in measured:
            means = dict(zip(measured[name].layers, measured[name].mean, strict=True))
            both = [layer for layer in means if layer in floor]
            lines.append(Line(label, both, [compact(means[layer] - floor[layer]) for layer in both], [], []))
    return lines
