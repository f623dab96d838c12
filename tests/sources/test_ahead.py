"""Inputs that are prepared beside the computation are those that would be prepared before it."""

import threading

import pytest

from attnaudit.errors import InputError
from attnaudit.sources.ahead import PreparedAhead, each_ahead


def test_what_was_begun_is_done_once_and_in_another_thread():
    ahead, threads = PreparedAhead(), []
    work = lambda: threads.append(threading.current_thread()) or "prepared"  # noqa: E731
    ahead.begin("key", work)
    assert ahead.take("key", work) == "prepared"
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


def test_what_was_not_begun_is_done_when_it_is_taken():
    ahead, threads = PreparedAhead(), []
    ahead.begin("another", lambda: None)
    ahead.take("key", lambda: threads.append(threading.current_thread()))
    assert threads == [threading.main_thread()]


def test_shards_come_in_order_and_the_next_is_begun_before_the_last_is_done():
    begun = {place: threading.Event() for place in range(4)}

    def prepare(place):
        begun[place].set()
        return place

    for place in each_ahead(range(4), prepare):
        assert place == 3 or begun[place + 1].wait(timeout=60)
    assert all(own.is_set() for own in begun.values())


def test_an_error_comes_when_it_is_the_turn_of_its_shard():
    def prepare(place):
        if place == 1:
            raise InputError("cat.png has changed since the run began.")
        return place

    shards = each_ahead(range(3), prepare)
    assert next(shards) == 0
    with pytest.raises(InputError, match="cat"):
        next(shards)


def test_nothing_is_begun_that_nobody_takes():
    seen = []
    shards = each_ahead(range(9), lambda place: seen.append(place) or place)
    assert next(shards) == 0
    shards.close()
    assert set(seen) <= {0, 1}
