"""What `attnaudit bench --json` printed, as a table for a page: one run, or an older one beside a newer one.

python -m benchmarks.stage_table FILE [NEWER]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Stages below this share of the engine are summed up.
SMALL = 0.01


def table(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Lines of Markdown: milliseconds per head by stage and pass with the floor of the last run, seconds around."""
    names = ["before", "now"] if len(runs) == 2 else ["now"]
    yield f"| stage, ms per head | {' | '.join(names)} | floor |"
    yield f"| --- |{' ---: |' * (len(runs) + 1)}"
    parts = [run["microseconds_per_head"] for run in runs]
    stages = sorted(dict.fromkeys(stage for part in parts for stage in part), key=lambda stage: -parts[0].get(stage, 0))
    floor = runs[-1]["floor"]
    small = [s for s in stages if all(p.get(s, 0) < SMALL * r["total"] for p, r in zip(parts, runs, strict=True))]
    for stage in (stage for stage in stages if stage not in small):
        yield _row(stage, [part.get(stage, 0) for part in parts], floor.get(stage, 0))
    others = f"{len(small)} smaller ones"
    yield _row(others, [sum(part.get(s, 0) for s in small) for part in parts], sum(floor.get(s, 0) for s in small))
    yield _row("**engine**", [run["total"] for run in runs], runs[-1]["floor_total"])
    yield _cells("times its own floor", [f"{run['total_over_floor']:.2f}" for run in runs], "")
    yield _row("one eigenproblem of 197 x 197 in the same run", [run["reference"] for run in runs], 0)
    yield _cells("engine, in such problems per head", [f"{run['total_over_reference']:.1f}" for run in runs], "")
    for name in dict.fromkeys(name for run in runs for name in run["passes"]):
        yield _row(f"pass: {name}", [run["passes"].get(name, 0) for run in runs], 0)
    for name in dict.fromkeys(name for run in runs for name in run["seconds_around"]):
        yield _cells(f"{name}, once, s", [f"{run['seconds_around'].get(name, 0):.2f}" for run in runs], "")
    yield _cells("from shell to page, s", [f"{run['seconds_from_shell_to_page']:.1f}" for run in runs], "")


def _row(name: str, microseconds: Sequence[float], floor: float) -> str:
    return _cells(name, [f"{spent / 1e3:.2f}" for spent in microseconds], f"{floor / 1e3:.2f}" if floor else "")


def _cells(name: str, cells: Sequence[str], floor: str) -> str:
    return f"| {name} | {' | '.join(cells)} | {floor} |"


if __name__ == "__main__":
    for line in table([json.loads(Path(name).read_text()) for name in sys.argv[1:]]):
        print(line)
