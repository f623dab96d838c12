"""Large blocks of freed memory are used again."""

import ctypes

from attnaudit.numerics import allocation


def test_the_c_library_is_told_once_for_each_setting(monkeypatch):
    told = []

    class Library:
        mallopt = staticmethod(lambda name, size: told.append((name, size)))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library)
    monkeypatch.setattr(allocation.sys, "platform", "linux")
    allocation.reuse_freed_memory()
    assert len(told) == len(dict(told)) == 3


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", None)
    monkeypatch.setattr(allocation.sys, "platform", "darwin")
    allocation.reuse_freed_memory()


def test_a_c_library_without_the_setting_is_left_alone(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    monkeypatch.setattr(allocation.sys, "platform", "linux")
    allocation.reuse_freed_memory()
