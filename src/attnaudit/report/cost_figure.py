"""The figure of what attention variants cost: operations, memory and time, over softmax attention of the same size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attnaudit.cost.networks import SOFTMAX
from attnaudit.records.cost import CostTable, PassCost
from attnaudit.report.drawing import drawing, look

Number = Callable[[PassCost], float | None]
#: What a pass costs, by the name and unit of the number; None where it was not measured.
QUANTITIES: Mapping[tuple[str, str], Number] = {
    ("operations", "GFLOP"): lambda own: own.operations / 1e9,
    ("memory", "MiB"): lambda own: own.memory / 2**20,
    ("time", "ms"): lambda own: 1e3 * own.times.median,
    ("time of a CUDA graph", "graph ms"): lambda own: None if own.graph is None else 1e3 * own.graph.median,
}
#: The two passes of a network, by name.
PASSES = ("inference", "training")


def measured(table: CostTable) -> dict[tuple[str, str], Number]:
    """The quantities that at least one network of a table has."""
    costs = [getattr(own, passed) for own in table.networks for passed in PASSES]
    return {name: of for name, of in QUANTITIES.items() if any(of(own) is not None for own in costs)}


def ratios(table: CostTable, passed: str, number: Number) -> dict[tuple[str, str], float]:
    """By attention and size: how many times the number of softmax attention it is."""
    found = {(own.attention, own.size): number(getattr(own, passed)) for own in table.networks}
    base = {size: found.get((SOFTMAX, size)) for size in table.sizes}
    return {
        key: own / softmax for key, own in found.items() if own is not None and (softmax := base[key[1]]) is not None
    }


def cost_rows(table: CostTable) -> list[dict[str, object]]:
    """A row for every network, for a CSV file."""
    return [
        {"size": own.size, "attention": own.attention, "M parameters": own.parameters / 1e6}
        | {
            f"{passed}, {unit}": of(getattr(own, passed))
            for (_, unit), of in measured(table).items()
            for passed in PASSES
        }
        for own in table.networks
    ]


def cost_figure(table: CostTable, paths: Sequence[Path]) -> None:
    """A line per attention, a panel per cost; filled for training, hollow for inference."""
    attentions = list(dict.fromkeys(own.attention for own in table.networks))
    shown = measured(table)
    with drawing(paths, 1, len(shown), (1.6 + 1.9 * len(shown), 1.1 + 0.18 * len(attentions))) as axes:
        for axis, ((title, _), number) in zip(axes[0], shown.items(), strict=True):
            for passed in PASSES:
                for (attention, size), ratio in ratios(table, passed, number).items():
                    place = table.sizes.index(size)
                    height = attentions.index(attention) + 0.22 * (place - (len(table.sizes) - 1) / 2)
                    colour, filled = look(place)["color"], passed == "training"
                    name = size if filled and attention == SOFTMAX else None
                    fill = colour if filled else "none"
                    axis.plot(ratio, height, "o", ms=3, mew=0.8, mec=colour, mfc=fill, color=colour, label=name)
            axis.axvline(1, color="0.6", lw=0.8, zorder=0)
            axis.grid(axis="y", color="0.92", lw=0.6)
            axis.set(title=title, xlabel="× softmax attention", yticks=range(len(attentions)), yticklabels=[])
            axis.set_ylim(len(attentions) - 0.4, -0.6)
        axes[0, 0].set_yticklabels(attentions)
        handles, names = axes[0, 0].get_legend_handles_labels()
        axes[0, 0].figure.legend(handles, names, loc="outside upper center", ncols=len(names),
                                 title="filled: training; hollow: inference", title_fontsize=8)  # fmt: skip
