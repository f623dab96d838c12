"""How the C library hands out large blocks of memory."""

from __future__ import annotations

import ctypes
import sys

#: mallopt's names for: blocks from this size on are mapped one by one; free memory at the end of the heap is kept up to
#: this size; the heap grows by this much more than is asked for.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = -3, -1, -2
_LARGEST_BLOCK, _KEPT, _GROWTH = 32 * 2**20, 512 * 2**20, 32 * 2**20


def reuse_freed_memory() -> None:
    """Let blocks of megabytes come from the heap, where those that were freed are used again.

    By default glibc asks the system for each of them, and every page of it is filled with zeros at its first use: a
    tenth to a fifth of the time of an audit on a CPU. Elsewhere than on Linux with glibc, nothing is done.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for name, size in ((_MMAP_THRESHOLD, _LARGEST_BLOCK), (_TRIM_THRESHOLD, _KEPT), (_TOP_PAD, _GROWTH)):
            mallopt(name, size)
