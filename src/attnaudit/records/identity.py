"""Whose a folder is: the command that begins it leaves its identity in a file, and one with another is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from attnaudit.display import enumerated
from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.files import cannot_write, is_temporary
from attnaudit.records.lock import is_lock_file

#: How data and weights are identified.
_HASH = re.compile(r"[0-9a-f]{16,}")
#: Digits of the hash of an input in older run folders.
_BYTES_ALONE = 32
#: Lists up to this length are shown, of others only the length.
_SHORT = 4
#: What an identity file is, in the words of an error.
SETTINGS = "the settings of a run"
#: The identity file of an atlas, whose runs are in folders below it.
ATLAS = "atlas.json"


@with_config(ConfigDict(extra="allow"))
class RunHeader(TypedDict):
    """What every identity file has, in this order, beside what belongs to the kind of its run."""

    format: NotRequired[int]
    identity: dict[str, Any]
    attnaudit: NotRequired[str]


def begins(file: Path, identity: dict[str, Any]) -> bool:
    """Whether the folder of an identity file is to be begun; False if it was, with the same identity.

    Raises:
        RunFolderError: it holds something else, or was begun with another identity.
    """
    folder = file.parent
    check_ours(file)
    if not file.exists():
        return True
    found = read_header(file)["identity"]
    if found.get("kind") != identity.get("kind"):
        raise RunFolderError(f"{folder} holds a run of another command: give --out another folder.")
    if found not in (identity, _as_before(identity)):
        differing = [name for name in identity.keys() | found.keys() if found.get(name) != identity.get(name)]
        # Lists last: which images were drawn follows from a seed, which can be shown.
        differing.sort(key=lambda name: (isinstance(identity.get(name), list), name))
        detail = _first_difference(found, identity, differing)
        raise RunFolderError(
            f"{folder} holds a run with other {enumerated(differing, 'and')}{detail}: give --out another folder."
        )
    return False


def _as_before(identity: dict[str, Any]) -> dict[str, Any]:
    """The identity as an older version wrote it, which hashed the bytes of tensors alone: our hash begins with that.

    The parts of such a run have other names, and are computed again.
    """
    if not isinstance(identity.get("inputs"), list):
        return identity
    return {**identity, "inputs": [[name, content[:_BYTES_ALONE]] for name, content in identity["inputs"]]}


def check_ours(file: Path) -> None:
    """Check that a folder is empty, missing, or has its identity file.

    Raises:
        RunFolderError: it holds something else, or cannot be read.
    """
    folder = file.parent
    try:
        others = [] if file.exists() or not folder.is_dir() else list(folder.iterdir())
    except OSError as error:
        raise cannot_write(folder, error) from error
    if not all(is_lock_file(other) or is_temporary(other) for other in others):
        ours = "an atlas" if file.name == ATLAS else "a run folder"
        raise RunFolderError(f"{folder} is neither empty nor {ours}: give --out another folder.")


def read_header(file: Path, *, digest_required: bool = True) -> RunHeader:
    """The content of an identity file as plain data: the `identity`, and what else was written down.

    `digest_required` is False for a file that may be older than digests.

    Raises:
        RunFolderError: there is no such file, or it is damaged.
    """
    try:
        return json_file.read(RunHeader, file, SETTINGS, digest_required=digest_required)
    except FileNotFoundError as error:
        if (file.parent / ATLAS).is_file():
            raise RunFolderError(f"{file.parent} is an atlas: give one of the folders below it.") from error
        raise RunFolderError(
            f"{file.parent} is not a run folder, for it has no {file.name}: give one that attnaudit wrote."
        ) from error


def _first_difference(found: dict[str, Any], wanted: dict[str, Any], names: Sequence[str]) -> str:
    """In brackets; nothing where only hashes differ, which say nothing to a reader."""
    return next(filter(None, (_difference(found.get(name), wanted.get(name)) for name in names)), "")


def _difference(old: Any, new: Any, names: tuple[str, ...] = ()) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        name = next(key for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key))
        return _difference(old.get(name), new.get(name), (*names, name))
    place = f"{'.'.join(names)} " if names else ""
    if isinstance(old, list) and isinstance(new, list) and len(old) != len(new):
        return f" ({place}{len(old)} there, {len(new)} here)"
    if isinstance(old, list) and isinstance(new, list) and len(old) > _SHORT:
        return f" ({place}of the same number)"
    if _HASH.search(str(old)) and _HASH.search(str(new)):
        return ""
    return f" ({place}{old} there, {new} here)"
