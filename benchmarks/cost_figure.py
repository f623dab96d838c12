"""The figure of what attention variants cost: operations, memory and time, over softmax attention of the same size.

    python -m benchmarks.cost_figure docs/results/figures/cost.csv

draws the numbers of a file again; `network_cost.py --out FOLDER` writes both.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from attnaudit.report.data_files import write_rows
from attnaudit.report.drawing import drawing, look

#: One network: its size and attention, and its numbers by the names of the table's columns; None where there is none.
Row = Mapping[str, str | float | None]
#: Panels, with the columns of inference and training that they show: those of CUDA graphs where there are any.
PANELS = {
    "operations": ("inference, GFLOP", "training, GFLOP"),
    "memory": ("inference, MiB", "training, MiB"),
    "time": ("inference, ms", "training, ms"),
    "time of a CUDA graph": ("graph: inference, ms", "graph: training, ms"),
}
_BASE = "softmax"


def ratios(rows: Sequence[Row], column: str) -> dict[tuple[str, str], float]:
    """By attention and size: how many times the number of softmax attention it is."""
    base = {row["size"]: row.get(column) for row in rows if row["attention"] == _BASE}
    found = {}
    for row in rows:
        own, softmax = row.get(column), base[row["size"]]
        if isinstance(own, float) and isinstance(softmax, float):
            found[str(row["attention"]), str(row["size"])] = own / softmax
    return found


def write_cost(rows: Sequence[Row], folder: Path) -> None:
    """cost.csv and cost.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(rows, folder / "cost.csv")
    draw(rows, [folder / "cost.svg"])


def draw(rows: Sequence[Row], paths: Sequence[Path]) -> None:
    """A line per attention, a panel per cost; filled for training, hollow for inference."""
    attentions = list(dict.fromkeys(str(row["attention"]) for row in rows))
    sizes = list(dict.fromkeys(str(row["size"]) for row in rows))
    shown = {title: columns for title, columns in PANELS.items() if ratios(rows, columns[0])}
    with drawing(paths, 1, len(shown), (1.6 + 1.9 * len(shown), 1.1 + 0.18 * len(attentions))) as axes:
        for axis, (title, columns) in zip(axes[0], shown.items(), strict=True):
            for column, filled in zip(columns, (False, True), strict=True):
                for (attention, size), ratio in ratios(rows, column).items():
                    number = sizes.index(size)
                    place = attentions.index(attention) + 0.22 * (number - (len(sizes) - 1) / 2)
                    colour = look(number)["color"]
                    name = size if filled and attention == _BASE else None
                    fill = colour if filled else "none"
                    axis.plot(ratio, place, "o", ms=3, mew=0.8, mec=colour, mfc=fill, color=colour, label=name)
            axis.axvline(1, color="0.6", lw=0.8, zorder=0)
            axis.grid(axis="y", color="0.92", lw=0.6)
            axis.set(title=title, xlabel="× softmax attention", yticks=range(len(attentions)), yticklabels=[])
            axis.set_ylim(len(attentions) - 0.4, -0.6)
        axes[0, 0].set_yticklabels(attentions)
        handles, names = axes[0, 0].get_legend_handles_labels()
        figure = axes[0, 0].figure
        figure.legend(handles, names, loc="outside upper center", ncols=len(names),
                      title="filled: training; hollow: inference", title_fontsize=8)  # fmt: skip


def read_rows(path: Path) -> list[Row]:
    """As `write_cost` wrote them."""
    with path.open(newline="") as file:
        return [{name: _value(name, text) for name, text in row.items()} for row in csv.DictReader(file)]


def _value(name: str, text: str) -> str | float | None:
    if name in ("size", "attention"):
        return text
    return float(text) if text else None


if __name__ == "__main__":
    recorded = Path(sys.argv[1])
    draw(read_rows(recorded), [recorded.with_suffix(".svg")])
