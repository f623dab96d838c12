"""Single bits of a run folder that change on disk: each must be noticed, with the file's name, or change nothing.

Folders of an audit, a training and an evaluation are made once in `--place`, and read after every flip by the
functions behind `report`, `open`, `judge` and resuming.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

from benchmarks.integrity_runs import content, finish, prepare

from attnaudit.errors import AttnAuditError
from attnaudit.records.run_kind import RunKind


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=Path("runs/integrity"))
    parser.add_argument("--flips", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    runs = prepare(arguments.place)
    subjects = []
    for name in ("serial", "train", "robust"):
        out = arguments.place / f"whole-{name}"
        if not (out / "summary.json").exists():
            finish(runs[name], out)
        files = sorted([*out.glob("*.json"), *out.glob("evidence/*.parquet")])
        subjects += [(runs[name].kind, out, content(runs[name].kind, out), file) for file in files]
    generator, counts = random.Random(arguments.seed), Counter[str]()
    for _ in range(arguments.flips):
        sort = generator.choice(sorted({(own[0], _sort(own[3])) for own in subjects}))  # so that each has its share
        kind, out, before, file = generator.choice([own for own in subjects if (own[0], _sort(own[3])) == sort])
        original = file.read_bytes()
        place = generator.randrange(8 * len(original))
        changed = bytearray(original)
        changed[place // 8] ^= 1 << place % 8
        try:
            file.write_bytes(changed)
            counts[f"{kind}, {sort[1]}: {_outcome(kind, out, before, file)}"] += 1
        finally:
            file.write_bytes(original)
    for words in sorted(counts):
        print(f"{counts[words]:5}  {words}")
    silent = sum(count for words, count in counts.items() if "SILENT" in words or "unnamed" in words)
    print(f"{arguments.flips} flips of {len(subjects)} files, seed {arguments.seed}: {silent} silent changes")


def _sort(file: Path) -> str:
    return "part" if file.suffix == ".parquet" else file.name


def _outcome(kind: RunKind, out: Path, before: str, file: Path) -> str:
    try:
        return "content equal" if content(kind, out) == before else "SILENT change"
    except AttnAuditError as error:
        return "error that names the file" if str(file) in str(error) else f"unnamed: {error}"


if __name__ == "__main__":
    main()
