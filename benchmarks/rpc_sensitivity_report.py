"""What the map of λ, rules and iterations shows: its numbers, the surfaces, and gains over the centre."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from benchmarks.robustness_tables import heading

from attnaudit.records.files import write_whole
from attnaudit.report.drawing import drawing
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

LAMBDAS = (1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
ITERATIONS = tuple(range(1, 9))
#: The rules for μ and their λ; those of the other presets are tried with the λ of the paper.
RULES = (*(("code", lam) for lam in LAMBDAS), ("paper", 4.0), ("admm", 4.0))
#: Rules, λ and iterations of the recipe, from which a cross changes one thing at a time.
CENTRE = ("code", 4.0, 4)
#: Rules, λ and iterations: what all seeds of a setting share.
Setting = tuple[str, float, int]
#: Accuracies, and what explains them.
ACCURACIES = ("clean", "corrupted", "attacked")
PANELS = {
    **{name: f"{name}, %" for name in ACCURACIES},
    "entropy": "entropy, nats",
    "nonzero": "entries of S, %",
}


@dataclass(frozen=True)
class Row:
    """What came of one setting; accuracies as shares, the rest of layer 0 as means over heads and images."""

    preset: str
    lam: float
    iterations: int
    seed: int
    clean: float
    corrupted: float
    attacked: float
    entropy: float
    diagonal: float
    nonzero: float
    key_size: float
    predicted_nonzero: float

    @property
    def setting(self) -> Setting:
        """The setting that it is one seed of."""
        return self.preset, self.lam, self.iterations


def write_report(rows: Sequence[Row], out: Path) -> None:
    """`sensitivity.csv` and the surfaces; of several seeds also `sensitivity.md` and `sensitivity-gains.svg`."""
    _write_rows(rows, out / "sensitivity.csv")
    _draw_surfaces(rows, out / "sensitivity.svg")
    if any(len(values) > 1 for values in gains(rows, "clean").values()):
        write_whole(out / "sensitivity.md", table(rows).encode())
        _draw_gains(rows, out / "sensitivity-gains.svg")


def gains(rows: Sequence[Row], measure: str) -> dict[Setting, np.ndarray]:
    """Of every setting over the centre, for each seed that both have."""
    centre = {row.seed: getattr(row, measure) for row in rows if row.setting == CENTRE}
    return {
        setting: np.array(
            [getattr(row, measure) - centre[row.seed] for row in rows if row.setting == setting and row.seed in centre]
        )
        for setting in _settings(rows)
        if setting != CENTRE
    }


def _settings(rows: Sequence[Row]) -> list[Setting]:
    """Each once, by rules and iterations, those with the rules of the centre last."""
    return sorted({row.setting for row in rows}, key=lambda own: (own[:2] == CENTRE[:2], RULES.index(own[:2]), own[2]))


def table(rows: Sequence[Row]) -> str:
    """Markdown: accuracies of every setting and points over the centre, means over seeds with Student's intervals."""
    names = ["rules", "λ", "iterations"]
    lines = ["In per cent, mean over seeds [95 %, Student's t]:", ""]
    lines += heading([*names, "seeds", *ACCURACIES, "entropy", "entries of S, %"])
    for setting in _settings(rows):
        own = [row for row in rows if row.setting == setting]
        cells = [_mean(np.array([getattr(row, measure) for row in own]), "") for measure in ACCURACIES]
        cells += [f"{np.mean([row.entropy for row in own]):.2f}", f"{np.mean([row.nonzero for row in own]):.2%}"[:-1]]
        lines.append(f"| {_words(setting)} | {len(own)} | {' | '.join(cells)} |")
    preset, lam, iterations = CENTRE
    lines += [
        "",
        f"Points over {preset}, λ = {lam:g}, {iterations} iterations, paired by seed [95 %, Student's t]:",
        "",
    ]
    lines += heading([*names, "seeds", *ACCURACIES])
    columns = [gains(rows, measure) for measure in ACCURACIES]
    for setting, values in columns[0].items():
        if len(values):
            cells = [_mean(column[setting], "+") for column in columns]
            lines.append(f"| {_words(setting)} | {len(values)} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _words(setting: Setting) -> str:
    preset, lam, iterations = setting
    return f"{preset} | {lam:g} | {iterations}"


def _mean(shares: np.ndarray, sign: str) -> str:
    interval = student_interval(100 * shares, CONFIDENCE)
    ends = "" if interval is None else f" [{interval[0]:{sign}.2f}, {interval[1]:{sign}.2f}]"
    return f"{100 * shares.mean():{sign}.2f}{ends}".replace("-", "−")


def _write_rows(rows: Sequence[Row], file: Path) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(asdict(rows[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    write_whole(file, text.getvalue().encode())


def _draw_surfaces(rows: Sequence[Row], file: Path) -> None:
    """The surfaces over λ and iterations of the authors' rules, and below them the lines of the other two."""
    names = [f"λ = {lam:g}" if preset == "code" else f"{preset}, λ = {lam:g}" for preset, lam in RULES]
    with drawing([file], 1, len(PANELS), (2.05 * len(PANELS), 2.3)) as axes:
        for axis, (measure, title) in zip(axes[0], PANELS.items(), strict=True):
            cells = np.full((len(RULES), len(ITERATIONS)), np.nan)
            for place, rule in enumerate(RULES):
                for column, iterations in enumerate(ITERATIONS):
                    own = [row for row in rows if row.setting == (*rule, iterations)]
                    if own:
                        cells[place, column] = np.mean([getattr(row, measure) for row in own])
            shown = cells if measure == "entropy" else 100 * cells
            axis.imshow(shown, aspect="auto", cmap="viridis")
            middle = (np.nanmin(shown) + np.nanmax(shown)) / 2
            for (place, column), value in np.ndenumerate(shown):
                if np.isfinite(value):
                    colour = "black" if value > middle else "white"
                    axis.text(column, place, _short(value), ha="center", va="center", fontsize=5, color=colour)
            axis.set(title=title, xlabel="iterations", yticks=[])
            axis.set_xticks(range(len(ITERATIONS)), [str(count) for count in ITERATIONS])
            axis.axhline(len(LAMBDAS) - 0.5, color="white", lw=2)
        axes[0, 0].set_yticks(range(len(RULES)), names)


def _short(value: float) -> str:
    return f"{value:.1f}" if value >= 0.1 or value == 0 else f"{value:.2f}"


def _change(setting: Setting) -> str:
    """What a setting has that the centre has not."""
    preset, lam, iterations = setting
    names = (f"rules: {preset}", f"λ = {lam:g}", f"{iterations} iteration{'s' * (iterations > 1)}")
    return ", ".join(name for name, own, other in zip(names, setting, CENTRE, strict=True) if own != other)


def _draw_gains(rows: Sequence[Row], file: Path) -> None:
    """A line per setting: points over the centre with Student's interval over seeds."""
    settings = list(gains(rows, "clean"))
    preset, lam, iterations = CENTRE
    with drawing([file], 1, len(ACCURACIES), (2.4 * len(ACCURACIES), 0.6 + 0.16 * len(settings))) as axes:
        for axis, measure in zip(axes[0], ACCURACIES, strict=True):
            for place, values in enumerate(gains(rows, measure).values()):
                if len(values):
                    axis.plot(100 * values.mean(), place, "o", ms=3, color="C0")
                    if interval := student_interval(100 * values, CONFIDENCE):
                        axis.plot(interval, [place, place], lw=1, color="C0")
            axis.axvline(0, color="0.6", lw=0.8)
            axis.set(title=measure, ylim=(len(settings) - 0.5, -0.5), yticks=[])
        axes[0, 0].set_yticks(range(len(settings)), [_change(setting) for setting in settings])
        axes[0, 1].set_xlabel(f"points over {preset}, λ = {lam:g}, {iterations} iterations")
