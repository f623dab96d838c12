"""Who may write into a run folder: one process at a time. The operating system frees the lock when that one dies."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from attnaudit.errors import RunFolderError
from attnaudit.records import json_file
from attnaudit.records.files import cannot_write, remove_file

_LOCK = ".lock"
_HOLDER = ".lock.json"
#: Longer commands are cut in an error.
_SHOWN = 80


@dataclass(frozen=True)
class LockHolder:
    """The process that holds a lock, in a file beside it; it counts only while the lock is held."""

    host: str
    pid: int
    command: str
    since: str

    @staticmethod
    def this_process() -> LockHolder:
        """The one that runs now."""
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        return LockHolder(socket.gethostname(), os.getpid(), shlex.join(sys.argv), now)

    @property
    def is_alive(self) -> bool:
        """Whether the process exists; where that cannot be asked, as on another machine, it is assumed."""
        if self.host != socket.gethostname() or os.name != "posix":
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # it belongs to someone else
            return True
        return True

    def __str__(self) -> str:
        command = self.command if len(self.command) <= _SHOWN else f"{self.command[:_SHOWN]}…"
        return f"process {self.pid} on {self.host} since {self.since} ({command})"


class FolderLock:
    """The lock of a folder. It can be taken several times, and is free again when it was released as often."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = FileLock(folder / _LOCK, thread_local=False)
        #: How often it is to be released before it is free.
        self.times = 0

    def acquire(self) -> bool:
        """Take the lock, which makes other processes stay away; True if it was not held already.

        Raises:
            RunFolderError: someone else holds it, or the folder cannot be written.
        """
        self.times += 1
        if self.times > 1:
            return False
        try:
            self._lock.acquire(blocking=False)
        except Timeout as error:
            self.times = 0
            holder = self.holder() or "another process"
            raise RunFolderError(
                f"{self._folder} is being written by {holder}: wait until it has finished, or give --out another "
                "folder."
            ) from error
        except OSError as error:
            self.times = 0
            raise cannot_write(self._folder, error) from error
        json_file.write(self._folder / _HOLDER, LockHolder.this_process())
        return True

    def release(self) -> None:
        """Give the lock back."""
        self.times = max(self.times - 1, 0)
        if self.times == 0 and self._lock.is_locked:
            if self._folder.exists():
                remove_file(self._folder / _HOLDER)
            self._lock.release()

    def holder(self) -> LockHolder | None:
        """The process that holds the lock, as far as its file tells: the lock itself is not touched."""
        try:
            return json_file.read(LockHolder, self._folder / _HOLDER, "the holder of a lock")
        except (FileNotFoundError, RunFolderError):  # there is none, or it has just come or gone
            return None


def is_lock_file(path: Path) -> bool:
    """Whether a file of a folder belongs to its lock."""
    return path.name in (_LOCK, _HOLDER)
