"""A chart of curves over steps, as SVG without a script; its colours follow those of the reader's screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from attnaudit.report.course.scale import Scale, fitted_scale

#: Width and height, and the room for the labels of axes and curves.
WIDTH, HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 130, 28, 36
#: The distance between the names of two curves, and the number of characters that fit.
_LINE, _CHARACTERS = 12, 21
#: Curves with more points have no dots.
_MOST_DOTS = 40
_COLOURS = 8

#: (step, value, interval), the last of which is shown where the pointer rests.
Point = tuple[int, float, tuple[float, float] | None]


@dataclass(frozen=True)
class Curve:
    """A curve with its name; one that goes with another, such as J of the test batch, is dashed."""

    name: str
    points: tuple[Point, ...]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """Curves over steps; `marks` are values with a name, drawn as lines across."""

    title: str
    caption: str
    curves: tuple[Curve, ...]
    marks: tuple[tuple[float, str], ...] = ()
    may_be_logarithmic: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(curve.points for curve in self.curves)


def chart_svg(chart: Chart, *, x: int = 0, y: int = 0) -> str:
    """The chart as an SVG element, at a place inside another one."""
    curves = [curve for curve in chart.curves if curve.points]
    values = [value for curve in curves for _, value, _ in curve.points] + [value for value, _ in chart.marks]
    steps = [step for curve in curves for step, *_ in curve.points]
    across = fitted_scale(steps, _LEFT, WIDTH - _RIGHT)
    if len(set(steps)) == 1:
        across = Scale(steps[0], steps[0] + 1, _LEFT, WIDTH - _RIGHT)
    up = fitted_scale(values, HEIGHT - _BOTTOM, _TOP, may_be_logarithmic=chart.may_be_logarithmic)
    parts = [
        f'<svg class="course" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(chart.title)}" '
        f'x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<text class="title" x="{_LEFT}" y="14">{escape(chart.title)}</text>',
        *_axes(across, up, chart.marks),
        *(text for curve in curves for text in _curve(curve, across, up)),
        *_names(curves, up),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(across: Scale, up: Scale, marks: Sequence[tuple[float, str]]) -> Iterator[str]:
    for value, name in marks:
        yield from _level(up(value), f"{name} {value:.3g}", "mark")
    for value in up.ticks:
        if all(abs(up(value) - up(mark)) >= _LINE for mark, _ in marks):
            yield from _level(up(value), f"{value:.3g}", "grid")
    for value in across.ticks:
        if value == int(value):
            at = across(value)
            yield f'<text class="soft" x="{at}" y="{HEIGHT - _BOTTOM + 14}" text-anchor="middle">{int(value):,}</text>'
    words = "step" + (", values on a log scale" if up.logarithmic else "")
    yield f'<text class="soft" x="{(_LEFT + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 6}" text-anchor="middle">{words}</text>'


def _level(height: float, words: str, look: str) -> Iterator[str]:
    yield f'<line class="{look}" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{height}" y2="{height}"/>'
    yield f'<text class="soft" x="{_LEFT - 5}" y="{height + 4}" text-anchor="end">{escape(words)}</text>'


def _curve(curve: Curve, across: Scale, up: Scale) -> Iterator[str]:
    look = f"c{curve.colour % _COLOURS}" + (" dashed" if curve.dashed else "")
    places = [(across(step), up(value)) for step, value, _ in curve.points]
    yield f'<polyline class="curve {look}" points="{" ".join(f"{at},{height}" for at, height in places)}"/>'
    if len(places) <= _MOST_DOTS:
        for (at, height), (step, value, interval) in zip(places, curve.points, strict=True):
            ends = "" if interval is None else f" [{interval[0]:.3g}, {interval[1]:.3g}]"
            words = escape(f"{curve.name}, step {step:,}: {value:.3g}{ends}")
            yield f'<circle class="dot {look}" cx="{at}" cy="{height}" r="2.5"><title>{words}</title></circle>'


def _names(curves: Sequence[Curve], up: Scale) -> Iterator[str]:
    """The name of each curve at its right end, moved apart where several would lie on one another."""
    ordered = sorted(curves, key=lambda curve: up(curve.points[-1][1]))
    heights: list[float] = []
    for curve in ordered:
        heights.append(max(up(curve.points[-1][1]), heights[-1] + _LINE if heights else _TOP))
    lowest = float(HEIGHT - _BOTTOM)
    for place in reversed(range(len(heights))):
        heights[place] = min(heights[place], lowest)
        lowest = heights[place] - _LINE
    for height, curve in zip(heights, ordered, strict=True):
        look = f"c{curve.colour % _COLOURS}"
        name = curve.name if len(curve.name) <= _CHARACTERS else f"{curve.name[: _CHARACTERS - 1]}…"
        yield f'<text class="name {look}" x="{WIDTH - _RIGHT + 6}" y="{height + 4}">{escape(name)}</text>'
