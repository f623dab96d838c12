"""Ctrl-C and SIGTERM: answered at once, and the command has ended within two seconds, whatever it was doing.

Python runs signal handlers in the main thread, between two steps of the program. While that thread is inside a long
computation nothing would happen, so another thread waits for signals. Ending hard is safe, because files are written
whole or not at all.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Seconds that a command has to end by itself, which removes its temporary files.
_GRACE = 0.5
_WORDS = {
    True: b"attnaudit: stopping; repeat the command to resume.\n",
    False: b"attnaudit: stopping; the command begins anew when repeated.\n",
}
#: Progress bars hide it.
_SHOW_CURSOR = b"\x1b[?25h"


class Stopping:
    """Whether a signal came, and what follows from it."""

    def __init__(self, resumes: bool) -> None:
        self._resumes = resumes
        self._signal: int | None = None
        self._interrupted = False
        self._announced = threading.Lock()

    @property
    def is_due(self) -> bool:
        """Whether a signal came."""
        return self._signal is not None

    def end(self) -> None:
        """End the process, with exit code 130 or 143.

        What other libraries want to clean up is cleaned up, but memory is not freed piece by piece, which takes seconds
        after torch was imported and keeps the watching thread from setting a limit.
        """
        atexit._run_exitfuncs()
        self._exit()

    def _exit(self) -> None:
        os._exit(128 + (self._signal or 0))

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """In the main thread: leave the program from wherever it is; once, so that nothing disturbs its end."""
        self._signal = self._signal or number
        self.announce()
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt

    def announce(self) -> None:
        """Say it, the first time."""
        if self._announced.acquire(blocking=False):
            os.write(2, (_SHOW_CURSOR if os.isatty(2) else b"") + _WORDS[self._resumes])

    def watch(self, signals: socket.socket) -> None:
        """In a thread of its own: wait for a signal, kill the workers, and end the process unless it ends itself."""
        while number := signals.recv(1):
            if number[0] in _SIGNALS:
                break
        else:
            return
        self._signal = number[0]
        self.announce()
        for worker in multiprocessing.active_children():
            worker.kill()
        threading.Event().wait(_GRACE)
        self._exit()


@contextmanager
def watched_signals(*, resumes: bool = True) -> Iterator[Stopping]:
    """Stop the program within the block when a signal asks for it; `resumes` is whether its work can be continued."""
    stopping = Stopping(resumes)
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set handlers
        yield stopping
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    previous_handlers = {number: signal.signal(number, stopping.interrupt) for number in _SIGNALS}
    previous_fd = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=stopping.watch, args=(receiver,), daemon=True).start()
    try:
        yield stopping
    finally:
        if not stopping.is_due:  # otherwise the thread still sees to it that the process ends
            signal.set_wakeup_fd(previous_fd)
            for number, handler in previous_handlers.items():
                signal.signal(number, handler)
            sender.close()
