"""What the segmentation experiment found, in numbers: means over seeds with intervals, and mIoU by corruption."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import numpy as np

from attnaudit.errors import MissingExtraError
from attnaudit.records.evaluated_networks import EvaluatedNetwork, Evaluation, open_evaluations
from attnaudit.records.evaluation import ConditionKind, Quantity
from attnaudit.records.files import write_whole
from attnaudit.report.data_files import write_rows
from attnaudit.report.drawing import drawing, look
from attnaudit.statistics.intervals import CONFIDENCE, student_interval

_QUANTITIES = (Quantity.MEAN_IOU, Quantity.MEAN_ACCURACY, Quantity.PIXEL_ACCURACY)
#: What decides: gains are over this recipe, by seed.
_BASELINE = "segment-symmetric"
_POINTS = 100


def write_table(folders: Sequence[Path], file: Path) -> None:
    """Each recipe: clean and corrupted, three quantities, mean over seeds [95 %]; then its gain in mIoU by seed."""
    lines = []
    for evaluation in open_evaluations(folders):
        kinds = [kind for kind in (ConditionKind.CLEAN, ConditionKind.CORRUPTION) if _has(evaluation, kind)]
        kind = kinds[-1]  # the corrupted folder also has its clean pictures, which are fewer
        what = "clean" if kind is ConditionKind.CLEAN else "mean over corruptions"
        lines += [f"{what}, {evaluation.images} pictures", ""]
        lines += ["| recipe | seeds | " + " | ".join(q.words for q in _QUANTITIES) + f" | mIoU over {_BASELINE} |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        groups = _by_recipe(evaluation.networks)
        for recipe, by_seed in sorted(groups.items()):
            cells = [_cell(_value(network, kind, own) for network in by_seed.values()) for own in _QUANTITIES]
            shared = sorted(by_seed.keys() & groups.get(_BASELINE, {}).keys()) if recipe != _BASELINE else []
            gains = [_gain(by_seed[seed], groups[_BASELINE][seed], kind) for seed in shared]
            lines += [f"| {recipe} | {len(by_seed)} | " + " | ".join(cells) + f" | {_cell(gains, '+')} |"]
        lines += [""]
    write_whole(file, "\n".join(lines).encode())
    print("\n".join(lines), flush=True)


def write_corruptions(folders: Sequence[Path], out: Path) -> None:
    """The mIoU by recipe and corruption: the mean over severities and seeds, with its interval over seeds."""
    rows = []
    for evaluation in open_evaluations(folders):
        for recipe, by_seed in sorted(_by_recipe(evaluation.networks).items()):
            found: dict[str, list[float]] = defaultdict(list)
            for network in by_seed.values():
                own: dict[str, list[float]] = defaultdict(list)
                for entry in network.under(ConditionKind.CORRUPTION):
                    own[entry.condition.name].append(entry.accuracy)
                for name, values in own.items():
                    found[name].append(fmean(values))
            for name, values in found.items():
                low, high = student_interval(np.array(values), CONFIDENCE) or (None, None)
                rows.append(
                    {"recipe": recipe, "corruption": name, "seeds": len(values), "mean_iou": fmean(values),
                     "low": low, "high": high}
                )  # fmt: skip
    if not rows:
        return
    write_rows(rows, out / "corruptions.csv")
    with suppress(MissingExtraError):
        _draw(rows, [out / "corruptions.svg"])


def _draw(rows: Sequence[dict[str, object]], paths: Sequence[Path]) -> None:
    names = list(dict.fromkeys(str(row["corruption"]) for row in rows))
    recipes = list(dict.fromkeys(str(row["recipe"]) for row in rows))
    with drawing(paths, 1, 1, (6.5, 3.2)) as axes:
        axis = axes[0, 0]
        for number, recipe in enumerate(recipes):
            own = {row["corruption"]: row for row in rows if row["recipe"] == recipe}
            places = [place + 0.15 * (number - (len(recipes) - 1) / 2) for place in range(len(names))]
            axis.plot(
                places, [_POINTS * float(str(own[name]["mean_iou"])) for name in names], marker="o", ms=3, label=recipe,
                **look(number) | {"ls": ""},
            )  # fmt: skip
            for place, name in zip(places, names, strict=True):
                if own[name]["low"] is not None:
                    ends = [_POINTS * float(str(own[name][end])) for end in ("low", "high")]
                    axis.plot([place, place], ends, color=look(number)["color"], lw=0.8)
        axis.set_xticks(range(len(names)), [name.replace("_", " ") for name in names], rotation=45, ha="right")
        axis.set(ylabel="mIoU in %, mean over seeds")
        axis.figure.legend(loc="outside upper center", ncols=3)


def _by_recipe(networks: Iterable[EvaluatedNetwork]) -> dict[str, dict[int, EvaluatedNetwork]]:
    found: dict[str, dict[int, EvaluatedNetwork]] = defaultdict(dict)
    for network in networks:
        found[network.facts["recipe"]][network.facts["seed"]] = network
    return dict(found)


def _has(evaluation: Evaluation, kind: ConditionKind) -> bool:
    return any(network.under(kind) for network in evaluation.networks)


def _value(network: EvaluatedNetwork, kind: ConditionKind, quantity: Quantity) -> float:
    """The mean over all conditions of a kind."""
    own: Callable[..., bool] = lambda entry: entry.condition.kind is kind and entry.quantity is quantity  # noqa: E731
    return fmean(entry.accuracy for entry in network.accuracies if own(entry))


def _gain(ours: EvaluatedNetwork, theirs: EvaluatedNetwork, kind: ConditionKind) -> float:
    return _value(ours, kind, Quantity.MEAN_IOU) - _value(theirs, kind, Quantity.MEAN_IOU)


def _cell(values: Iterable[float], sign: str = "") -> str:
    found = _POINTS * np.array(list(values))
    if not len(found):
        return "–"
    interval = student_interval(found, CONFIDENCE)
    ends = "" if interval is None else " [" + ", ".join(f"{end:{sign}.2f}" for end in interval) + "]"
    return f"{found.mean():{sign}.2f}{ends}"
