"""Inputs that are read and prepared in a thread of their own, while those before them are measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property, partial

from attnaudit.sources.inputs import Prepared, Shard

Work = Callable[[], Prepared]


class PreparedAhead:
    """What was begun before its time, by a key; what is wrong with it is said when it is taken, as if it began then."""

    def __init__(self) -> None:
        self._begun: dict[Hashable, Future[Prepared]] = {}

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, thread_name_prefix="attnaudit-inputs")

    def begin(self, key: Hashable, work: Work) -> None:
        """Begin some work, unless it was begun before, in place of what was begun and never taken."""
        if key in self._begun:
            return
        for other in self._begun.values():
            other.cancel()
        self._begun = {key: self._thread.submit(work)}

    def take(self, key: Hashable, work: Work) -> Prepared:
        """The result of the work, which is done now if it was not begun."""
        begun = self._begun.pop(key, None)
        return work() if begun is None else begun.result()


def each_ahead(shards: Sequence[Shard], prepare: Callable[[Shard], Prepared]) -> Iterator[Prepared]:
    """Every shard prepared, the next one while the caller is busy with the one before."""
    ahead = PreparedAhead()
    for place, shard in enumerate(shards):
        prepared = ahead.take(place, partial(prepare, shard))
        if place + 1 < len(shards):
            ahead.begin(place + 1, partial(prepare, shards[place + 1]))
        yield prepared
