"""Does a change of the code move a number or a verdict?

    python benchmarks/numbers_unmoved.py run OUT        the commands below, with the attnaudit on the path
    python benchmarks/numbers_unmoved.py compare OLD NEW

Run it once with the old code and once with the new. Every row of evidence, every row of a table, every check and every
score must be the same to 1e-12 (of the number, where it is above 1), and every verdict must be the same word. Real
weights and images are found through ATTNAUDIT_DATA. Names of columns that have changed since are translated.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Key = tuple[Any, ...]
ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-12
#: What columns and keys were called before, and are called now.
RENAMED = {
    "interpretation": "theory",
    "interpretations": "theories",
    "control": "reference",
    "controls": "references",
    "picture": "image",
    "pictures": "images",
}
#: What a record in a list is about, so that the order of the list does not matter.
SUBJECT = ("claim", "model", "theory", "measure", "column", "quantity")
#: Of a sentence only the numbers in it are compared.
SENTENCE = "reason"
NUMBER = re.compile(r"[-+−]?\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?")


def commands(data: Path) -> dict[str, list[str]]:
    """The commands by name; each writes its rows to a folder of this name."""
    (weights,) = (data / "deit_tiny").glob("*.safetensors")
    photographs = ["--weights", str(weights), "--images", str(data / "imagenet_val")]
    audits = {
        "minilm": ["audit", "minilm", "--limit", "12"],
        "deit": ["audit", "timm:deit_tiny_patch16_224", *photographs, "--limit", "8"],
        "vit": ["audit", "vit-small-cifar", "--limit", "8"],
        **{
            f"table{number}": ["paper", f"table{number}", "deit_tiny_patch16_224", *photographs, "--limit", "20"]
            for number in (1, 2, 3)
        },
        "table4": ["paper", "table4", "minilm", "--text", str(data / "wikitext" / "wiki.test.raw"), "--limit", "20"],
    }
    evaluations = sorted((ROOT / "docs" / "results" / "robustness" / "evaluations").iterdir())
    return {
        **{name: [*command, "--out", f"run-{name}"] for name, command in audits.items()},
        "judge": ["judge", *map(str, evaluations)],
        "gaussian": ["gaussian", "align"],
    }


def run(out: Path) -> None:
    """All commands, with what they print in `NAME.json` and what they say in `NAME.err`."""
    out.mkdir(parents=True, exist_ok=True)
    for name, command in commands(Path(os.environ["ATTNAUDIT_DATA"]).resolve()).items():
        with (out / f"{name}.json").open("w") as printed, (out / f"{name}.err").open("w") as said:
            program = [sys.executable, "-m", "attnaudit", *command, "--json"]
            done = subprocess.run(program, cwd=out, stdout=printed, stderr=said, check=False)
        print(f"{name}: exit {done.returncode}", flush=True)


@dataclass
class Comparison:
    """What two runs of one command have in common."""

    compared: int = 0
    largest: float = 0.0
    words: int = 0
    added: int = 0
    moved: list[str] = field(default_factory=list)

    def numbers(self, key: object, old: float | None, new: float | None) -> None:
        """Two numbers that should be the same; NaN and None are both missing."""
        self.compared += 1
        missing = [value is None or math.isnan(value) for value in (old, new)]
        if all(missing):
            return
        if old is None or new is None or any(missing):
            self.moved.append(f"{key}: {old} became {new}")
            return
        difference = abs(old - new) / max(1.0, abs(old)) if old != new else 0.0
        self.largest = max(self.largest, difference)
        if not difference <= TOLERANCE:
            self.moved.append(f"{key}: {old} became {new}")

    def word(self, key: object, old: str, new: str) -> None:
        """Two verdicts that should be the same."""
        self.words += 1
        if old != new:
            self.moved.append(f"{key}: {old!r} became {new!r}")


def compare(old: Path, new: Path) -> dict[str, Comparison]:
    """A comparison per command that was run in the old folder."""
    found = {}
    for printed in sorted(old.glob("*.json")):
        comparison = found[printed.stem] = Comparison()
        for before, after in _tables(old, new, printed.stem):
            _compare_rows(comparison, before, after)
        texts = [(folder / printed.name).read_text() for folder in (old, new)]
        _compare_records(comparison, *(dict(_records(json.loads(text))) for text in texts))
    return found


def _tables(old: Path, new: Path, name: str) -> Iterator[tuple[pa.Table, pa.Table]]:
    if (old / f"run-{name}").is_dir():
        yield _evidence(old / f"run-{name}"), _evidence(new / f"run-{name}")
    for path in sorted(old.glob(f"attnaudit-runs/{name}*/*.parquet")):
        yield pq.read_table(path), pq.read_table(new / path.relative_to(old))


def _evidence(folder: Path) -> pa.Table:
    parts = [pq.read_table(part) for part in sorted((folder / "evidence").glob("*.parquet"))]
    return pa.concat_tables([_plain(part) for part in parts])


def _plain(table: pa.Table) -> pa.Table:
    """Without dictionaries, and with the names of today."""
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    columns = [column.cast(kind) for column, kind in zip(table.columns, kinds, strict=True)]
    return pa.table(columns, names=[RENAMED.get(name, name) for name in table.column_names])


def _compare_rows(comparison: Comparison, old: pa.Table, new: pa.Table) -> None:
    """Rows by all that is not a floating-point number; rows that are only in the new table are counted."""
    numbers = [field.name for field in old.schema if pa.types.is_floating(field.type)]
    keys = [name for name in old.column_names if name not in numbers and name != SENTENCE]
    before, after = (_by_key(table, keys, numbers) for table in (old, new))
    comparison.added += len(after.keys() - before.keys())
    for key, values in before.items():
        if key not in after:
            comparison.moved.append(f"{key}: the row is gone")
            continue
        for name, first, second in zip(numbers, values, after[key], strict=True):
            comparison.numbers((*key, name), first, second)


def _by_key(table: pa.Table, keys: list[str], numbers: list[str]) -> dict[Key, tuple[float, ...]]:
    """The numbers of every row; rows with the same key are counted."""
    rows: dict[Key, tuple[float, ...]] = {}
    counts: Counter[Key] = Counter()
    columns = [[table[name].to_pylist() for name in names] for names in (keys, numbers)]
    for key, values in zip(*(zip(*part, strict=True) for part in columns), strict=True):
        rows[(*key, counts[key])] = values
        counts[key] += 1
    return rows


def _records(content: object, path: Key = ()) -> Iterator[tuple[Key, Any]]:
    """Verdicts, scores, rows of tables, checks and statistics wherever they are in a JSON document."""
    if isinstance(content, list):
        for place, entry in enumerate(content):
            yield from _records(entry, (*path, _name(entry) or str(place)))
    elif isinstance(content, dict):
        for key, entry in content.items():
            yield from _records(entry, (*path, RENAMED.get(key, key)))
    elif isinstance(content, str) and path[-1] == SENTENCE:
        for place, number in enumerate(NUMBER.findall(content)):
            yield (*path, str(place)), float(number.replace(",", "").replace("−", "-"))
    elif path and (path[-1] == "word" or not isinstance(content, str | bool)):
        yield path, content


def _name(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return None
    named = {RENAMED.get(key, key): value for key, value in entry.items()}
    return " / ".join(named[key] for key in SUBJECT if isinstance(named.get(key), str)) or None


def _compare_records(comparison: Comparison, old: dict[Key, Any], new: dict[Key, Any]) -> None:
    comparison.added += len(new.keys() - old.keys())
    for path, before in old.items():
        if path not in new:
            comparison.moved.append(f"{path}: {before} is gone")
        elif path[-1] == "word":
            comparison.word(path, str(before), str(new[path]))
        else:
            comparison.numbers(path, before, new[path])


def main(arguments: list[str]) -> int:
    """Run or compare; 1 if anything moved."""
    if arguments[:1] == ["run"] and len(arguments) == 2:
        run(Path(arguments[1]))
        return 0
    if arguments[:1] != ["compare"] or len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    found = compare(Path(arguments[1]), Path(arguments[2]))
    for name, comparison in found.items():
        print(
            f"{name:>9}: {comparison.compared:>9,} numbers, largest difference {comparison.largest:.1e}; "
            f"{comparison.words:>2} verdicts; {len(comparison.moved):,} moved, {comparison.added:,} added"
        )
        for line in comparison.moved[:5]:
            print(f"           {line}")
    return int(any(comparison.moved for comparison in found.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
