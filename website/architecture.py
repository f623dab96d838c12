"""The page about the architecture, made from the code: `python -m website.architecture` writes it.

`architecture.json` keeps what the code was before the packages were rebuilt (`python -m website.architecture before
CHECKOUT COMMIT` writes it), and how large it was right after (`python -m website.architecture after`).
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from website.house import LEAVES, ORDER, room
from website.package import Package

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
RECORD = ROOT / "website" / "architecture.json"
TEMPLATE = ROOT / "website" / "architecture.md"
SOURCE = ROOT / "src" / "attnaudit"
#: Files, lines and median of each package.
Sizes = Mapping[str, Sequence[int]]
#: The order of the packages before, and the single files that were their leaves.
ORDER_BEFORE = (
    *("leaves", "attention", "gaussian", "sources", "capture", "kernel", "measures", "evidence", "claims"),
    *("training", "robustness", "report", "api", "cli"),
)
LEAVES_BEFORE = ("blocks", "notebook", "typed_settings")
ORDER_NOW = ("leaves", *(name for name in ORDER if name not in LEAVES))


def measured(package: Package, leaves: Sequence[str]) -> dict[str, Any]:
    """Sizes, imports between parts, class names that occur twice, and files of `training` with one importer."""
    sizes: dict[str, list[int]] = defaultdict(list)
    imports: dict[str, set[str]] = defaultdict(set)
    importers: dict[str, set[str]] = defaultdict(set)
    for name, module in package.modules.items():
        here = _part(package, name, leaves)
        sizes[here].append(module.lines)
        for home in {package.home(use.name) for use in package.uses(name)} - {None, name}:
            assert home is not None
            importers[home].add(name)
            if (there := _part(package, home, leaves)) != here:
                imports[here].add(there)
    classes = Counter(name for module in package.modules.values() for name in module.classes)
    # A task is known to the list of tasks alone, as a measure is to its registry: it is no crumb of another file.
    training = [name for name in package.modules if name.startswith(f"{package.name}.training.")]
    training = [name for name in training if not name.endswith("_task")]
    return {
        "sizes": {part: [len(lines), sum(lines), round(statistics.median(lines))] for part, lines in sizes.items()},
        "imports": {part: sorted(others) for part, others in imports.items()},
        "twice": sorted(name for name, count in classes.items() if count > 1),
        "training": {"files": len(training), "one_importer": sum(len(importers[name]) == 1 for name in training)},
    }


def page(record: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The page: its words, and the numbers before and now."""
    before = record["before"]
    return TEMPLATE.read_text().format(
        commit=before["commit"],
        imports_before=_diagram(ORDER_BEFORE, before["imports"]),
        imports_now=_diagram(ORDER_NOW, now["imports"]),
        sizes=_table(before["sizes"], record["after"]["sizes"]),
        twice_before=_listed(before["twice"]),
        twice_now=_listed(now["twice"]),
        single_before=_share(before["training"]),
        single_now=_share(now["training"]),
    )


def _part(package: Package, module: str, leaves: Sequence[str]) -> str:
    here = room(package, module)
    return "leaves" if here in leaves else "front door" if here in ("", "__main__") else here


def _diagram(order: Sequence[str], imports: Mapping[str, Sequence[str]]) -> str:
    """A matrix: if imports point left, nothing is marked right of the diagonal."""
    width = max(len(name) for name in order)
    lines = [" " * (width + 4) + "".join(f"{place:>3}" for place in range(1, len(order) + 1))]
    for place, name in enumerate(order, 1):
        marks = ("■" if other == name else "×" if other in imports.get(name, ()) else "·" for other in order)
        lines.append(f"{place:>2} {name:<{width}} " + "".join(f"{mark:>3}" for mark in marks))
    return "\n".join(lines)


def _table(before: Sizes, after: Sizes) -> str:
    heading = "| package | files before | lines | median | files after | lines | median |"
    order = dict.fromkeys(("front door", *ORDER_NOW, *ORDER_BEFORE))
    rows = [_row(f"`{name}`", before.get(name), after.get(name)) for name in order if name in before or name in after]
    return "\n".join([heading, "| --- " + "| ---: " * 6 + "|", *rows, _row("in all", _total(before), _total(after))])


def _row(name: str, *sizes: Sequence[int | None] | None) -> str:
    cells = [f"{number:,}" if number is not None else "" for size in sizes for number in size or (None,) * 3]
    return " | ".join([f"| {name}", *cells]) + " |"


def _total(sizes: Sizes) -> list[int | None]:
    return [sum(files for files, _, _ in sizes.values()), sum(lines for _, lines, _ in sizes.values()), None]


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} ({', '.join(f'`{name}`' for name in names)})" if names else "none"


def _share(training: Mapping[str, int]) -> str:
    return f"{training['one_importer']} of {training['files']}"


def main(arguments: Sequence[str]) -> None:
    """Write the page, after what was measured if asked to measure."""
    record = json.loads(RECORD.read_text())
    now = measured(Package.read(SOURCE), LEAVES)
    if arguments[:1] == ["before"]:
        _, folder, commit = arguments
        old = measured(Package.read(Path(folder) / "src" / "attnaudit"), (*LEAVES, *LEAVES_BEFORE))
        record["before"] = {"commit": commit, **old}
    elif arguments == ["after"]:
        record["after"] = {"sizes": now["sizes"]}
    RECORD.write_text(json.dumps(record) + "\n")
    PAGE.write_text(page(record, now))


if __name__ == "__main__":
    main(sys.argv[1:])
