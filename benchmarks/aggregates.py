"""What it costs to keep rows, and what to keep summaries: bytes per head and seconds, and whether they say the same.

    python -m benchmarks.aggregates MODEL [--limit 25 100] [--images FOLDER | --text FILE] --out FOLDER

For each number of inputs the model is audited once, with rows, in this process and one thread. Then the same rows are
folded into summaries. Seconds are processor time, because machines are shared. A head is one head of the network on
one input, as in the evidence; `summary.json`, the verdicts, is the same for both and counted apart.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import attnaudit
from attnaudit.numerics.threads import single_threaded
from attnaudit.records.keep import Keep

T = TypeVar("T")


@dataclass(frozen=True)
class Kept:
    """A finished run that kept one of the two: seconds to come by it, to open it and to write its page."""

    keep: Keep
    bytes: int
    seconds: float
    opening: float
    page: float
    summary: Any


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What it returns, and the processor seconds it took."""
    start = time.process_time()
    found = work()
    return found, time.process_time() - start


def kept(keep: Keep, model: str, inputs: Path | None, limit: int, out: Path) -> Kept:
    """An audit, or what is missing of it in its folder."""
    _, seconds = timed(
        lambda: attnaudit.audit(model, inputs, limit=limit, workers=1, keep=keep, out=out, progress=False)
    )
    run, opening = timed(lambda: attnaudit.open(out))
    _, page = timed(run.report)
    size = sum(part.stat().st_size for part in (out / "evidence").iterdir())
    return Kept(keep, size, seconds, opening, page, json.loads((out / "summary.json").read_text()))


def differences(one: Any, other: Any) -> Iterator[float]:
    """Between all numbers of two summaries; infinite for anything else that differs."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name]) if name != "digest" else ()
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for left, right in zip(one, other, strict=True):
            yield from differences(left, right)
    elif isinstance(one, float) and isinstance(other, float):
        yield abs(one - other)
    else:
        yield 0.0 if one == other else float("inf")


def main() -> None:
    """Audit, fold, compare, and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--limit", type=int, nargs="+", default=[25, 100])
    parser.add_argument("--images", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    print("inputs  heads  keep       evidence bytes  per head  seconds    open    page")
    for limit in asked.limit:
        rows_at, summaries_at = (asked.out / f"{asked.model.replace(':', '-')}-{limit}-{keep}" for keep in Keep)
        with single_threaded():
            rows = kept(Keep.ROWS, asked.model, asked.images or asked.text, limit, rows_at)
            shutil.copytree(rows_at, summaries_at, dirs_exist_ok=True)
            summaries = kept(Keep.SUMMARIES, asked.model, asked.images or asked.text, limit, summaries_at)
        observed = next(iter(rows.summary["models"].values()))["observed"]
        heads = max(own["n"] + sum(own["rejected"].values()) for own in observed.values())
        for own in (rows, summaries):
            print(
                f"{limit:6}  {heads:5}  {own.keep:9}  {own.bytes:14,}  {own.bytes / heads:8.1f}  {own.seconds:7.1f}"
                f"  {own.opening:6.2f}  {own.page:6.2f}"
            )
        apart = max(differences(rows.summary, summaries.summary))
        verdicts = (rows_at / "summary.json").stat().st_size
        print(
            f"        rows take {rows.bytes / summaries.bytes:.1f} times the bytes; summary.json has {verdicts:,}; "
            f"the largest difference between its numbers is {apart:g}"
        )


if __name__ == "__main__":
    main()
