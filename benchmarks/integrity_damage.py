"""Run folders damaged in every way that comes to mind: no command may end in a traceback, or with other numbers.

Copies of the folder of an audit, a training and an evaluation are damaged, file by file: truncated, emptied, made
binary, deleted, replaced by a folder or by a link to nowhere, made unreadable, given other types, deep nesting, or the
content of another file. Then they are reported, opened, compared, judged and resumed. A command may say one sentence
and exit with 1 or 2; or succeed, if its numbers are those of the undamaged folder.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.integrity_runs import SmallRun, content, finish, prepare

from attnaudit.cli import main as attnaudit
from attnaudit.errors import AttnAuditError
from attnaudit.numerics.digest import digest
from attnaudit.records.run_kind import RunKind

Damage = Callable[[Path, random.Random], None]


def _truncate(file: Path, generator: random.Random) -> None:
    file.write_bytes(file.read_bytes()[: generator.randrange(file.stat().st_size)])


def _binary(file: Path, generator: random.Random) -> None:
    file.write_bytes(generator.randbytes(generator.randrange(1, 2000)))


def _folder(file: Path, generator: random.Random) -> None:
    file.unlink()
    file.mkdir()


def _link(file: Path, generator: random.Random) -> None:
    file.unlink()
    file.symlink_to("nowhere")


def _loop(file: Path, generator: random.Random) -> None:
    file.unlink()
    file.symlink_to(file.name)


def _other(file: Path, generator: random.Random) -> None:
    others = [own for own in file.parent.iterdir() if own.is_file() and own != file]
    file.write_bytes(generator.choice(others).read_bytes() if others else b"")


def _nested(file: Path, generator: random.Random) -> None:
    depth = generator.choice((150, 1000, 100_000))
    file.write_text('{"identity": ' + "[" * depth + "]" * depth + "}")


def _typed(file: Path, generator: random.Random) -> None:
    """Another value somewhere, with a digest that fits."""
    if file.suffix != ".json":
        return _binary(file, generator)
    found = json.loads(file.read_text())
    found.pop("digest", None)
    holder, key = found, generator.choice(sorted(found))
    while isinstance(holder[key], dict | list) and holder[key] and generator.random() < 0.7:
        holder = holder[key]
        key = generator.choice(sorted(holder)) if isinstance(holder, dict) else generator.randrange(len(holder))
    values = (None, "x", -1, [], {}, 10**400, True, "\ud800", "\x00", 1e308, [[]], {"x": {}})
    old, holder[key] = holder[key], generator.choice(values)
    if type(old) is type(holder[key]):  # another valid value cannot be told from the right one with a digest that fits
        holder[key] = {"unknown": 1}
    file.write_text(json.dumps({**found, "digest": digest(found)}))
    return None


DAMAGES: dict[str, Damage] = {
    "truncated": _truncate,
    "emptied": lambda file, generator: file.write_bytes(b"") and None,
    "binary": _binary,
    "deleted": lambda file, generator: file.unlink(),
    "a folder": _folder,
    "a link to nowhere": _link,
    "a link to itself": _loop,
    "unreadable": lambda file, generator: file.chmod(0),
    "another file": _other,
    "nested": _nested,
    "other types": _typed,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--place", type=Path, default=Path("runs/integrity"))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--resumed", type=int, default=3, help="Every how many damaged folders are resumed, too.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    runs, counts, faults = prepare(arguments.place), Counter[str](), []
    for name in ("serial", "train", "robust"):
        run, whole = runs[name], arguments.place / f"whole-{name}"
        if not (whole / "summary.json").exists():
            finish(run, whole)
        files = [file.relative_to(whole) for file in _files(whole)]
        copy, tried, expected = arguments.place / "damaged" / whole.name, 0, {}
        _copy(whole, copy)
        for command in _commands(run, copy, whole, resumed=False):
            _run(command)
            expected[command[0]] = _shown(command, _run(command)[1], copy)
        for words, damage in DAMAGES.items():
            for file in files * arguments.rounds:
                generator = random.Random(f"{arguments.seed} {name} {words} {file} {tried}")
                tried += 1
                _copy(whole, copy)
                _folder_for(copy / file, words) if (copy / file).is_dir() else damage(copy / file, generator)
                for command in _commands(run, copy, whole, resumed=tried % arguments.resumed == 0):
                    outcome = _outcome(command, run, copy, whole, expected)
                    counts[f"{run.kind}, {command[0]}: {outcome.partition(':')[0]}"] += 1
                    if outcome.startswith(("TRACEBACK", "SILENT")):
                        faults.append(f"{command[0]}, {file} {words}: {outcome}")
    for words in sorted(counts):
        print(f"{counts[words]:5}  {words}")
    print(*sorted(set(faults)), sep="\n")
    print(f"{sum(counts.values())} commands, seed {arguments.seed}: {len(faults)} tracebacks or silent changes")


def _files(whole: Path) -> list[Path]:
    """Those that are read again, and one part for all."""
    named = [*whole.glob("*.json"), *whole.glob("checkpoint.pt"), *whole.glob("model.safetensors")]
    return [*sorted(named), *sorted(whole.glob("evidence/*.parquet"))[:1], whole / "evidence"]


def _commands(run: SmallRun, copy: Path, whole: Path, *, resumed: bool) -> list[list[str]]:
    found = [["report", str(copy)], ["diff", str(whole), str(copy)]] if run.kind is RunKind.AUDIT else []
    found += [] if run.kind is RunKind.AUDIT else [["judge", str(copy), "--json"]]
    return found + ([[*run.arguments, "--out", str(copy)]] if resumed else [])


def _run(command: list[str]) -> tuple[int, str, str]:
    stdout, stderr = io.StringIO(), io.StringIO()
    sys.argv = ["attnaudit", *command]
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), contextlib.suppress(SystemExit):
        try:
            attnaudit()
        except SystemExit as stopped:
            return int(stopped.code or 0), stdout.getvalue(), stderr.getvalue()
    return 0, stdout.getvalue(), stderr.getvalue()


def _shown(command: list[str], stdout: str, copy: Path) -> str:
    """What a reader gets to see."""
    return (copy / "report.html").read_text() if command[0] == "report" else stdout


def _outcome(command: list[str], run: SmallRun, copy: Path, whole: Path, expected: dict[str, str]) -> str:
    try:
        code, stdout, stderr = _run(command)
    except BaseException as error:
        return f"TRACEBACK: {type(error).__name__}: {error}"[:300]
    if code:
        one = code in (1, 2) and "Traceback" not in stderr and stderr.splitlines()[-1].startswith("attnaudit: ")
        return "one sentence" if one else f"TRACEBACK: {stderr[-200:]}"
    if command[0] in expected:
        return "the right answer" if _shown(command, stdout, copy) == expected[command[0]] else "SILENT"
    try:
        return "resumed to equal content" if content(run.kind, copy) == content(run.kind, whole) else "SILENT"
    except AttnAuditError as error:
        return f"SILENT: {error}"


def _copy(whole: Path, copy: Path) -> None:
    if copy.exists():
        for file in copy.rglob("*"):
            if not file.is_symlink():
                file.chmod(0o755)
        shutil.rmtree(copy)
    shutil.copytree(whole, copy, symlinks=True)


def _folder_for(folder: Path, words: str) -> None:
    """The damage of a folder: it is empty, unreadable, gone, or something else is in its place."""
    if words == "unreadable":
        return folder.chmod(0)
    shutil.rmtree(folder)
    if words in ("truncated", "emptied"):
        folder.mkdir()
    elif "link" in words:
        folder.symlink_to("nowhere" if "nowhere" in words else folder.name)
    elif words != "deleted":
        folder.write_text(words)
    return None


if __name__ == "__main__":
    main()
