"""Entries of the atlas with small tensors in the layout of their packages, converted as a user's would be."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from attnaudit.sources.atlas.entry import AtlasModel
from attnaudit.sources.atlas.packages import assemble


def packed(model: AtlasModel, contents: Mapping[str, bytes], folder: Path) -> AtlasModel:
    """The entry with other contents of its files, which lie in archives in the folder, cut into parts of one size."""
    folder.mkdir(exist_ok=True)
    known = []
    for file in model.files:
        content, count = contents[file.name], len(file.parts)
        size = -(-len(content) // count)
        for place, part in enumerate(file.parts):
            _add(folder, part.requirement, part.path, content[place * size : (place + 1) * size], sdist=part.sdist)
        known.append(replace(file, sha256=hashlib.sha256(content).hexdigest()))
    return replace(model, files=tuple(known))


def _add(folder: Path, requirement: str, path: str, content: bytes, *, sdist: bool) -> None:
    name, _, version = requirement.partition("==")
    stem = f"{name.replace('-', '_')}-{version}"
    if sdist:
        source = folder / "content"
        source.write_bytes(content)
        with tarfile.open(folder / f"{stem}.tar.gz", "w:gz") as archive:
            archive.add(source, f"{stem}/{path}")
        source.unlink()
        return
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "a") as archive:
        archive.writestr(path, content)


def converted(model: AtlasModel, contents: Mapping[str, bytes], folder: Path) -> Path:
    """The folder of the entry, converted from archives with these contents."""
    entry = packed(model, contents, folder / "archives")
    (folder / "files").mkdir()
    files = {file.name: folder / "files" / file.name for file in entry.files}
    for file in entry.files:
        assert assemble(file, [folder / "archives"], files[file.name]), file.name
    made = folder / "converted"
    made.mkdir()
    entry.convert(files, made)
    return made
